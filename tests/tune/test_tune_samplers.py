from types import ModuleType
from typing import Any

import pytest

from leverl.backends.leverl import LeverlBackend
from leverl.errors import ConfigError
from leverl.plugins import load
from leverl.record.run_record import Outcome
from leverl.tune.model import History, Sampler
from leverl.tune.samplers.bayes import BayesSampler
from leverl.tune.space.space import Space, build, key

STARTUP = 6  # more than the start-up design of two levers
CONTINUOUS = {
    "actor_learning_rate": {"min": 1e-5, "max": 1e-1, "log": True},
    "kl_coef": {"min": 1e-4, "max": 1e-1, "log": True, "or": 0},
}
BASE = {
    "batch_size": 256,
    "mini_batch_size": 128,
    "ppo_epochs": 1,
    "clip_range": 0.2,
    "actor_learning_rate": 1e-3,
}
GRID = {"ppo_epochs": [1, 2, 3], "clip_range": [0.1, 0.2]}


def make(content: dict[str, Any], constraints: tuple[str, ...] = ()) -> Space:
    backend = LeverlBackend("grpo", BASE)
    return build(content, constraints, backend.base, backend.resolve)


def sampler(name: str, seed: int = 0) -> Sampler:
    found: Sampler = load("leverl.tune.samplers", name, "strategy").create(seed)
    return found


def base(tools: ModuleType) -> History:
    return tools.history(tools.state("c000", {}, 0.5))


def test_unknown_samplers_name_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown strategy 'bays'. Did you mean 'bayes'.*grid, .*random"):
        sampler("bays")


def test_they_say_what_runs() -> None:
    assert [sampler(name).name for name in ("grid", "random", "bayes")] == [
        "cell by cell",
        "random search",
        "Matérn GP, qLogNEI",
    ]


def test_the_grid_skips_the_base_and_ends(tools: ModuleType) -> None:
    space, history = make(GRID), base(tools)
    cells = sampler("grid").suggest(space, history, 10)
    assert len(cells) == 5
    assert {"ppo_epochs": 1, "clip_range": 0.2} not in cells  # the base
    assert sampler("grid").suggest(space, history, 2) == cells[:2]


def test_the_grid_goes_on_where_it_was(tools: ModuleType) -> None:
    space, history = make(GRID), base(tools)
    cells = sampler("grid").suggest(space, history, 10)
    for number, cell in enumerate(cells, 1):
        assert sampler("grid").suggest(space, history, 1) == [cell]
        history = History((*history.runs, tools.state(f"c{number:03d}", cell, 0.5)))
    assert sampler("grid").suggest(space, history, 1) == []


def test_a_grid_needs_values() -> None:
    with pytest.raises(ConfigError, match="needs the values of actor_learning_rate, kl_coef"):
        sampler("grid").suggest(make(CONTINUOUS), History(()), 1)


@pytest.mark.parametrize("name", ["grid", "random", "bayes"])
def test_a_space_where_nothing_fits_says_why(name: str) -> None:
    space = make({"ppo_epochs": [1, 2]}, ("ppo_epochs > 7",))
    with pytest.raises(ConfigError, match=r"no configuration of the space can run.*ppo_epochs > 7"):
        sampler(name).suggest(space, History(()), 1)


@pytest.mark.parametrize("name", ["random", "bayes"])
def test_the_same_history_gives_the_same_suggestion(name: str, tools: ModuleType) -> None:
    space, history = make(CONTINUOUS), base(tools)
    assert sampler(name).suggest(space, history, 3) == sampler(name).suggest(space, history, 3)
    assert sampler(name).suggest(space, history, 3) != sampler(name, seed=1).suggest(space, history, 3)


def test_random_search_does_not_depend_on_the_places_free(tools: ModuleType) -> None:
    space, history = make(CONTINUOUS), base(tools)
    together = sampler("random").suggest(space, history, 2)
    first = sampler("random").suggest(space, history, 1)
    history = History((*history.runs, tools.state("c001", first[0], outcome=None)))
    assert together == first + sampler("random").suggest(space, history, 1)
    assert sampler("random").suggest(space, History(()), 2) == together


@pytest.mark.parametrize("name", ["random", "bayes"])
def test_finite_spaces_end(name: str, tools: ModuleType) -> None:
    found = sampler(name).suggest(make(GRID), base(tools), 20)
    assert len({key(params) for params in found}) == len(found) == 5


def test_random_search_reaches_the_value_beside_the_range(tools: ModuleType) -> None:
    found = sampler("random").suggest(make(CONTINUOUS), base(tools), 40)
    assert 3 <= sum(params["kl_coef"] == 0 for params in found) <= 20


def play(tools: ModuleType, space: Space, count: int, score: Any) -> list[Any]:
    """Bayesian search on a function that returns a score, or an outcome for a failure."""
    bayes, states = BayesSampler(3), [tools.state("c000", {}, 0.5)]
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


def test_bayes_keeps_away_from_where_runs_fail(tools: ModuleType) -> None:
    """A score that rises towards a wall of memory, the case where forgotten failures are proposed for ever."""
    space = make(
        {"actor_learning_rate": {"min": 1e-5, "max": 1e-1, "log": True}, "kl_coef": CONTINUOUS["kl_coef"]}
    )

    def wall(params: Any) -> float | Outcome:
        rate = params["actor_learning_rate"]
        return Outcome.OUT_OF_MEMORY if rate > 1e-3 else rate * 1000

    states = play(tools, space, STARTUP + 6, wall)
    later = states[STARTUP + 1 :]
    assert sum(state.outcome is Outcome.OUT_OF_MEMORY for state in later) <= 3
    assert max(state.score.mean for state in later if state.score) > 0.6


def test_bayes_respects_constraints_and_sizes(tools: ModuleType) -> None:
    space = make(
        {"batch_size": {"min": 64, "max": 512}, "actor_learning_rate": CONTINUOUS["actor_learning_rate"]},
        ("batch_size >= 128",),
    )
    states = play(tools, space, STARTUP + 2, lambda params: params["batch_size"] / 512)
    for state in states[1:]:
        assert space.admit(state.run.params).params == state.run.params


def test_bayes_counts_running_runs_and_drops_what_has_no_effect(tools: ModuleType) -> None:
    space = make(
        {
            "clip_range": {"min": 0.05, "max": 0.4, "log": True},
            "mini_batch_size": [128, 256],
            "kl_coef": [0.0, 0.1],
        }
    )
    states = play(tools, space, STARTUP, lambda params: 0.1 * len(params))
    running = tools.state("c099", {"clip_range": 0.11, "mini_batch_size": 128, "kl_coef": 0.0}, outcome=None)
    found = BayesSampler(3).suggest(space, tools.history(*states, running), 2)
    assert len({key(params) for params in found}) == 2
    assert all(("clip_range" in params) == (params["mini_batch_size"] == 128) for params in found)
