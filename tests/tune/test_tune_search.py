"""The search phase on made-up histories: no process, no file."""

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from leverl.backends.protocol import Resolved
from leverl.record.run_record import Outcome
from leverl.tune.model import BASE, RACE, SEARCH, Continue, Finish, History, Params, Start
from leverl.tune.phases.search import Search
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space

P1, P2, P3 = ({"x": n} for n in (2, 3, 4))


class Scripted:
    """A sampler that proposes what a test tells it to."""

    name = "scripted"

    def __init__(self, *proposals: Params) -> None:
        self.proposals = proposals

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        return list(self.proposals[:n])


def search(*proposals: Params, **more: Any) -> Search:
    axes = (Axis(name="x", path="", kind="int", low=1, high=9),)
    space = Space(axes, (), {"x": 1}, lambda params: Resolved(None, params))  # type: ignore[arg-type]
    return Search(space, Scripted(*proposals), (1000, 1001, 1002, 1003), lambda params: 4, **more)


def ids(decisions: Sequence[Any]) -> list[str]:
    return [decision.run.id for decision in decisions if isinstance(decision, Start)]


def test_the_base_is_the_first_run() -> None:
    starts = search(P1).next(History(()), 2)
    assert ids(starts) == ["000-s1000", "001-s1000"]
    first = starts[0]
    assert isinstance(first, Start)
    assert (first.run.config_id, dict(first.run.params), first.run.phase, first.run.until) == (
        BASE, {}, SEARCH, 4,
    )  # fmt: skip


def test_every_configuration_gets_its_seeds_at_once(tools: ModuleType) -> None:
    phase = search(P1, replicates=2)
    assert ids(phase.next(History(()), 1)) == ["000-s1000"]
    base = tools.state("c000", {}, outcome=None)
    assert ids(phase.next(tools.history(base), 3)) == ["000-s1001", "001-s1000", "001-s1001"]


def test_the_first_configurations_get_a_second_seed_whatever_their_scores(tools: ModuleType) -> None:
    phase = search(P3, duplicates=2)
    base = tools.state("c000", {}, 0.5)
    assert ids(phase.next(tools.history(base), 1)) == ["000-s1001"]
    states = [base, tools.state("c000", {}, 0.5, seed=1001), tools.state("c001", P1, 0.0)]
    assert ids(phase.next(tools.history(*states), 2)) == ["001-s1001", "002-s1000"]
    states += [tools.state("c001", P1, 0.0, seed=1001), tools.state("c002", P2, 0.9)]
    assert ids(phase.next(tools.history(*states), 2)) == ["003-s1000"]


def test_a_proposal_that_has_run_is_another_seed_of_it(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.8)]
    assert ids(search(P1, P1, P2).next(tools.history(*states), 3)) == ["001-s1001", "002-s1000"]
    assert ids(search({"x": 1}).next(tools.history(*states), 1)) == ["000-s1001"]  # the base, by its values


def test_seeds_of_a_configuration_come_to_an_end(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, 0.5)]
    states += [tools.state("c001", P1, 0.8, seed=seed) for seed in (1000, 1001, 1002, 1003)]
    assert [type(d) for d in search(P1).next(tools.history(*states), 1)] == [Finish]


def test_the_sampler_learns_from_imported_runs_and_no_phase_counts_them(tools: ModuleType) -> None:
    seen: list[int] = []

    class Looks(Scripted):
        def suggest(self, space: Space, history: History, n: int) -> list[Params]:
            seen.append(len(history.runs))
            return super().suggest(space, history, n)

    phase = search(P1, prior=(tools.state("i000", P2, 0.9, phase="import"),))
    phase = replace(phase, sampler=Looks(P2))
    assert ids(phase.next(tools.history(tools.state("c000", {}, 0.5)), 1)) == ["001-s1000"]
    assert seen == [2]


def test_a_stopped_run_that_is_wanted_again_goes_on(tools: ModuleType) -> None:
    stopped = tools.state("c001", P1, outcome=Outcome.STOPPED)
    states = [tools.state("c000", {}, 0.5), stopped]
    assert list(search(P1).next(tools.history(*states), 1)) == [Continue("001-s1000")]


def test_search_waits_for_its_runs_and_then_ends(tools: ModuleType) -> None:
    running = [tools.state("c000", {}, 0.5), tools.state("c001", P1, outcome=None)]
    assert list(search().next(tools.history(*running), 1)) == []
    over = [running[0], tools.state("c001", P1, 0.1)]
    assert isinstance(search().next(tools.history(*over), 1)[0], Finish)


def test_search_is_over_once_the_race_began(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, 0.5), tools.state("c000", {}, 0.5, seed=2000, phase=RACE)]
    assert isinstance(search(P1).next(tools.history(*states), 2)[0], Finish)
