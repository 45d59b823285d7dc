"""Strategies on made-up histories: which phase acts, and what is kept for the proof."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leverl.errors import ConfigError
from leverl.record.run_record import Outcome
from leverl.tune.budget import Account
from leverl.tune.model import CONFIRM, GRID, RACE, SEARCH, History, Start
from leverl.tune.phases.search import Search
from leverl.tune.plan import prepare
from leverl.tune.samplers.random import RandomSampler
from leverl.tune.strategy import DONE, Step, Strategy
from leverl.tune.study_file import load_study

P1, P2, P3, P4 = ({"actor_learning_rate": 1e-3, "ppo_epochs": n} for n in (1, 2, 3, 4))


def strategy(tools: ModuleType, **changes: Any) -> Strategy:
    return prepare(load_study(tools.study(**changes)), Path("s")).strategy


def step(found: Strategy, history: History, free: int, seconds: float = 0.0) -> Step:
    return found.next(history, free, Account(found.study.budget, history, seconds, 2))


def ids(found: Step) -> list[str]:
    return [decision.run.id for decision in found.decisions if isinstance(decision, Start)]


def searched(tools: ModuleType) -> list[Any]:
    """A search of four runs: what a budget of ten leaves for it."""
    return [
        tools.state("c000", {}, 0.5),
        tools.state("c001", P2, 0.8),
        tools.state("c002", P3, 0.7),
        tools.state("c003", P4, 0.1),
    ]


def test_the_search_leaves_the_proof_its_runs(tools: ModuleType) -> None:
    found = strategy(tools)  # 10 runs: 2 × 2 for the proof, 2 for the race
    assert ids(step(found, tools.history(*searched(tools)[:3]), 4)) == ["003-s1000"]
    last = [*searched(tools)[:3], tools.state("c003", P4, outcome=None)]
    assert step(found, tools.history(*last), 1) == Step(SEARCH)


def test_then_the_race_and_then_the_proof(tools: ModuleType) -> None:
    found = strategy(tools)
    raced = step(found, tools.history(*searched(tools)), 2)
    assert (raced.phase, ids(raced)) == (RACE, ["001-s2000", "002-s2000"])
    assert [phase for phase, _ in raced.finished] == [SEARCH]
    states = searched(tools)
    states += [
        tools.state(c, p, s, seed=2000, phase=RACE) for c, p, s in (("c001", P2, 0.8), ("c002", P3, 0.2))
    ]
    proof = step(found, tools.history(*states), 2)
    assert (proof.phase, ids(proof)) == (CONFIRM, ["001-s3000", "000-s3000"])
    for seed in (3000, 3001):
        states += [tools.state(c, {}, 0.5, seed=seed, phase=CONFIRM) for c in ("c001", "c000")]
    over = step(found, tools.history(*states), 2)
    assert (over.phase, over.out_of_budget) == (DONE, False)


def test_a_budget_of_hours_ends_the_search_in_time(tools: ModuleType) -> None:
    found = strategy(tools, budget={"hours": 1})
    scored = enumerate((({}, 0.1), (P2, 0.8), (P3, 0.7)))
    history = tools.history(*(tools.state(f"c{n:03d}", p, score, seconds=100.0) for n, (p, score) in scored))
    # on two places: 50 s a run; 2 runs for the race and 4 for the proof are kept
    assert step(found, history, 2, seconds=3600 - 400).phase == SEARCH
    assert step(found, history, 2, seconds=3600 - 340).phase == RACE
    over = step(found, history, 2, seconds=3601)
    assert (over.phase, over.out_of_budget) == (DONE, True)


def test_running_runs_are_waited_for_at_the_end_of_a_budget(tools: ModuleType) -> None:
    found = strategy(tools, budget={"hours": 1})
    states = [tools.state("c000", {}, 0.5), tools.state("c001", P2, outcome=None)]
    assert step(found, tools.history(*states), 1, seconds=3601) == Step(SEARCH)


def test_a_study_that_is_complete_is_not_out_of_budget(tools: ModuleType) -> None:
    found = strategy(tools, budget={"hours": 1})
    states = [tools.state("c000", {}, 0.9, outcome=Outcome.FINISHED)]
    states += [tools.state(f"c{n:03d}", p, 0.1) for n, p in enumerate((P2, P3, P4), 1)]
    states += [
        tools.state("c000", {}, 0.9, seed=2000, phase=RACE),
        tools.state("c001", P2, 0.1, seed=2000, phase=RACE),
    ]
    over = step(found, tools.history(*states), 2, seconds=3601)
    assert (over.phase, over.out_of_budget) == (DONE, False)


def test_planned_runs(tools: ModuleType) -> None:
    assert strategy(tools).planned(History(())) == {SEARCH: 4, RACE: 2, CONFIRM: 4}
    grid = strategy(tools, strategy="grid", space={"ppo_epochs": [1, 2, 3]}, budget={})
    assert grid.planned(History(()))[SEARCH] == 3  # the base is one of the cells
    local = strategy(tools, strategy="random+grid", budget={"trials": 36})
    assert local.planned(History(())) == {SEARCH: 21, GRID: 9, RACE: 2, CONFIRM: 4}


def test_runs_left_over_are_planned_for_the_proof_once_it_has_begun(tools: ModuleType) -> None:
    found = strategy(tools, budget={"trials": 13})
    states = searched(tools)
    assert found.planned(tools.history(*states))[CONFIRM] == 4
    raced = [tools.state("c001", P2, 0.8, seed=2000 + n, phase=RACE) for n in range(3)]
    assert found.planned(tools.history(*states, *raced))[RACE] == 3  # more than what was kept for it
    states.append(tools.state("c001", P2, None, seed=3000, phase=CONFIRM, outcome=None))
    assert found.planned(tools.history(*states))[CONFIRM] == 8


def test_where_seeds_hardly_matter_the_search_goes_on(tools: ModuleType) -> None:
    """Thirty runs, four of them for the proof: eight for the race in full doubt, four in half of it."""
    found = strategy(tools, budget={"trials": 30}, seeds={"search": 1, "race": 4, "confirm": 2})
    scores = (0.1, 0.3, 0.5, 0.7, 0.9)
    states = [tools.state(f"c{n:03d}", P2 if n else {}, score) for n, score in enumerate(scores)]
    assert found.planned(tools.history(*states)) == {SEARCH: 18, RACE: 8, CONFIRM: 4}
    again = [tools.state(f"c{n:03d}", P2 if n else {}, scores[n], seed=1001) for n in range(3)]
    sure = tools.history(*states, *again)
    assert found.planned(sure) == {SEARCH: 22, RACE: 4, CONFIRM: 4}
    more = [tools.state(f"c{n:03d}", P2, 0.1) for n in range(5, 15)]
    assert step(found, tools.history(*states, *again, *more), 1).phase == SEARCH


def test_a_clear_leader_needs_a_pair_of_runs_only(tools: ModuleType) -> None:
    """Of thirty runs the race would keep eight; the search has used up the rest."""
    found = strategy(tools, budget={"trials": 30}, seeds={"search": 1, "race": 4, "confirm": 2})
    space = [({"actor_learning_rate": 10 ** (-1 - n / 10), "ppo_epochs": 1 + n % 4}) for n in range(18)]
    close = [tools.state(f"c{n:03d}", space[n] if n else {}, 0.5 + 0.01 * (n % 3)) for n in range(18)]
    assert step(found, tools.history(*close), 1).phase == RACE
    clear = [*close[:-1], tools.state("c017", space[17], 9.0)]
    assert step(found, tools.history(*clear), 1).phase == SEARCH


@pytest.mark.parametrize("budget", [{"steps": 4 * 60}, {"tokens": 60_000}, {"hours": 60 * 50 / 3600}])
def test_what_is_kept_for_the_race_is_a_share_of_what_the_budget_buys(
    tools: ModuleType, budget: dict[str, float]
) -> None:
    """Sixty runs, of which four are for the proof: 17 for the race, as with a budget of sixty runs."""
    seeds = {"search": 1, "race": 10, "confirm": 2}
    found = strategy(tools, budget=budget, seeds=seeds)
    states = [tools.state(f"c{n:03d}", P2 if n else {}, 0.1, seconds=100.0) for n in range(38)]
    assert step(found, tools.history(*states), 2, seconds=50 * 38).phase == SEARCH
    states += [tools.state("c038", P2, 0.1, seconds=100.0)]
    assert step(found, tools.history(*states), 1, seconds=50 * 39).phase == RACE
    assert strategy(tools, budget={"trials": 60}, seeds=seeds).study.race_runs == 17


def test_a_budget_that_pays_for_no_proof_is_searched_with(tools: ModuleType) -> None:
    found = strategy(tools, budget={"hours": 1}, seeds={"search": 1, "race": 1, "confirm": 5})
    states = [
        tools.state("c000", {}, 0.5, seconds=1200.0)
    ]  # six runs on two places: the proof alone takes ten
    assert step(found, tools.history(*states), 2, seconds=600).phase == SEARCH
    states += [tools.state(f"c{n:03d}", p, 0.4, seconds=1200.0) for n, p in enumerate((P2, P3, P4), 1)]
    assert step(found, tools.history(*states), 2, seconds=2400).phase == SEARCH


def test_duplicates_are_a_part_of_a_search_that_can_afford_them(tools: ModuleType) -> None:
    seeds = {"search": 1, "race": 1, "confirm": 2}
    small, large = (strategy(tools, seeds=seeds, budget={"trials": trials}).phases[0] for trials in (10, 60))
    assert isinstance(small, Search)
    assert isinstance(large, Search)
    assert (small.duplicates, large.duplicates) == (0, 3)
    twice = strategy(tools, seeds={**seeds, "search": 2}, budget={"trials": 60}).phases[0]
    assert isinstance(twice, Search)
    assert (twice.replicates, twice.duplicates) == (2, 0)
    with pytest.raises(ConfigError, match="has no effect"):
        strategy(tools, seeds={"search": 2, "duplicates": 1, "confirm": 2}, budget={"trials": 60})


def test_a_strategy_needs_nothing_but_the_history(tools: ModuleType) -> None:
    """The same history gives the same step, whichever object is asked: a study can be resumed anywhere."""
    history = tools.history(tools.state("c000", {}, 0.5))
    one, two = strategy(tools), strategy(tools)
    assert isinstance(one.sampler, RandomSampler)
    for free in (1, 2, 1):
        assert step(one, history, free) == step(two, history, free)


def test_the_seeds_of_search_race_and_proof_never_meet(tools: ModuleType) -> None:
    seeds = {"search": 7, "race": 500, "confirm": 500}
    study = load_study(tools.study(seeds=seeds, budget={"trials": 3000}))
    other = load_study(tools.study(seeds=seeds, budget={"trials": 3000}, seed=1))
    groups = [set(s.seeds_of(phase)) for s in (study, other) for phase in (SEARCH, RACE, CONFIRM)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert set(study.seeds_of(GRID)) <= set(study.seeds_of(SEARCH))
