"""`--fail-unless`: what is understood, and when it is met."""

from dataclasses import replace
from pathlib import Path

import pytest

from leverl.errors import ConfigError
from leverl.record.run_record import Outcome, Score
from leverl.tune.evidence.verdict import compare
from leverl.tune.gate import Condition, Gate, parse_gate
from leverl.tune.model import BASE, CONFIRM, SEARCH, History, Run, RunState, StudyView, Winner

OURS = (0.70, 0.74, 0.71, 0.75, 0.70)
BASE_SCORES = (0.50, 0.52, 0.53, 0.51, 0.49)


def state(
    config_id: str, seed: int, score: float | None, phase: str = CONFIRM, kl: float | None = 0.03
) -> RunState:
    run = Run(f"{config_id[1:]}-s{seed}", config_id, {}, seed, 4, phase)
    outcome = Outcome.FINISHED if score is not None else Outcome.CRASHED
    return RunState(run, Path(run.id), outcome, None if score is None else Score(score, None, 3), kl=kl)


def study(
    ours: tuple[float | None, ...] = OURS,
    base: tuple[float | None, ...] = BASE_SCORES,
    *,
    config_id: str = "c007",
    maximize: bool = True,
    planned: int = 10,
) -> StudyView:
    """A study that ended with `config_id`; the search saw it at its luckiest."""
    runs = [state(BASE, 1000, 0.5, SEARCH), state("c007", 1000, 0.99, SEARCH, kl=0.5)]
    for seed, (one, two) in enumerate(zip(ours, base, strict=True)):
        runs += [state("c007", 3000 + seed, one), state(BASE, 3000 + seed, two, kl=0.01)]
    history = History(tuple(runs), maximize)
    verdict = "No gain shown over the base: keep the base." if config_id == BASE else f"Use {config_id}."
    comparison = compare(history, "c007")
    winner = Winner("s", config_id, {}, comparison, verdict, Path("best.yaml"), Path("report.html"))
    return StudyView(
        name="s",
        folder=Path("s"),
        target="grpo",
        base_settings={},
        strategy="bayes",
        sampler="",
        objective="eval/score",
        axes=(),
        history=history,
        planned={SEARCH: 2, CONFIRM: planned},
        steps=4,
        phase="done",
        budget_seconds=None,
        seconds=1.0,
        winner=winner,
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gain > 0 at 95%", Condition("gain", ">", 0.0, 95.0)),
        ("gain>0", Condition("gain", ">", 0.0, 95.0)),
        ("gain >= -.5e-1 at 99.9 %", Condition("gain", ">=", -0.05, 99.9)),
        (" score >= 0.6 ", Condition("score", ">=", 0.6)),
        ("kl <= 5e-2", Condition("kl", "<=", 0.05)),
    ],
)
def test_conditions(text: str, found: Condition) -> None:
    assert parse_gate(text) == Gate((found,))
    assert parse_gate(str(parse_gate(text))) == Gate((found,))


def test_several_conditions() -> None:
    gate = parse_gate("gain > 0 at 95% and kl <= 0.05")
    assert str(gate) == "gain > 0 at 95% and kl <= 0.05"
    assert gate.check(study()).passed
    assert not parse_gate("gain > 0 and kl <= 0.02").check(study()).passed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "gian > 0",
            r"unknown quantity 'gian'. Did you mean 'gain'\? Known: gain, score, kl. Examples: \"gain > 0 at 95%\"",
        ),
        ("gain", "'gain' is not understood. Examples"),
        ("", "'' is not understood"),
        ("gain > zero", "'gain > zero' is not understood"),
        ("gain > 0 at 95", "is not understood"),
        ("gain > 0 or kl < 1", "is not understood"),
        ("gain > nan", "is not understood"),
        ("gain < 0", "a gain must be above something"),
        ("gain > 0 at 100%", "the level 100% must be at least 50% and below 100%"),
        ("gain > 0 at 5%", "the level 5% must"),
        ("kl <= 1 at 95%", "only a gain has a level. Leave out 'at 95%'"),
    ],
)
def test_what_is_not_understood_is_answered_with_examples(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_gate(text)


def test_a_gain_is_met_by_the_lower_end_of_its_interval() -> None:
    view = study()
    assert view.winner is not None
    assert view.winner.comparison is not None
    assert view.winner.comparison.interval is not None
    low, high = view.winner.comparison.interval
    result = parse_gate("gain > 0 at 95%").check(view)
    assert result.passed
    assert result.text == f"gain > 0 at 95%: met (+0.210, interval {low:+.3f} … {high:+.3f}, 5 seeds)"
    assert parse_gate(f"gain > {low - 1e-6}").check(view).passed
    assert not parse_gate(f"gain > {low + 1e-6}").check(view).passed


def test_another_level_has_another_interval() -> None:
    view = study((0.6, 0.5, 0.7, 0.52, 0.68), (0.5, 0.48, 0.55, 0.5, 0.5))
    assert parse_gate("gain > 0 at 95%").check(view).passed
    assert not parse_gate("gain > 0 at 99.9%").check(view).passed


def test_a_study_that_keeps_the_base_has_no_gain_at_any_level() -> None:
    result = parse_gate("gain > -1 at 50%").check(study(config_id=BASE))
    assert not result.passed
    assert "No gain shown over the base" in result.text


def test_a_gain_that_is_not_confirmed_in_full_is_not_met() -> None:
    result = parse_gate("gain > 0").check(study(planned=12))
    assert (result.passed, "before the confirmation was over" in result.text) == (False, True)
    lonely = study((0.9, None), (None, 0.5), planned=4)
    assert "too few scores" in parse_gate("gain > 0").check(lonely).text
    assert not parse_gate("gain > 0").check(study((*OURS[:4], None))).passed


def test_a_lower_score_is_a_gain_where_the_goal_is_to_minimise() -> None:
    assert parse_gate("gain > 0").check(study(BASE_SCORES, OURS, maximize=False)).passed
    assert not parse_gate("gain > 0").check(study(OURS, BASE_SCORES, maximize=False)).passed
    assert parse_gate("score <= 0.6").check(study(BASE_SCORES, OURS, maximize=False)).passed


def test_score_and_kl_are_those_of_fresh_seeds() -> None:
    assert parse_gate("score >= 0.71").check(study()).passed
    result = parse_gate("score >= 0.73").check(study())
    assert result.text == "score >= 0.73: not met (score of c007 0.72, 5 seeds)"
    assert parse_gate("kl <= 0.03").check(study()).passed
    base = parse_gate("kl <= 0.01").check(study(config_id=BASE))
    assert base.text == "kl <= 0.01: not met (kl of c000 0.01333, 6 seeds)"


def test_what_is_not_known_is_not_met() -> None:
    view = study()
    assert not parse_gate("score >= 0").check(replace(view, winner=None)).passed
    unmeasured = tuple(replace(run, kl=None) for run in view.history.runs)
    result = parse_gate("kl <= 1").check(replace(view, history=History(unmeasured)))
    assert result.text == "kl <= 1: not met (no kl of c007 on fresh seeds)"
