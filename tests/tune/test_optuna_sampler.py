import itertools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from leverl.errors import ConfigError
from leverl.tune.bridge.trials import PROPOSED
from leverl.tune.optuna_sampler import LeverlSampler
from leverl.tune.surrogate import propose as proposals
from leverl.tune.surrogate.measurement import Measurement

X: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
XY: dict[str, BaseDistribution] = X | {"y": FloatDistribution(0, 1)}


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[Measurement]]:
    """What the surrogate was told in each call; it proposes the middle of everything."""
    calls: list[list[Measurement]] = []

    def propose(axes: Any, found: Any, **options: Any) -> list[Any]:
        calls.append(list(found))
        return [{axis.name: axis.middle() for axis in axes}]

    monkeypatch.setattr(proposals, "propose", propose)
    return calls


def study(sampler: LeverlSampler | None = None, **options: Any) -> optuna.Study:
    return optuna.create_study(sampler=sampler or LeverlSampler(seed=0), **options)


def trial(
    value: float | None = None, *, state: TrialState = TrialState.COMPLETE, **params: float
) -> FrozenTrial:
    return create_trial(
        state=state, value=value, params=params, distributions={name: XY[name] for name in params}
    )


def optimise(objective: Callable[[optuna.Trial], float], n: int, **options: Any) -> optuna.Study:
    found = study(**options)
    found.optimize(objective, n_trials=n, catch=(RuntimeError,))
    return found


@pytest.mark.slow
def test_it_finds_the_top_of_a_noisy_hill() -> None:
    noise = np.random.default_rng(1)

    def hill(one: optuna.Trial) -> float:
        x, y = one.suggest_float("x", 0, 1), one.suggest_float("y", 1e-5, 1e-1, log=True)
        return -((x - 0.3) ** 2) * 8 - (np.log10(y) + 3) ** 2 + 0.1 * noise.normal()

    found = optimise(hill, 20, direction="maximize")
    late = [one.params for one in found.trials[-6:]]
    assert np.median([abs(params["x"] - 0.3) for params in late]) < 0.15
    assert np.median([abs(np.log10(params["y"]) + 3) for params in late]) < 0.4


@pytest.mark.slow
def test_it_minimises_too_and_the_sign_changes_nothing_else() -> None:
    def bowl(sign: float) -> Callable[[optuna.Trial], float]:
        return lambda one: sign * (one.suggest_float("x", 0, 1) - 0.4) ** 2

    down = optimise(bowl(1.0), 7, direction="minimize")
    up = optimise(bowl(-1.0), 7, direction="maximize")
    assert min(abs(one.params["x"] - 0.4) for one in down.trials[4:]) < 0.1
    assert [one.params for one in down.trials] == [one.params for one in up.trials]


def test_the_same_seed_and_trials_give_the_same_proposal_in_any_storage(tmp_path: Path) -> None:
    values = [0.4, 0.5, 0.9, 0.3]

    def proposal(seed: int, **options: Any) -> dict[str, Any]:
        found = study(LeverlSampler(seed=seed), **options)
        found.add_trials([trial((value - 0.6) ** 2, x=value) for value in values])
        return found.ask(X).params

    url = f"sqlite:///{tmp_path / 'study.db'}"
    assert proposal(3) == proposal(3, storage=url) != proposal(4)


@pytest.mark.slow
def test_failures_keep_it_away() -> None:
    """The upper half of the range fails; the best values lie near it."""
    noise = np.random.default_rng(1)

    def wall(one: optuna.Trial) -> float:
        x = one.suggest_float("x", 0, 1)
        if x > 0.5:
            raise RuntimeError("out of memory")
        return -2 * abs(x - 0.4) + 0.1 * noise.normal()

    found = optimise(wall, 20, direction="maximize")
    failures = [one.state == TrialState.FAIL for one in found.trials]
    assert sum(failures[:8]) >= 1
    assert sum(failures[8:]) <= 3


def test_what_each_state_says(told: list[list[Measurement]]) -> None:
    found = study(direction="minimize")
    broken = trial(0.3, x=0.3)
    broken.set_constraint("memory", 1.0)
    kept = trial(0.4, x=0.4)
    kept.set_constraint("memory", -1.0)
    precise = trial(0.5, x=0.5)
    precise.set_user_attr("standard_error", 0.1)
    found.add_trials(
        [
            trial(0.2, x=0.2),
            trial(0.21, x=0.2),
            broken,
            kept,
            precise,
            trial(float("inf"), x=0.6),
            trial(state=TrialState.FAIL, x=0.7),
            trial(state=TrialState.RUNNING, x=0.8),
            trial(state=TrialState.PRUNED, x=0.9),  # without a value it says nothing
        ]
    )
    found.ask(X)
    assert told[0] == [
        Measurement({"x": 0.2}, -0.2, 0.0, "finished"),
        Measurement({"x": 0.2}, -0.21, 0.0, "finished"),
        Measurement({"x": 0.3}, -0.3, 0.0, "finished", allowed=False),
        Measurement({"x": 0.4}, -0.4, 0.0, "finished"),
        Measurement({"x": 0.5}, -0.5, pytest.approx(0.01), "finished"),
        Measurement({"x": 0.6}, None, 0.0, "failed"),
        Measurement({"x": 0.7}, None, 0.0, "failed"),
        Measurement({"x": 0.8}, None, 0.0, "pending"),
    ]


def test_pruned_trials_count_with_what_their_curve_predicts(told: list[list[Measurement]]) -> None:
    found = study(direction="maximize")
    for rise in (0.1, 0.2, 0.3):
        whole = trial(0.5 + rise, x=rise)
        whole.intermediate_values = {0: 0.0, 10: 0.5, 20: 0.5 + rise}
        found.add_trial(whole)
    stopped = trial(state=TrialState.PRUNED, x=0.9)
    stopped.intermediate_values = {0: 0.0, 12: 0.4}
    found.add_trial(stopped)
    found.ask(X)
    (*_, predicted) = told[0]
    assert predicted.state == "predicted"
    assert predicted.value == pytest.approx(0.4 + 0.2)
    assert predicted.variance == pytest.approx(0.01 * 4 / 3)


def test_without_curves_to_learn_from_a_pruned_trial_says_little(told: list[list[Measurement]]) -> None:
    found = study(direction="maximize")
    found.add_trials([trial(0.0, x=0.1), trial(2.0, x=0.2)])
    stopped = trial(state=TrialState.PRUNED, x=0.9)
    stopped.intermediate_values = {5: 0.7}
    found.add_trial(stopped)
    found.ask(X)
    assert told[0][-1] == Measurement({"x": 0.9}, 0.7, pytest.approx(2.0), "predicted")


def test_a_running_trial_is_known_before_it_asks(told: list[list[Measurement]]) -> None:
    found = study()
    found.add_trial(trial(0.1, x=0.1, y=0.1))
    one = found.ask()
    one.suggest_float("x", 0, 1)  # y is not asked for yet
    assert PROPOSED in found.trials[-1].system_attrs
    found.ask().suggest_float("x", 0, 1)
    assert Measurement({"x": 0.5, "y": 0.5}, None, 0.0, "pending") in told[-1]


def test_an_enqueued_trial_is_pending_with_its_own_values(told: list[list[Measurement]]) -> None:
    found = study()
    found.add_trial(trial(0.1, x=0.1, y=0.1))
    found.enqueue_trial({"x": 0.9, "y": 0.8})
    found.ask().suggest_float("x", 0, 1)
    found.ask().suggest_float("x", 0, 1)
    assert told[-1][-1] == Measurement({"x": 0.9, "y": 0.8}, None, 0.0, "pending")


def test_constraints_func_works_as_in_optunas_samplers(told: list[list[Measurement]]) -> None:
    sampler = LeverlSampler(seed=0, constraints_func=lambda one: (one.params["x"] - 0.5,))
    found = study(sampler)
    found.enqueue_trial({"x": 0.9})
    found.enqueue_trial({"x": 0.1})
    found.optimize(lambda one: one.suggest_float("x", 0, 1), n_trials=2)
    found.ask(X)
    assert [one.allowed for one in told[-1]] == [False, True]


def conditional(one: optuna.Trial) -> float:
    kind = one.suggest_categorical("kind", ["a", "b"])
    if kind == "a":
        return one.suggest_float("only_a", 0, 1)
    return one.suggest_int("only_b", 1, 4) / 4


def test_conditional_parameters_are_proposed_together_with_their_condition() -> None:
    found = optimise(conditional, 10, sampler=LeverlSampler(seed=2), direction="maximize")
    planned = [set(proposed(one)) for one in found.trials[4:]]
    assert all(names in ({"kind", "only_a"}, {"kind", "only_b"}) for names in planned)
    assert all(proposed(one) == one.params for one in found.trials[4:])


def proposed(one: FrozenTrial) -> dict[str, Any]:
    """What was planned for the trial, in the parameters' words."""
    planned = json.loads(one.system_attrs[PROPOSED])
    return {name: "ab"[int(value)] if name == "kind" else value for name, value in planned.items()}


def test_replicates_can_be_switched_off() -> None:
    """A space of six cells: without replicates all are tried before any comes again."""

    def noisy(one: optuna.Trial) -> float:
        return one.suggest_int("x", 0, 5) + noise.normal()

    noise = np.random.default_rng(0)
    found = optimise(noisy, 6, sampler=LeverlSampler(seed=0, replicates=False))
    assert len({one.params["x"] for one in found.trials}) == 6
    found.optimize(noisy, n_trials=2)  # used up: any again
    assert len(found.trials) == 8


def test_noise_brings_replicates() -> None:
    noise = np.random.default_rng(0)

    def noisy(one: optuna.Trial) -> float:
        return one.suggest_int("x", 0, 20) / 20 + noise.normal()

    found = optimise(noisy, 20, direction="maximize")
    assert len({one.params["x"] for one in found.trials}) < 20


def test_ranges_may_move(told: list[list[Measurement]]) -> None:
    found = study()
    found.add_trial(trial(0.1, x=0.9))
    found.ask({"x": FloatDistribution(0, 1)})
    found.ask({"x": FloatDistribution(0, 0.5)})
    asked = found.ask({"x": FloatDistribution(0, 0.5)})
    assert told[-1][0].params == {"x": 0.9}  # outside the present range, and known nevertheless
    assert 0 <= asked.params["x"] <= 0.5


def test_proposals_lie_in_the_present_range() -> None:
    found = study(LeverlSampler(seed=0, n_startup_trials=2), direction="maximize")
    found.add_trials([trial(value, x=value) for value in (0.1, 0.4, 0.7, 1.0)])
    narrow = IntDistribution(2, 10, step=2)
    for _ in range(2):
        one = found.ask({"x": FloatDistribution(0, 0.5), "n": narrow})
        found.tell(one, one.params["x"])
        assert one.params["x"] <= 0.5
        assert one.params["n"] in (2, 4, 6, 8, 10)


def test_several_objectives_are_refused() -> None:
    found = study(directions=["minimize", "maximize"])
    with pytest.raises(ConfigError, match=r"optimises one objective, and study .* has 2.*set_constraint"):
        found.ask(X)


def test_threads_do_not_propose_the_same(told: list[list[Measurement]]) -> None:
    found = study()
    found.add_trial(trial(0.1, x=0.1))
    found.optimize(lambda one: one.suggest_float("x", 0, 1), n_trials=6, n_jobs=3)
    for earlier, later in itertools.pairwise(told):
        assert len(later) > len(earlier)  # each saw the proposal of the one before


def test_it_can_be_pickled_and_reseeded() -> None:
    sampler = pickle.loads(pickle.dumps(LeverlSampler(seed=1)))
    sampler.reseed_rng()
    found = study(sampler)
    found.add_trials([trial(value, x=value) for value in (0.1, 0.4, 0.7)])
    assert 0 <= found.ask().suggest_float("x", 0, 1) <= 1


def test_the_recommendation_is_not_the_luckiest_trial() -> None:
    found = study(direction="maximize")
    values = {0.2: (0.5, 0.4, 0.5), 0.5: (0.7, 0.75, 0.65), 0.8: (0.95, -0.3, -0.2), 0.9: (0.1, 0.0)}
    found.add_trials([trial(value, x=x) for x, many in values.items() for value in many])
    forbidden = trial(2.0, x=0.55)
    forbidden.set_constraint("memory", 1.0)
    found.add_trials([forbidden, trial(state=TrialState.FAIL, x=0.6)])
    sampler = found.sampler
    assert isinstance(sampler, LeverlSampler)
    assert sampler.recommend(found).params == {"x": 0.5}
    few = study(direction="minimize")
    with pytest.raises(ConfigError, match="has no complete trial"):
        sampler.recommend(few)
    few.add_trials([trial(0.2, x=0.2), trial(0.1, x=0.1)])
    assert sampler.recommend(few).params == {"x": 0.1}
