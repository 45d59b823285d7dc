"""Samplers of other packages by name, and the Sobol sequence."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from leverl.backends.leverl import LeverlBackend
from leverl.errors import ConfigError, EnvironmentProblem
from leverl.plugins import Dependency
from leverl.record.run_record import Outcome
from leverl.tune.model import History, Params, Prediction, RunState
from leverl.tune.samplers import _told
from leverl.tune.samplers.hyperopt import tpe as hyperopt_tpe
from leverl.tune.samplers.optuna import _study
from leverl.tune.samplers.optuna import cmaes as optuna_cmaes
from leverl.tune.sampling import check_sampler, sampler_named, sampler_names
from leverl.tune.space.space import Space, build, key

QUICK = ["sobol", "random", "optuna:tpe", "optuna:cmaes", "hyperopt:tpe"]
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in ("optuna:gp", "ax"))]

BASE = {
    "batch_size": 256,
    "mini_batch_size": 128,
    "ppo_epochs": 1,
    "clip_range": 0.2,
    "actor_learning_rate": 1e-3,
}
MIXED = {
    "actor_learning_rate": {"min": 1e-5, "max": 1e-1, "log": True},
    "kl_coef": {"min": 1e-4, "max": 1e-1, "log": True, "or": 0},
    "gae_lambda": {"min": 0.5, "max": 0.999, "logit": True},
    "mini_batch_size": {"min": 32, "max": 256, "pow2": True},
    "ppo_epochs": {"min": 1, "max": 4},
    "temperature": {"min": 0.6, "max": 1.2, "step": 0.2},
    "loss_aggregation": ["token_mean", "seq_mean_token_mean"],
}
GRID = {"ppo_epochs": [1, 2, 3], "clip_range": [0.1, 0.2]}


def make(content: dict[str, Any], constraints: tuple[str, ...] = (), algorithm: str = "ppo") -> Space:
    backend = LeverlBackend(algorithm, BASE)
    return build(content, constraints, backend.base, backend.resolve)


@pytest.fixture
def space() -> Space:
    return make(MIXED)


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "ax":
        pytest.importorskip("ax")
    found: str = request.param
    return found


def play(
    tools: ModuleType,
    name: str,
    space: Space,
    count: int,
    score: Callable[[Params], float | Outcome],
    *,
    maximize: bool = True,
) -> History:
    """A search, one run after the other."""
    states: list[RunState] = [tools.state("c000", {}, 0.0)]
    for number in range(1, count + 1):
        (params,) = sampler_named(name, 5).suggest(space, tools.history(*states, maximize=maximize), 1)
        result = score(params)
        failed = isinstance(result, Outcome)
        states.append(
            tools.state(
                f"c{number:03d}",
                params,
                None if failed else result,
                outcome=result if failed else Outcome.FINISHED,
            )
        )
    return tools.history(*states, maximize=maximize)  # type: ignore[no-any-return]


def test_names_are_listed_and_mistakes_answered() -> None:
    assert {"ax", "bayes", "grid", "hyperopt:tpe", "optuna:cmaes", "optuna:gp", "optuna:tpe"} <= {
        *sampler_names()
    }
    assert {"random", "sobol"} <= {*sampler_names()}
    with pytest.raises(ConfigError, match=r"unknown strategy 'optuna:tpee'. Did you mean 'optuna:tpe'\?"):
        check_sampler("optuna:tpee")
    with pytest.raises(
        ConfigError, match=r"'optuna'. Did you mean optuna:cmaes or optuna:gp or optuna:tpe\?.*sobol"
    ):
        sampler_named("optuna", 0)


def test_a_sampler_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperopt_tpe, "HYPEROPT", Dependency("no_such_package", "hyperopt"))
    with pytest.raises(EnvironmentProblem, match=r"hyperopt:tpe. Install it with.*leverl\[hyperopt\]"):
        sampler_named("hyperopt:tpe", 0)
    monkeypatch.setattr(optuna_cmaes, "CMAES", Dependency("no_such_package", "cmaes"))
    with pytest.raises(EnvironmentProblem, match=r"leverl\[cmaes\]"):
        sampler_named("optuna:cmaes", 0)


def test_suggestions_can_run_are_new_and_follow_from_the_history(
    name: str, space: Space, tools: ModuleType
) -> None:
    score = {"optuna:gp": 12, "hyperopt:tpe": 22, "ax": 6}.get(name, 14)
    history = play(tools, name, space, score, lambda params: float(np.log10(params["actor_learning_rate"])))
    running = tools.state("c099", space.sample(np.random.default_rng(0), 1)[0], outcome=None)
    history = History((*history.runs, running))
    found = sampler_named(name, 5).suggest(space, history, 2)
    assert found == sampler_named(name, 5).suggest(space, history, 2)
    assert found != sampler_named(name, 6).suggest(space, history, 2)
    started = [state.run.params for state in history.runs[1:]]
    assert len({key(params) for params in [*started, *found]}) == len(started) + 2
    for params in [*started, *found]:
        assert space.admit(params).params == params


@pytest.mark.parametrize("name", QUICK)
def test_finite_spaces_end(name: str, tools: ModuleType) -> None:
    space = make(GRID if name != "optuna:cmaes" else {"ppo_epochs": {"min": 1, "max": 3}}, algorithm="grpo")
    found = sampler_named(name, 0).suggest(space, tools.history(tools.state("c000", {}, 0.5)), 20)
    assert len({key(params) for params in found}) == len(found) == (space.size or 0) - 1  # all but the base


@pytest.mark.parametrize("name", QUICK)
def test_a_space_where_nothing_fits_says_why(name: str) -> None:
    content: Any = {"min": 1, "max": 2} if name == "optuna:cmaes" else [1, 2]
    with pytest.raises(ConfigError, match=r"ppo_epochs > 7"):
        sampler_named(name, 0).suggest(make({"ppo_epochs": content}, ("ppo_epochs > 7",)), History(()), 1)


@pytest.mark.parametrize("name", QUICK)
def test_constraints_are_kept(name: str, tools: ModuleType) -> None:
    space = make(
        {"ppo_epochs": {"min": 1, "max": 4}, "mini_batch_size": [64, 128, 256]}, ("ppo_epochs >= 3",)
    )
    found = sampler_named(name, 1).suggest(space, tools.history(tools.state("c000", {}, 0.5)), 4)
    assert [params["ppo_epochs"] >= 3 for params in found] == [True] * 4


def test_the_sobol_sequence_is_even_and_does_not_depend_on_the_places_free(tools: ModuleType) -> None:
    space = make(
        {"clip_range": {"min": 0.1, "max": 0.4}, "temperature": {"min": 0.5, "max": 1.5}}, algorithm="grpo"
    )
    history = play(tools, "sobol", space, 8, lambda params: 0.0)
    started = [state.run.params for state in history.runs[1:]]
    base = tools.history(tools.state("c000", {}, 0.5))
    assert started == sampler_named("sobol", 5).suggest(space, base, 8)
    for axis in space.axes:  # one point in each eighth, as no eight random draws have
        places = [int(axis.position(params[axis.name]) * 8) for params in started]
        assert sorted(places) == list(range(8))


def test_cmaes_needs_a_range() -> None:
    with pytest.raises(ConfigError, match=r"ppo_epochs, clip_range\s+have lists.*optuna:tpe"):
        sampler_named("optuna:cmaes", 0).suggest(make(GRID, algorithm="grpo"), History(()), 1)


def slope(params: Params) -> float:
    """Best at a learning rate of 1e-3, between 0 and -2."""
    return -abs(float(np.log10(params["actor_learning_rate"])) + 3)


@pytest.mark.parametrize("maximize", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize("name", ["optuna:tpe", "optuna:cmaes", "hyperopt:tpe"])
def test_they_go_where_the_scores_are_better(name: str, maximize: bool, tools: ModuleType) -> None:
    space = make(
        {"actor_learning_rate": MIXED["actor_learning_rate"], "clip_range": {"min": 0.1, "max": 0.4}}
    )
    sign = 1.0 if maximize else -1.0
    history = play(tools, name, space, 40, lambda params: sign * slope(params), maximize=maximize)
    scores = [sign * state.score.mean for state in history.runs[1:] if state.score is not None]
    assert np.mean(scores[-20:]) > -0.85  # random draws: -1; the wrong way round: below


def told_trials(space: Space, history: History, **options: Any) -> list[optuna.trial.FrozenTrial]:
    return _study.trials(
        space, history, options.pop("pending", []), every_parameter=options.pop("every", False)
    )


def test_what_optuna_is_told(tools: ModuleType) -> None:
    space = make({"actor_learning_rate": MIXED["actor_learning_rate"]})
    rate = {"actor_learning_rate": 1e-2}
    stopped = replace(
        tools.state("c004", {"actor_learning_rate": 4e-3}, outcome=Outcome.STOPPED),
        prediction=Prediction(0.3, 0.1),
    )
    history = tools.history(
        tools.state("c000", {}, 0.5),
        tools.state("c001", rate, 0.6),
        tools.state("c001", rate, 0.8, seed=1001),
        tools.state("c002", {"actor_learning_rate": 2e-3}, outcome=Outcome.OUT_OF_MEMORY),
        tools.state("c003", {"actor_learning_rate": 3e-3}, outcome=Outcome.LOST),
        stopped,
        tools.state("c005", {"actor_learning_rate": 5e-3}, outcome=None),
        tools.state("c006", {"actor_learning_rate": 0.9}, 0.9),  # outside the space
        tools.state("c007", {"actor_learning_rate": 7e-3}, 0.7),
        tools.state("c007", {"actor_learning_rate": 7e-3}, seed=1001, outcome=Outcome.CRASHED),
    )
    trials = told_trials(space, history, pending=[{"actor_learning_rate": 8e-3}])
    found = {t.params["actor_learning_rate"]: (t.state, t.value, [*t.constraints.values()]) for t in trials}
    assert found == {
        1e-3: (TrialState.COMPLETE, 0.5, [-1.0]),
        1e-2: (TrialState.COMPLETE, pytest.approx(0.7), [-1.0]),
        2e-3: (TrialState.COMPLETE, pytest.approx(0.3), [1.0]),  # a failure: the worst value
        4e-3: (TrialState.COMPLETE, 0.3, [-1.0]),
        5e-3: (TrialState.RUNNING, None, []),
        7e-3: (TrialState.COMPLETE, pytest.approx(0.3), [1.0]),  # failed on one of its seeds
        8e-3: (TrialState.RUNNING, None, []),
    }


def test_the_worst_is_the_highest_where_less_is_better(tools: ModuleType) -> None:
    space = make({"actor_learning_rate": MIXED["actor_learning_rate"]})
    results = _told.told(
        space,
        tools.history(
            tools.state("c000", {}, 0.5),
            tools.state("c001", {"actor_learning_rate": 2e-3}, 0.9),
            maximize=False,
        ),
    )
    assert _told.worst(results, maximize=False) == 0.9
    assert _told.worst(results, maximize=True) == 0.5
    assert _told.worst([], maximize=True) == 0.0


def test_levers_without_effect_and_values_beside_a_range(tools: ModuleType) -> None:
    """clip_range has no effect with one update per rollout."""
    space = make(
        {
            "clip_range": {"min": 0.1, "max": 0.4},
            "mini_batch_size": [128, 256],
            "kl_coef": MIXED["kl_coef"],
        },
        algorithm="grpo",
    )
    history = tools.history(
        tools.state("c000", {}, 0.5),
        tools.state("c001", {"mini_batch_size": 256, "kl_coef": 0.0}, 0.6),
    )
    free = told_trials(space, history)[-1].params
    assert free == {"mini_batch_size": 256, "kl_coef.on": False}
    whole = told_trials(space, history, every=True)[-1].params
    assert whole == {"mini_batch_size": 256, "kl_coef.on": False, "kl_coef": 1e-4, "clip_range": 0.2}


def test_what_hyperopt_is_told(space: Space) -> None:
    import hyperopt

    params = space.sample(np.random.default_rng(0), 1)[0]

    def result(value: float | None, infeasible: bool, maximize: bool) -> dict[str, Any]:
        told = _told.Told(params, value, infeasible)
        found = hyperopt_tpe._document(hyperopt, space, told, 0, maximize=maximize)
        outcome: dict[str, Any] = found["result"]
        return outcome

    assert result(0.5, False, True) == {"status": "ok", "loss": -0.5}  # hyperopt minimises
    assert result(0.5, False, False) == {"status": "ok", "loss": 0.5}
    assert result(None, True, True) == {"status": "fail"}
    assert result(None, False, True) == {"status": "new"}


def test_hyperopt_labels_go_there_and_back(space: Space) -> None:
    for params in space.sample(np.random.default_rng(0), 50):
        for axis in space.axes:
            if axis.name in params:
                labels = hyperopt_tpe._labels(axis, params[axis.name])
                back = hyperopt_tpe._value(axis, {label: [value] for label, value in labels.items()})
                assert back == pytest.approx(params[axis.name])


def test_the_nearest_is_taken_where_the_wanted_has_run(tools: ModuleType) -> None:
    from leverl.tune.samplers._resolve import nearest_new

    space = make({"ppo_epochs": {"min": 1, "max": 4}, "clip_range": [0.1, 0.2, 0.3]})
    wanted = {"ppo_epochs": 3, "clip_range": 0.3}
    generator = np.random.default_rng(0)
    assert nearest_new(space, wanted, set(), generator) == wanted
    near = nearest_new(space, wanted, {key(wanted)}, generator)
    assert near in ({"ppo_epochs": 2, "clip_range": 0.3}, {"ppo_epochs": 4, "clip_range": 0.3})
    everything = {key(space.admit(cell).params or {}) for cell in space.cells()}
    assert nearest_new(space, wanted, everything, generator) is None
