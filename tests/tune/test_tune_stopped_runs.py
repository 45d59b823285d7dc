"""Runs that are stopped early by the tuner, and those that are wanted again: through processes and database."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import optuna
import pytest

from leverl.record.run_record import Outcome
from leverl.tune import strategy as strategies
from leverl.tune.model import History, Params, Stop
from leverl.tune.space.space import Space
from leverl.tune.stopping.rules import StopRules
from leverl.tune.store.mirror import SUFFIX
from leverl.tune.store.storage import database_of
from leverl.tune.view import read_study

STOPPED = "001-s1000"
SCRIPT: list[Params] = [
    {"actor_learning_rate": 3e-2, "ppo_epochs": 2},
    {"actor_learning_rate": 1e-2, "ppo_epochs": 3},
    {"actor_learning_rate": 3e-3, "ppo_epochs": 3},
]


class Scripted:
    """Proposes three configurations, then the first of them again, then nothing."""

    name = "scripted"

    def __init__(self, again: bool) -> None:
        self._again = again

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        proposed = len(history.config_ids) - 1 if history.config_ids else 0
        if proposed < len(SCRIPT):
            return SCRIPT[max(proposed, 0) :][:n]
        stopped = [state for state in history.of("c001") if state.outcome is Outcome.STOPPED]
        return [SCRIPT[0]] if self._again and stopped else []


def stops_the_first(rules: StopRules, history: History, incumbent: object) -> list[Stop]:
    halfway = [s for s in history.runs if s.run.id == STOPPED and s.outcome is None and s.cost.steps >= 2]
    return [Stop(STOPPED, "stopped at 2/4: made up")] if halfway else []


def study(tools: ModuleType) -> Any:
    return tools.study(budget={"trials": 11}, seeds={"search": 1, "duplicates": 0, "race": 1, "confirm": 2})


def tune(tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch, *, again: bool) -> Any:
    monkeypatch.setattr(strategies, "sampler_named", lambda name, seed: Scripted(again))
    monkeypatch.setattr(StopRules, "decide", stops_the_first)
    gate, log = tmp_path / "gate", tmp_path / "log"
    os.mkfifo(gate)

    class OpensTheGate(tools.Recorder):  # type: ignore[misc, name-defined]
        """Lets the other runs through once the first one is over."""

        def event(self, text: str) -> None:
            super().event(text)
            if "made up" in text:
                tools.open_gate(gate)

    recorder = OpensTheGate()
    fake = {"gate": str(gate), "gate_from": "001", "log": str(log)}
    tools.tune(tmp_path, study(tools), fake, observer=recorder)
    return recorder, log.read_text().split("\n")


def test_a_stopped_run_has_a_prediction_and_no_score(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, starts = tune(tmp_path, tools, monkeypatch, again=False)
    assert "! c001 stopped at 2/4: made up" in recorder.events
    state = next(s for s in read_study(tmp_path / "s").history.runs if s.run.id == STOPPED)
    assert (state.outcome, state.score, state.message) == (Outcome.STOPPED, None, "stopped at 2/4: made up")
    assert (state.cost.steps, state.progress, state.scored) == (2, 0.5, False)
    assert starts.count(STOPPED) == 1
    assert not any("resume" in line for line in starts)


def test_a_stopped_run_that_is_wanted_again_goes_on_from_its_checkpoint(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, starts = tune(tmp_path, tools, monkeypatch, again=True)
    assert f"{STOPPED} is wanted after all: it goes on" in recorder.events
    history = read_study(tmp_path / "s").history
    states = [s for s in history.runs if s.run.id == STOPPED]
    assert [s.outcome for s in states] == [Outcome.FINISHED]
    assert states[0].evaluations.steps == (1, 2, 3, 4)
    assert [line for line in starts if line.startswith(STOPPED)] == [STOPPED, f"{STOPPED} resume"]


def test_the_dashboards_database_has_runs_and_configurations(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(tmp_path, tools, monkeypatch, again=False)
    storage = f"sqlite:///{database_of(tmp_path / 's')}"
    runs = optuna.load_study(study_name="s", storage=storage).trials
    history = read_study(tmp_path / "s").history
    assert len(runs) == len(history.runs)
    pruned = [trial for trial in runs if trial.user_attrs["run_id"] == STOPPED]
    assert [trial.state for trial in pruned] == [optuna.trial.TrialState.PRUNED]
    assert sorted(runs[0].intermediate_values) == [1, 2, 3, 4]
    configurations = optuna.load_study(study_name=f"s{SUFFIX}", storage=storage).trials
    assert [trial.user_attrs["config_id"] for trial in configurations] == list(history.config_ids)
    base = [s.score.mean for s in history.of("c000") if s.score is not None]
    assert configurations[0].value == pytest.approx(sum(base) / len(base))
    assert [run["id"] for run in configurations[0].user_attrs["runs"]] == [
        s.run.id for s in history.of("c000")
    ]
