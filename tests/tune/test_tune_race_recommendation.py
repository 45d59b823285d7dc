"""What is recommended after search and race, and why."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from leverl.backends.protocol import Resolved
from leverl.record.run_record import Outcome, Score
from leverl.record.series import Series
from leverl.tune.evidence import belief as beliefs
from leverl.tune.evidence.posterior import Belief
from leverl.tune.evidence.recommendation import Contest, confirmed, contest, incumbent, recommend
from leverl.tune.evidence.seed_noise import SeedNoise
from leverl.tune.model import CONFIRM, RACE, SEARCH, History, Recommendation, RunState
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space


def space(base: float = 0.0) -> Space:
    axes = (Axis("x"), Axis("k", low=1e-4, high=1e-1, scale="log"))
    return Space(axes, (), {"x": base, "k": 1e-2}, lambda params: Resolved(None, params))  # type: ignore[arg-type]


SPACE = space()


@pytest.fixture
def run(tools: ModuleType) -> Callable[..., RunState]:
    def make(number: int, score: float | None, seed: int = 1000, **more: Any) -> RunState:
        phase = SEARCH if seed < 2000 else RACE if seed < 3000 else CONFIRM
        params = {"x": number / 100, "k": 1e-2} if number else {}
        state: RunState = tools.state(f"c{number:03d}", params, score, seed=seed, phase=phase, **more)
        return state

    return make


def judged(*states: RunState, maximize: bool = True, **more: Any) -> Recommendation:
    found = recommend(SPACE, History(states, maximize), **{"model": False, **more})
    assert found is not None
    return found


def test_the_posterior_mean_decides_and_not_the_best_value(run: Callable[..., RunState]) -> None:
    lucky = [run(1, 0.95), run(1, 0.45, 1001), run(1, 0.40, 1002)]
    steady = [run(2, 0.80), run(2, 0.78, 1001), run(2, 0.82, 1002)]
    found = judged(*lucky, *steady, run(3, 0.5), run(0, 0.4))
    assert found.config_id == "c002"
    assert found.reason.startswith("c002 has the highest posterior mean; P(best) 0.7")
    assert 0.65 < found.mean < 0.8  # drawn towards the others
    assert found.indistinguishable == ()
    assert found.expected_loss < 0.02


def test_the_race_decides_among_its_finalists(run: Callable[..., RunState]) -> None:
    search = [run(0, 0.4), run(1, 0.80), run(2, 0.78), run(3, 0.76)]
    assert judged(*search, epsilon=0.0).config_id == "c001"
    raced = [run(1, 0.60, 2000), run(2, 0.72, 2000), run(1, 0.61, 2001), run(2, 0.70, 2001)]
    found = judged(*search, *raced)
    assert (found.config_id, found.indistinguishable) == ("c002", ())  # c003 was not in the race
    assert found.mean == pytest.approx(0.72, abs=0.04)


def test_confirmation_runs_do_not_count(run: Callable[..., RunState]) -> None:
    search = [run(0, 0.4), run(1, 0.9), run(2, 0.6)]
    assert judged(*search, run(1, 0.0, 3000), run(0, 1.0, 3000)) == judged(*search)


def test_indistinguishable_ones_go_to_the_lower_kl_then_to_the_lower_cost(
    run: Callable[..., RunState],
) -> None:
    def two(one: dict[str, Any], two: dict[str, Any], **more: Any) -> Recommendation:
        far = [run(3, 0.2), run(4, 0.1)]
        return judged(run(1, 0.800, **one), run(2, 0.798, **two), *far, **more)

    found = two({"kl": 0.035}, {"kl": 0.021})
    assert found.config_id == "c002"
    assert found.indistinguishable == ("c001", "c002")
    assert found.reason == "c001 and c002 are indistinguishable; c002 has less KL (0.021 against 0.035)"
    assert two({"kl": 0.02}, {"kl": 0.05}).config_id == "c001"
    assert two({"kl": 0.0200}, {"kl": 0.0201, "responses": 50}).config_id == "c002"  # the same KL, nearly
    assert two({"responses": 200}, {"responses": 100, "seconds": 9.0}).config_id == "c002"
    cheap = two({"seconds": 9.0}, {"seconds": 2.0})
    assert (cheap.config_id, cheap.reason[-40:]) == (
        "c002",
        "c002 has fewer seconds a run (2 against 9)"[-40:],
    )
    equal = two({"kl": 0.02}, {"kl": 0.02})
    assert (equal.config_id, equal.reason[-35:]) == ("c001", "c001 has the highest posterior mean")
    assert two({}, {"kl": 0.02}).config_id == "c002"  # unknown is not less
    assert two({"kl": -0.001}, {"kl": 0.02}).config_id == "c001"  # an estimate near 0 may be negative


def test_a_real_difference_is_not_given_away_for_less_kl(run: Callable[..., RunState]) -> None:
    states = [
        run(n, score + e, 1000 + s) for n, score in ((1, 0.80), (2, 0.70)) for s, e in enumerate((0, 0.01))
    ]
    states = [replace(state, kl=0.05 if state.run.config_id == "c001" else 0.02) for state in states]
    assert judged(*states).config_id == "c001"
    assert judged(*states, epsilon=0.2).config_id == "c002"  # unless the user says that it does not matter


def test_what_counts_as_indistinguishable() -> None:
    def tied(gap: float, sd: float, epsilon: float) -> tuple[str, ...]:
        belief = Belief(("a", "b"), np.array([0.0, gap]), np.diag([sd**2 / 2, sd**2 / 2]))
        return Contest(belief, SeedNoise(0.0, 1.0), epsilon).tied()

    assert tied(0.05, 0.01, 0.1) == ("b", "a")  # five deviations apart, but less than matters
    assert tied(0.15, 0.01, 0.1) == ("b",)
    assert tied(0.25, 1.0, 0.1) == ("b", "a")  # P(a is better) = 0.4013
    assert tied(0.26, 1.0, 0.1) == ("b",)  # 0.3974
    assert tied(-0.25, 1.0, 0.1) == ("a", "b")


def test_one_that_failed_comes_behind_those_that_never_did(run: Callable[..., RunState]) -> None:
    dies = [run(1, 0.9), run(1, None, 1001, outcome=Outcome.NON_FINITE)]
    steady = [run(2, 0.6), run(2, None, 1001, outcome=Outcome.LOST)]
    assert judged(*dies, *steady).config_id == "c002"
    assert judged(*dies, run(2, None, outcome=Outcome.CRASHED)).config_id == "c001"
    less = [run(2, 0.6), run(2, 0.6, 1001), run(2, None, 1002, outcome=Outcome.NON_FINITE)]
    assert judged(*dies, *less).config_id == "c002"  # one run in three against one in two


def test_limits_are_kept(run: Callable[..., RunState]) -> None:
    history = History((run(0, 0.4), run(1, 0.9, kl=0.5), run(2, 0.6, kl=0.01)))

    def mild(history: History, name: str) -> bool:
        return all((state.kl or 0.0) < 0.1 for state in history.of(name))

    found = recommend(SPACE, history, allowed=mild, model=False)
    assert found is not None
    assert found.config_id == "c002"
    assert recommend(SPACE, history, allowed=lambda *_: False, model=False) is None


def test_minimising_turns_it_round(run: Callable[..., RunState]) -> None:
    found = judged(run(0, 0.5), run(1, 0.2), run(1, 0.21, 1001), run(2, 0.9), maximize=False)
    assert found.config_id == "c001"
    assert found.mean == pytest.approx(0.21, abs=0.05)
    assert found.expected_loss >= 0
    best = incumbent(SPACE, History((run(0, 0.5), run(1, 0.2)), maximize=False))
    assert best is not None
    assert (best.mean, best.standard_error > 0, best.seed_sd > 0) == (pytest.approx(0.2), True, True)


def test_nothing_scored_nothing_recommended(run: Callable[..., RunState]) -> None:
    history = History((run(0, None, outcome=Outcome.CRASHED),))
    assert recommend(SPACE, history) is None
    assert incumbent(SPACE, History(())) is None
    with pytest.raises(ValueError, match="no configuration has a score"):
        contest(SPACE, history, ("c000",))


def test_the_same_runs_are_judged_once(run: Callable[..., RunState]) -> None:
    ended = [run(0, 0.5), run(1, 0.8)]
    going = run(2, None, outcome=None)
    first = recommend(SPACE, History((*ended, going)), model=False)
    later = replace(going, evaluations=Series((1,), (0.7,)))
    assert recommend(SPACE, History((*ended, later)), model=False) is first
    over = replace(later, outcome=Outcome.FINISHED, score=Score(0.9, 0.01, 3))
    assert recommend(SPACE, History((*ended, over)), model=False) != first


def test_the_confirmed_configuration_stays_the_one(run: Callable[..., RunState]) -> None:
    assert confirmed(History((run(0, 0.5), run(1, 0.8)))) is None
    assert confirmed(History((run(0, 0.5, 3000), run(1, 0.8, 3000)))) == "c001"


# Joint belief of the surrogate


def hill(run: Callable[..., RunState], count: int = 12) -> list[RunState]:
    """A smooth hill over x with its top at 0.06, and little noise."""
    noise = np.random.default_rng(0).standard_normal(count) * 0.01
    return [run(n, 1 - (n / 100 - 0.06) ** 2 / 0.06**2 + noise[n]) for n in range(count)]


def test_few_configurations_need_no_surrogate(
    run: Callable[..., RunState], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a surrogate was asked for")

    monkeypatch.setattr(beliefs, "surrogate_of", never)
    states = [run(0, 0.41), run(1, 0.62), run(2, 0.53)]
    assert recommend(SPACE, History(tuple(states))) is not None
    with pytest.raises(AssertionError):
        recommend(SPACE, History((*states, run(3, 0.57))))
    assert recommend(SPACE, History((*states, run(3, 0.57))), model=False) is not None


def test_neighbours_lend_each_other_strength(run: Callable[..., RunState]) -> None:
    history = History(tuple(hill(run)))
    modelled, alone = recommend(SPACE, history), recommend(SPACE, history, model=False)
    assert modelled is not None
    assert alone is not None
    assert modelled.config_id in ("c005", "c006", "c007")
    assert modelled.sd < alone.sd
    correlation = contest(SPACE, history, ("c005", "c006")).belief.covariance
    assert (
        correlation[0, 1]
        > 0
        == contest(SPACE, history, ("c005", "c006"), model=False).belief.covariance[0, 1]
    )


def test_a_base_outside_the_space_stands_on_its_own_runs(run: Callable[..., RunState]) -> None:
    outside = space(base=7.0)
    history = History(tuple(hill(run)))
    found = contest(outside, history, ("c000", "c001", "c006")).belief
    assert found.covariance[0, 1] == found.covariance[0, 2] == 0.0
    assert found.covariance[1, 2] != 0.0
    assert found.mean[2] > found.mean[0]
