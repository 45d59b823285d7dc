"""Studies played in memory: they keep the budget, stop runs by their curves, and end as the landscape deserves."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from leverl.record.run_record import Outcome
from leverl.tune.model import BASE, CONFIRM, RACE, SEARCH, Run
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import free
from leverl.tune.strategy import Strategy, build
from leverl.tune.study import Budget, Study, Target


def _strategy(trials: int) -> Strategy:
    space = free([Axis("x"), Axis("y")], base={"x": 0.1, "y": 0.1})
    study = Study(
        name="s",
        target=Target(leverl="made up"),
        strategy="random",
        space={},
        budget=Budget(trials=trials),
        seed=3,
    )
    return build(study, space, lambda _: 100, last_k=1)


def _noise(run: Run) -> float:
    return float(np.random.default_rng([run.seed, int(run.config_id[1:]), 1]).normal(scale=0.02))


def _height(run: Run) -> float:
    return float(run.params.get("x", 0.1))


def test_a_study_spends_its_budget_on_search_race_and_proof(load: Callable[[str], ModuleType]) -> None:
    play, result = load("methods.simulator").play, load("tasks.task").Result

    def outcome(run: Run) -> Any:
        return result(_height(run) + _noise(run), seconds=2.0)

    history = play(_strategy(30), outcome)
    phases = [len(history.in_phase(name)) for name in (SEARCH, RACE, CONFIRM)]
    assert 14 <= phases[0] <= 18
    assert 2 <= phases[1] <= 6
    assert phases[2] == 2 * ((30 - phases[0] - phases[1]) // 2)  # what the race left over is proof
    assert all(state.scored and state.cost.seconds == 2.0 for state in history.runs)
    assert _strategy(30).conclude(history).config_id != BASE
    assert not play(_strategy(30), outcome, proof=False).in_phase(CONFIRM)
    assert [s.run for s in play(_strategy(30), outcome, parallel=3).in_phase(SEARCH)] == [
        s.run for s in history.in_phase(SEARCH)
    ]  # random suggestions do not depend on scores


def test_runs_with_curves_are_stopped_and_those_that_fail_have_no_score(
    load: Callable[[str], ModuleType],
) -> None:
    play, result = load("methods.simulator").play, load("tasks.task").Result

    def outcome(run: Run) -> Any:
        height = _height(run)
        if height > 0.9:
            return result(None)
        curve = tuple(height * (1 - np.exp(-3 * share)) + _noise(run) for share in np.linspace(0.1, 1, 10))
        return result(curve[-1], 0.01, curve)

    history = play(_strategy(45), outcome, proof=False)
    stopped = [state for state in history.runs if state.outcome is Outcome.STOPPED]
    assert stopped
    for state in stopped:
        assert state.score is None
        assert state.prediction is not None
        assert 0.2 <= state.progress < 1
        assert len(state.evaluations) == round(10 * state.progress)
    failed = [state for state in history.runs if state.outcome is Outcome.CRASHED]
    assert {state.run.config_id for state in failed} == {
        state.run.config_id for state in history.runs if _height(state.run) > 0.9
    }
    quiet = replace(_strategy(45), rules=replace(_strategy(45).rules, curves=False))
    assert all(state.outcome is not Outcome.STOPPED for state in play(quiet, outcome, proof=False).runs)


def test_noise_of_the_honesty_benchmark_is_what_it_says(load: Callable[[str], ModuleType]) -> None:
    honesty = load("honesty")
    repeats, seeds = range(400), (2000, 3000)

    def drawn(name: str) -> Any:  # [repeats, configurations and seeds]
        noise = honesty.CASES[name].noise
        return np.array([[noise(r, c, s) for c in (BASE, "c001") for s in seeds] for r in repeats])

    for name in ("flat", "flat-common"):
        assert drawn(name).std() == pytest.approx(1.0, abs=0.06)
    correlations = np.corrcoef(drawn("flat-common").T)
    assert correlations[0, 2] == pytest.approx(0.5, abs=0.12)  # one seed, two configurations
    assert correlations[0, 1] == pytest.approx(0.0, abs=0.15)
    assert drawn("flat-unequal")[:, :2].std() == pytest.approx(1.0, abs=0.08)
    assert drawn("flat-unequal")[:, 2:].std() > 1.05


def test_the_honesty_benchmark_goes_on_where_it_was(
    load: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    honesty = load("honesty")
    first = honesty.measure("three", tmp_path, 0, 2)
    assert "2 of 2" in capsys.readouterr().out
    assert honesty.measure("three", tmp_path, 0, 3)[:2] == first
    assert honesty.measure("three", tmp_path, 0, 1) == first[:1]
    shown = honesty.table({"three": first})
    assert "three of 15 at +2 | 2 |" in shown
    points = np.random.default_rng(0).random((16, 4))
    for name in ("one", "three", "bump"):
        means = honesty.CASES[name].truth(points, np.random.default_rng(1))
        assert means[0] == 0.0
        assert means.max() == pytest.approx(2.0)
