"""Guards, on made-up runs: what is broken is named, what is only slow or bad is let be."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from leverl.record.series import EMPTY, Series
from leverl.tune.model import SEARCH, Run, RunState
from leverl.tune.stopping.guards import SIGNALS, Range, broken
from leverl.vocabulary.metrics import is_metric

UNTIL = 200
SEEN = Range(0.0, 0.7)


def every(spacing: int, values: Sequence[float], first: int = 0) -> Series:
    return Series(tuple(first + spacing * i for i in range(len(values))), tuple(values))


def state(
    scores: Sequence[float],
    *,
    spacing: int = 10,
    error: float | None = 0.02,
    signals: Mapping[str, Sequence[float]] | None = None,
) -> RunState:
    """A running run; `signals` are given per step and begin at step 1."""
    evaluations = every(spacing, scores)
    errors = EMPTY if error is None else Series(evaluations.steps, (error,) * len(scores))
    return RunState(
        Run("003-s1000", "c003", {}, 1000, UNTIL, SEARCH),
        Path("trials/003-s1000"),
        evaluations=evaluations,
        evaluation_errors=errors,
        signals={name: every(1, values, first=1) for name, values in (signals or {}).items()},
    )


def test_the_signals_are_metrics() -> None:
    assert all(is_metric(name) for name in SIGNALS)


def test_a_collapse_is_named_with_its_peak() -> None:
    scores = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.58, 0.6, 0.61, 0.3, 0.05, 0.03, 0.02]
    assert broken(state(scores), SEEN) == "collapsed: eval/score 0.02 after a peak of 0.61 at step 80"
    assert broken(state(scores[:-1]), SEEN) is None  # two evaluations are no collapse yet
    assert broken(state(scores), SEEN, objective="reward_mean") is not None


def test_a_collapse_from_where_a_pretrained_model_began() -> None:
    assert broken(state([0.57, 0.5, 0.1, 0.03, 0.02, 0.02]), SEEN) == (
        "collapsed: eval/score 0.02 after a peak of 0.57 at step 0"
    )


def test_a_collapse_to_minimise() -> None:
    losses = [21.0, 18.0, 12.0, 8.0, 6.0, 6.0, 20.0, 20.5, 20.9]
    found = broken(state(losses, error=0.1), Range(-21.0, -5.0), maximize=False, objective="loss")
    assert found == "collapsed: loss 20.9 after a peak of 6 at step 40"


@pytest.mark.parametrize(
    "scores",
    [
        [0.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0],  # slow
        [0.0, 0.2, 0.4, 0.5, 0.2, 0.45, 0.1, 0.4, 0.5, 0.1],  # a sawtooth
        [0.0, 0.2, 0.4, 0.6, 0.6, 0.5, 0.4, 0.3, 0.3, 0.3],  # half lost
        [0.0, 0.0, 0.0, 0.61, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],  # one lucky evaluation
        [0.0, 0.02, 0.05, 0.06, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0],  # it had not learnt much
    ],
)
def test_what_is_not_a_collapse(scores: list[float]) -> None:
    assert broken(state(scores), SEEN) is None


def test_noise_in_a_study_where_nothing_learns_is_no_collapse() -> None:
    scores = [0.0, 0.008, 0.016, 0.016, 0.008, 0.0, 0.0, 0.0, 0.0]
    assert broken(state(scores, error=0.01), Range(0.0, 0.016)) is None


def test_without_known_errors_a_fall_has_to_last() -> None:
    scores = [0.0, 0.3, 0.5, 0.6, 0.6, 0.05, 0.02, 0.02]
    assert broken(state(scores, error=None), SEEN) is None
    assert broken(state([*scores, 0.02, 0.01], error=None), SEEN) is not None


def test_close_evaluations_are_not_enough_for_a_collapse() -> None:
    scores = [0.0, 0.3, 0.5, 0.6, 0.6, 0.02, 0.02, 0.02]
    assert broken(state(scores, spacing=2), SEEN) is None  # six steps of two hundred
    assert broken(state(scores, spacing=10), SEEN) is not None


def test_without_entropy_half_a_fall_is_a_collapse() -> None:
    scores = [0.0, 0.2, 0.4, 0.6, 0.6, 0.5, 0.25, 0.25, 0.25]
    healthy = {"actor/entropy": [1.0] * 80}
    collapsing = {"actor/entropy": [1.0] * 50 + [0.001] * 30}
    assert broken(state(scores, signals=healthy), SEEN) is None
    assert broken(state(scores, signals=collapsing), SEEN) == (
        "collapsed: eval/score 0.25 after a peak of 0.6 at step 30, with entropy near 0"
    )


def test_a_policy_that_cannot_change_any_more() -> None:
    signals = {"actor/entropy": [2.0] * 10 + [0.001] * 50, "group/dead_share": [0.2] * 10 + [1.0] * 50}
    found = broken(state([0.0] * 7, signals=signals), SEEN)
    assert found == "collapsed: entropy 0.001 and eval/score stays at 0: nothing is left to learn from"


def test_without_groups_the_flat_reward_says_so() -> None:
    signals = {"actor/entropy": [2.0] * 10 + [0.001] * 50}
    flat = {**signals, "critic/score/mean": [0.1] * 60}
    moving = {**signals, "critic/score/mean": [0.1, 0.3] * 30}
    assert broken(state([0.0] * 7, signals=flat), SEEN) is not None
    assert broken(state([0.0] * 7, signals=moving), SEEN) is None
    assert broken(state([0.0] * 7, signals=signals), SEEN) is None  # not known


def test_a_solved_task_has_no_entropy_either() -> None:
    signals = {"actor/entropy": [2.0] * 10 + [0.001] * 90, "group/dead_share": [0.2] * 10 + [1.0] * 90}
    assert (
        broken(state([0.0, 0.5, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7], signals=signals), SEEN) is None
    )


def test_a_model_that_was_deterministic_from_the_start_is_let_be() -> None:
    signals = {"actor/entropy": [0.01] * 60, "group/dead_share": [1.0] * 60}
    assert broken(state([0.0] * 7, signals=signals), SEEN) is None


def test_responses_that_grew_into_the_cap() -> None:
    signals = {"response_length/clip_ratio": [0.3] * 20 + [1.0] * 40}
    found = broken(state([0.01] * 7, signals=signals), SEEN)
    assert found == "at the length cap: 100% of the responses are cut off and eval/score stays at 0.01"
    rising = [0.0, 0.0, 0.0, 0.0, 0.02, 0.1, 0.2]
    assert broken(state(rising, signals=signals), SEEN) is None


def test_responses_at_the_cap_from_the_start_get_half_of_the_run() -> None:
    early = {"response_length/clip_ratio": [1.0] * 60, "group/dead_share": [1.0] * 60}
    late = {"response_length/clip_ratio": [1.0] * 110, "group/dead_share": [1.0] * 110}
    learning = {"response_length/clip_ratio": [1.0] * 110, "group/dead_share": [0.4] * 110}
    assert broken(state([0.0] * 7, signals=early), SEEN) is None
    assert broken(state([0.0] * 12, signals=late), SEEN) is not None
    assert broken(state([0.0] * 12, signals=learning), SEEN) is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_for_three_steps(value: float) -> None:
    signals = {"actor/grad_norm": [0.5] * 10 + [value] * 3}
    expected = f"non-finite: actor/grad_norm is {value} in all steps after 10"
    assert broken(state([0.1, 0.2], signals=signals), SEEN) == expected
    assert broken(state([0.1, 0.2], signals={"actor/grad_norm": [0.5] * 10 + [value] * 2}), SEEN) is None


def test_a_signal_that_was_never_measured_says_nothing() -> None:
    assert broken(state([0.1, 0.2], signals={"kl_divergence": [math.nan] * 10}), SEEN) is None


def test_an_objective_that_is_not_finite_twice() -> None:
    assert broken(state([0.1, 0.2, math.nan, math.nan]), SEEN) == "non-finite: eval/score is nan at step 30"
    assert broken(state([0.1, 0.2, math.nan]), SEEN) is None


def test_a_run_that_has_just_begun_is_healthy() -> None:
    assert broken(state([]), SEEN) is None
    assert broken(state([0.0]), Range(0.0, 0.0)) is None


def test_a_recorded_slow_start_is_healthy() -> None:
    """Sorting three digits with learning rate 3e-4 (GRPO, every tenth step): slow, but it learns."""
    signals = {
        "actor/entropy": [
            v for v in (2.98, 2.98, 2.96, 2.95, 2.93, 2.91, 2.84, 2.78, 2.73, 2.75) for _ in range(10)
        ],
        "response_length/clip_ratio": [
            v for v in (0.73, 0.73, 0.68, 0.67, 0.65, 0.61, 0.54) for _ in range(14)
        ],
        "group/dead_share": [0.16, 0.13, 0.16, 0.03, 0.16] * 20,
    }
    scores = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.004, 0.004, 0.008, 0.008, 0.027]
    assert all(broken(state(scores[:n], signals=signals), SEEN) is None for n in range(1, len(scores) + 1))
