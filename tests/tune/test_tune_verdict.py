"""How studies end, on made-up histories: no process, no file."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from leverl.backends.protocol import Resolved
from leverl.errors import TrainingFailed
from leverl.record.run_record import Outcome
from leverl.tune.evidence.verdict import Conclusion
from leverl.tune.evidence.verdict import conclude as conclude_in
from leverl.tune.model import CONFIRM, RACE, History
from leverl.tune.ranking import ranked, standing
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space

P1, P2 = {"x": 2}, {"x": 3}
AXES = (Axis("x", kind="int", low=1, high=9),)
SPACE = Space(AXES, (), {"x": 1}, lambda params: Resolved(None, params))  # type: ignore[arg-type]


def conclude(history: History, **more: Any) -> Conclusion:
    return conclude_in(SPACE, history, **{"model": False, **more})


def confirmed(tools: ModuleType, ours: list[float | None], base: list[float | None]) -> History:
    states = [tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.8)]
    for config_id, params, scores in (("c001", P1, ours), ("c000", {}, base)):
        for number, score in enumerate(scores):
            outcome = Outcome.FINISHED if score is not None else Outcome.NON_FINITE
            states.append(
                tools.state(config_id, params, score, seed=3000 + number, phase=CONFIRM, outcome=outcome)
            )
    return tools.history(*states)


def without_errors(history: History) -> History:
    """The same with scores whose evaluation errors are unknown."""
    runs = [
        replace(state, score=replace(state.score, standard_error=None)) if state.score else state
        for state in history.runs
    ]
    return replace(history, runs=tuple(runs))


def test_a_gain_needs_an_interval_above_zero(tools: ModuleType) -> None:
    history = without_errors(confirmed(tools, [0.80, 0.82, 0.81], [0.50, 0.52, 0.53]))
    found = conclude(history)
    assert (found.config_id, found.comparison.gain) == ("c001", True)
    assert found.comparison.seeds == (3000, 3001, 3002)
    assert found.comparison.difference == pytest.approx(0.29333, abs=1e-4)
    # differences .30 .30 .28: mean .29333, s = .011547, t(2, .975) = 4.30265
    assert found.comparison.interval == (pytest.approx(0.26465, abs=1e-4), pytest.approx(0.32202, abs=1e-4))
    assert found.verdict == (
        "Use c001: 0.810 against 0.517 of the base (+0.293, 95 % interval +0.265 … +0.322, 3 fresh seeds)."
    )


def test_the_errors_of_the_evaluations_are_a_part_of_the_spread(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.80, 0.82, 0.81], [0.50, 0.52, 0.53])).comparison
    # (2 · .011547² + 2 · (.01² + .01²)) / 4 = .00016667; t(4, .975) = 2.77645; half = .020695
    assert found.interval == (pytest.approx(0.27264, abs=1e-4), pytest.approx(0.31403, abs=1e-4))


def test_seeds_of_search_and_race_are_a_part_of_the_spread(tools: ModuleType) -> None:
    history = confirmed(tools, [0.80, 0.82, 0.81], [0.50, 0.52, 0.53])
    race = [
        tools.state(name, params, score, seed=seed, phase=RACE)
        for name, params, scores in (("c001", P1, (0.9, 0.5)), ("c000", {}, (0.3, 0.7)))
        for seed, score in zip((2000, 2001), scores, strict=True)
    ]
    wide = conclude(replace(history, runs=history.runs + tuple(race))).comparison
    # within the race: residual mean square (.4 + .4)² / 4 = .16 on 1 degree of freedom, a difference has twice that:
    # (2 · .011547² + .32) / 3 = .10676; t(3, .975) = 3.18245; half = .60036
    assert wide.interval == (
        pytest.approx(0.29333 - 0.60036, abs=1e-4),
        pytest.approx(0.29333 + 0.60036, abs=1e-4),
    )
    assert not wide.gain


def test_pairs_that_do_not_vary_prove_nothing_by_themselves(tools: ModuleType) -> None:
    history = confirmed(tools, [0.9] * 5, [0.5] * 5)
    known = conclude(history)
    assert known.comparison.gain
    low, high = known.comparison.interval
    assert high - low == pytest.approx(2 * 2.44691 * (2 * 0.0002 / 6 / 5) ** 0.5, abs=1e-5)
    unknown = conclude(without_errors(history))
    assert (unknown.comparison.interval, unknown.comparison.gain, unknown.config_id) == (None, False, "c000")
    assert "no interval: the pairs do not vary" in unknown.verdict


def test_no_gain_is_an_ending(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.50, 0.56, 0.51], [0.50, 0.52, 0.53]))
    assert (found.config_id, found.comparison.gain, found.comparison.config_id) == ("c000", False, "c001")
    assert found.verdict == (
        "No gain shown over the base (c001: +0.007, 95 % interval -0.031 … +0.045, 3 fresh seeds): keep the base."
    )


def test_one_pair_proves_nothing(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.9], [0.1]))
    assert (found.config_id, found.comparison.interval) == ("c000", None)
    assert "no interval from one pair" in found.verdict


def test_a_leader_that_fails_on_a_fresh_seed_has_no_gain(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.80, 0.82, None], [0.50, 0.52, 0.53]))
    assert found.config_id == "c000"
    assert "failed on 1 of 3 fresh seeds (non_finite)" in found.verdict


def test_a_base_that_always_fails(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.80, 0.82], [None, None]))
    assert (found.config_id, found.comparison) == ("c001", None)
    assert (
        found.verdict == "Use c001 (0.81 ± 0.01, 2 fresh seeds): the base has no score on these (non_finite)."
    )


def test_pairs_that_never_met(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.80, None], [None, 0.5]))
    assert (found.config_id, found.comparison) == ("c000", None)
    assert found.verdict.startswith("No gain shown over the base (c001, failed on 1 of 2 fresh seeds")


def test_a_leading_base_needs_no_proof(tools: ModuleType) -> None:
    history = tools.history(tools.state("c000", {}, 0.9), tools.state("c001", P1, 0.8))
    found = conclude(history)
    assert (found.config_id, found.comparison) == ("c000", None)
    assert found.verdict.startswith("No gain shown over the base, which leads (0.9 ± 0.0")
    assert found.verdict.endswith("): keep it.")
    assert conclude(history, cut_short="budget.hours = 2").verdict.startswith(
        "Ended by budget.hours = 2: no gain"
    )


def test_a_study_of_the_base_alone_compares_nothing(tools: ModuleType) -> None:
    history = tools.history(tools.state("c000", {}, 0.9), tools.state("c001", P1, outcome=Outcome.CRASHED))
    assert conclude(history).verdict == "Nothing but the base has a score: keep it."
    ended = conclude(history, cut_short="budget.hours = 2").verdict
    assert ended == "Ended by budget.hours = 2: nothing but the base has a score: keep it."


def test_minimising_turns_everything_round(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.2)]
    states += [tools.state("c000", {}, 0.5 + 0.01 * s, seed=3000 + s, phase=CONFIRM) for s in range(3)]
    states += [tools.state("c001", P1, 0.2, seed=3000 + s, phase=CONFIRM) for s in range(3)]
    found = conclude(tools.history(*states, maximize=False))
    assert (found.config_id, found.comparison.gain) == ("c001", True)
    assert found.comparison.difference == pytest.approx(0.31)


def test_a_choice_between_equals_is_told(tools: ModuleType) -> None:
    history = confirmed(tools, [0.80, 0.82, 0.81], [0.50, 0.52, 0.53])
    rival = tools.state("c002", P2, 0.801, kl=0.03)
    runs = [replace(state, kl=0.01) if state.run.config_id == "c001" else state for state in history.runs]
    found = conclude(replace(history, runs=(*runs, rival)))
    assert found.verdict.endswith(
        "3 fresh seeds); c002 and c001 are indistinguishable; c001 has less KL (0.01 against 0.03)."
    )


def test_an_early_end_names_the_best_without_claiming_a_gain(tools: ModuleType) -> None:
    history = tools.history(
        tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.8), tools.state("c002", P2, 0.3)
    )
    found = conclude(history, cut_short="budget.trials = 3")
    assert (found.config_id, found.comparison) == ("c001", None)
    assert found.verdict == (
        "Ended by budget.trials = 3 before confirmation was over: c001 leads (0.707 ± 0.12, P(best) 0.87, better "
        "than the base at 0.512 with P 0.87). A gain over the base is not shown."
    )


def test_an_early_end_amid_the_confirmation(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.8, 0.82], [0.5, 0.52]), cut_short="budget.hours = 2")
    assert (found.config_id, found.comparison.seeds) == ("c001", (3000, 3001))
    assert "; so far +0.3 on 2 fresh seeds. A gain" in found.verdict


def test_an_early_end_without_a_score_of_the_base(tools: ModuleType) -> None:
    history = tools.history(
        tools.state("c000", {}, None, outcome=Outcome.CRASHED), tools.state("c001", P1, 0.8)
    )
    assert "the base has no score" in conclude(history, cut_short="budget.trials = 2").verdict


def test_when_nothing_keeps_the_limits(tools: ModuleType) -> None:
    history = tools.history(tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.8))
    found = conclude(history, allowed=lambda *_: False)
    assert (found.config_id, found.comparison) == ("c000", None)
    assert "keeps the study's limits" in found.verdict


def test_nothing_scored_is_a_failure(tools: ModuleType) -> None:
    with pytest.raises(TrainingFailed, match="no run has a score"):
        conclude(tools.history(tools.state("c000", {}, None, outcome=Outcome.CRASHED)))
    with pytest.raises(TrainingFailed, match="before the first one could start"):
        conclude(History(()))


def test_failures_are_no_scores(tools: ModuleType) -> None:
    states = [
        tools.state("c001", P1, 0.9, seed=2000),
        tools.state("c001", P1, None, seed=2001, outcome=Outcome.NON_FINITE),
        tools.state("c002", P2, 0.6, seed=2000),
        tools.state("c002", P2, None, seed=2001, outcome=Outcome.LOST),
    ]
    history = tools.history(*states)
    assert standing(history, "c001").mean == 0.9
    assert [found.config_id for found in ranked(history)] == ["c002", "c001"]  # one that fails comes last
