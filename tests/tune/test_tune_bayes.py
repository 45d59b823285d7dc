from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from leverl.backends.leverl import LeverlBackend
from leverl.errors import ConfigError
from leverl.record.run_record import Outcome
from leverl.tune.model import Cost, History, Prediction, RunState
from leverl.tune.samplers.bayes import BayesSampler, create
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space, build, key
from leverl.tune.surrogate.from_history import measurements

CONTINUOUS = {
    "actor_learning_rate": {"min": 1e-5, "max": 1e-1, "log": True},
    "kl_coef": {"min": 1e-4, "max": 1e-1, "log": True, "or": 0},
}
GRID = {"ppo_epochs": [1, 2, 3], "clip_range": [0.1, 0.2]}
BASE = {
    "batch_size": 256,
    "mini_batch_size": 128,
    "ppo_epochs": 1,
    "clip_range": 0.2,
    "actor_learning_rate": 1e-3,
}


def make(content: dict[str, Any], constraints: tuple[str, ...] = ()) -> Space:
    backend = LeverlBackend("grpo", BASE)
    return build(content, constraints, backend.base, backend.resolve)


def play(tools: ModuleType, space: Space, count: int, score: Any, startup: int = 4) -> list[RunState]:
    """Bayesian search on a function that returns a score, or an outcome for a failure."""
    bayes, states = BayesSampler(3, startup), [tools.state("c000", {}, 0.5)]
    for number in range(1, count + 1):
        (params,) = bayes.suggest(space, tools.history(*states), 1)
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
    return states


def test_it_says_what_runs() -> None:
    assert create(0).name == "Matérn GP, qLogNEI"


def test_before_the_first_run_the_base_is_on_its_way() -> None:
    space = make(GRID)
    found = create(0).suggest(space, History(()), 10)
    assert len({key(params) for params in found}) == 5
    assert {"ppo_epochs": 1, "clip_range": 0.2} not in found


def test_the_same_history_gives_the_same_suggestion(tools: ModuleType) -> None:
    space = make(CONTINUOUS)
    history = tools.history(*play(tools, space, 5, lambda params: params["actor_learning_rate"]))
    assert create(0).suggest(space, history, 2) == create(0).suggest(make(CONTINUOUS), history, 2)
    assert create(0).suggest(space, history, 2) != create(1).suggest(space, history, 2)


def test_lower_is_better_is_the_mirror_image(tools: ModuleType) -> None:
    space = make(CONTINUOUS)
    states = play(tools, space, 6, lambda params: params["actor_learning_rate"])
    flipped = [replace(s, score=replace(s.score, mean=-s.score.mean)) for s in states if s.score is not None]
    assert create(0).suggest(space, tools.history(*states), 1) == create(0).suggest(
        space, tools.history(*flipped, maximize=False), 1
    )


def test_it_keeps_away_from_where_runs_fail(tools: ModuleType) -> None:
    space = make(CONTINUOUS)

    def wall(params: Any) -> float | Outcome:
        rate = params["actor_learning_rate"]
        return Outcome.OUT_OF_MEMORY if rate > 1e-2 else rate * 100

    states = play(tools, space, 16, wall)
    later = states[5:]
    assert sum(state.outcome is Outcome.OUT_OF_MEMORY for state in later) <= 4
    assert max(state.score.mean for state in later if state.score) > 0.4


def test_constraints_are_kept(tools: ModuleType) -> None:
    space = make(
        {"batch_size": {"min": 64, "max": 512}, "actor_learning_rate": CONTINUOUS["actor_learning_rate"]},
        ("batch_size >= 128",),
    )
    for state in play(tools, space, 6, lambda params: params["batch_size"] / 512)[1:]:
        assert space.admit(state.run.params).params == state.run.params


def test_running_runs_count_and_what_has_no_effect_is_dropped(tools: ModuleType) -> None:
    space = make(
        {
            "clip_range": {"min": 0.05, "max": 0.4, "log": True},
            "mini_batch_size": [128, 256],
            "kl_coef": [0.0, 0.1],
        }
    )
    states = play(tools, space, 6, lambda params: 0.1 * len(params))
    first = BayesSampler(3).suggest(space, tools.history(*states), 1)
    running = tools.state("c099", first[0], outcome=None)
    found = BayesSampler(3).suggest(space, tools.history(*states, running), 2)
    assert len({key(params) for params in [*first, *found]}) == 3
    assert all(("clip_range" in params) == (params["mini_batch_size"] == 128) for params in found)


def test_a_space_where_nothing_fits_says_why() -> None:
    with pytest.raises(ConfigError, match=r"no configuration of the space can run.*ppo_epochs > 7"):
        create(0).suggest(make({"ppo_epochs": [1, 2]}, ("ppo_epochs > 7",)), History(()), 1)


def test_the_first_suggestions_need_no_botorch() -> None:
    import subprocess
    import sys

    program = (
        "import sys; from leverl.tune.samplers.bayes import create; from leverl.tune.model import History;"
        "from leverl.tune.space.space import free; from leverl.tune.space.axis import Axis;"
        "print(create(0).suggest(free((Axis('x'),)), History(()), 2) != [], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_what_the_runs_say(tools: ModuleType) -> None:
    space = make(CONTINUOUS)
    params = {"actor_learning_rate": 1e-3, "kl_coef": 0.0}
    finished = tools.state("c001", params, 0.7, seconds=8.0)
    stopped = replace(
        tools.state("c002", params, outcome=Outcome.STOPPED),
        prediction=Prediction(0.4, 0.1),
        cost=Cost(1, 100, 1000, 2.0),
    )
    states = [
        finished,
        stopped,
        tools.state("c003", params, outcome=None),
        tools.state("c004", params, outcome=Outcome.OUT_OF_MEMORY),
        tools.state("c005", params, outcome=Outcome.LOST),
        tools.state("c006", params, outcome=Outcome.INTERRUPTED),
        tools.state("c007", params, float("nan")),
        tools.state("c008", params, outcome=Outcome.STOPPED),
    ]
    found = measurements(space, tools.history(*states))
    assert [one.state for one in found] == ["finished", "predicted", "pending", "failed", "failed", "failed"]
    assert [one.value for one in found[:2]] == [0.7, 0.4]
    assert [one.variance for one in found[:2]] == pytest.approx([1e-4, 1e-2])
    assert [one.cost for one in found[:2]] == [8.0, 8.0]  # a quarter of the steps took two seconds
    assert [one.value for one in measurements(space, tools.history(*states, maximize=False))[:2]] == [
        -0.7,
        -0.4,
    ]


def test_a_base_outside_the_space_is_no_point_of_it(tools: ModuleType) -> None:
    space = make({"actor_learning_rate": {"min": 1e-5, "max": 1e-4, "log": True}})
    inside = tools.state("c001", {"actor_learning_rate": 2e-5}, 0.5)
    found = measurements(space, tools.history(tools.state("c000", {}, 0.9), inside))
    assert [one.params for one in found] == [{"actor_learning_rate": 2e-5}]
    assert measurements(space, History(())) == []


def test_a_configuration_that_breaks_a_bound_is_marked(tools: ModuleType) -> None:
    space = make(CONTINUOUS, ("kl_divergence <= 0.1",))
    kept, broken = ({"actor_learning_rate": rate, "kl_coef": 0.0} for rate in (1e-4, 1e-2))
    metric = space.metric_constraints[0].metric
    states = [
        replace(tools.state("c001", kept, 0.5), bounded={metric: 0.05}),
        replace(tools.state("c002", broken, 0.9), bounded={metric: 0.5}),
        tools.state("c003", broken, outcome=None),
    ]
    found = measurements(space, tools.history(*states))
    assert [one.allowed for one in found] == [True, False, True]


def test_an_endless_space_where_nothing_fits_says_why() -> None:
    def refuse(params: Any) -> Any:
        raise ConfigError("too large")

    axis = Axis("actor_learning_rate", low=1e-5, high=1e-4, scale="log")
    with pytest.raises(ConfigError, match=r"no configuration of the space can run.*too large"):
        create(0).suggest(Space((axis,), (), {}, refuse), History(()), 1)
