"""The confirmation on made-up histories."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from leverl.backends.protocol import Resolved
from leverl.record.run_record import Outcome
from leverl.tune.model import CONFIRM, RACE, Finish, RunState, Start
from leverl.tune.phases.confirm import Confirm
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space

AXES = (Axis("x", kind="int", low=1, high=9),)
SPACE = Space(AXES, (), {"x": 1}, lambda params: Resolved(None, params))  # type: ignore[arg-type]


def confirm(*seeds: int, **more: Any) -> Confirm:
    seeds = seeds or (3000, 3001)
    more = {"least": len(seeds), **more}
    return Confirm(SPACE, seeds, lambda params: 4 + len(params), model=False, **more)


def ids(decisions: Sequence[Any]) -> list[str]:
    return [decision.run.id for decision in decisions if isinstance(decision, Start)]


def searched(tools: ModuleType) -> list[RunState]:
    return [
        tools.state("c000", {}, 0.5),
        tools.state("c001", {"x": 2}, 0.8),
        tools.state("c002", {"x": 3}, None, outcome=Outcome.OUT_OF_MEMORY),
        tools.state("c003", {"x": 4}, 0.4),
    ]


def test_leader_and_base_run_pair_by_pair(tools: ModuleType) -> None:
    starts = confirm().next(tools.history(*searched(tools)), 3)
    assert ids(starts) == ["001-s3000", "000-s3000", "001-s3001"]
    assert [start.run.until for start in starts if isinstance(start, Start)] == [5, 4, 5]
    assert {start.run.phase for start in starts if isinstance(start, Start)} == {CONFIRM}


def test_it_waits_and_then_ends(tools: ModuleType) -> None:
    states = searched(tools)
    for seed in (3000, 3001):
        states += [tools.state("c001", {"x": 2}, 0.8, seed=seed, phase=CONFIRM)]
        states += [tools.state("c000", {}, 0.5, seed=seed, phase=CONFIRM)]
    assert confirm().next(tools.history(*states), 0) == [Finish("c001 and the base on 2 fresh seeds")]
    states[-1] = tools.state("c000", {}, None, seed=3001, phase=CONFIRM, outcome=None)
    assert confirm().next(tools.history(*states), 1) == []


def test_a_leading_base_needs_none(tools: ModuleType) -> None:
    states = [
        tools.state("c000", {}, 0.9),
        tools.state("c001", {"x": 2}, 0.4),
        tools.state("c002", {"x": 3}, 0.3),
    ]
    assert confirm().next(tools.history(*states), 2) == [Finish("the base leads")]


def test_without_scores_there_is_nothing_to_confirm(tools: ModuleType) -> None:
    found = confirm().next(tools.history(tools.state("c000", {}, None, outcome=Outcome.CRASHED)), 2)
    assert found == [Finish("no run has a score that counts")]


def test_the_configuration_is_fixed_once_it_has_begun(tools: ModuleType) -> None:
    begun = [*searched(tools), tools.state("c001", {"x": 2}, None, seed=3000, phase=CONFIRM, outcome=None)]
    late = [
        tools.state("c003", {"x": 4}, 9.9, seed=2000, phase=RACE),
        tools.state("c001", {"x": 2}, 0.0, seed=1001),
    ]
    assert ids(confirm().next(tools.history(*begun, *late), 2)) == ["000-s3000", "001-s3001"]


def test_limits_are_kept(tools: ModuleType) -> None:
    phase = confirm(allowed=lambda _, name: name != "c001")
    assert phase.next(tools.history(*searched(tools)), 2) == [Finish("the base leads")]


def test_runs_that_the_race_did_not_need_go_into_the_proof(tools: ModuleType) -> None:
    def started(runs: int, *more: RunState) -> list[str]:
        return ids(confirm(*range(3000, 3006), least=3, runs=runs).next(tools.history(*states, *more), 99))

    states = searched(tools)
    assert [len(started(runs)) for runs in (4, 10, 12, 13, 16, 99)] == [6, 6, 8, 8, 12, 12]
    # what the proof itself finds decides nothing
    lost = tools.state("c001", {"x": 2}, None, seed=3000, phase=CONFIRM, outcome=Outcome.CRASHED)
    assert [*started(12, lost), lost.run.id] == [*started(12)[1:], "001-s3000"]


def test_seeds_of_an_earlier_round_prove_nothing_new(tools: ModuleType) -> None:
    states = [*searched(tools), tools.state("c001", {"x": 2}, 0.8, seed=3001)]
    assert ids(confirm().next(tools.history(*states), 9)) == [
        "001-s3002",
        "000-s3002",
        "001-s3003",
        "000-s3003",
    ]
