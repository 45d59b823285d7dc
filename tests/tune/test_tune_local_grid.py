"""The local grid: which cells, and when they run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from leverl.backends.protocol import Resolved
from leverl.errors import ConfigError
from leverl.record.run_record import Outcome
from leverl.tune.evidence.neighbourhood import levels, neighbourhood
from leverl.tune.model import GRID, RACE, Finish, History, Params, RunState, Start
from leverl.tune.phases.local_grid import LocalGrid
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space, key

AXES = (
    Axis("lr", low=1e-6, high=1e-4, scale="log"),
    Axis("epochs", kind="int", low=1, high=4),
    Axis("kl", low=0.0, high=1.0),
)


def space(resolve: Callable[[Params], Any] = lambda params: Resolved(None, params)) -> Space:  # type: ignore[arg-type]
    return Space(AXES, (), {"lr": 1e-6, "epochs": 1, "kl": 0.5}, resolve)


def truth(params: Params) -> float:
    """The learning rate matters most, then the epochs; the rest hardly."""
    return (
        1.0
        - math.log10(float(params["lr"]) / 1e-5) ** 2
        - 0.1 * (float(params["epochs"]) - 2) ** 2
        - 0.001 * float(params["kl"])
    )


def searched(tools: ModuleType, count: int = 24) -> list[RunState]:
    generator = np.random.default_rng(0)
    points = [space().at(unit) for unit in generator.random((count, 3))]
    points[4] = {"lr": 1.1e-5, "epochs": 2, "kl": 0.5}
    base = tools.state("c000", {}, truth(space().base_params()))
    return [base] + [tools.state(f"c{n:03d}", p, truth(p)) for n, p in enumerate(points, 1)]


def grid(**more: Any) -> LocalGrid:
    settings: dict[str, Any] = {"cells": 9, "seeds": (1000,), "until": lambda params: int(params["epochs"])}
    return LocalGrid(space(), **{**settings, **more})


def ids(decisions: Sequence[Any]) -> list[str]:
    return [decision.run.id for decision in decisions if isinstance(decision, Start)]


def test_a_step_on_every_kind_of_axis() -> None:
    log = Axis("a", low=1e-6, high=1e-4, scale="log")
    assert levels(log, 1e-5) == (pytest.approx(1e-5 / 1.8), 1e-5, pytest.approx(1.8e-5))
    narrow = Axis("a", low=1.0, high=2.0, scale="log")  # 1.8 is nearly all of it: a quarter, 2 ** .25
    assert levels(narrow, 1.5) == (pytest.approx(1.5 / 2**0.25), 1.5, pytest.approx(1.5 * 2**0.25))
    assert levels(Axis("a"), 0.5) == (0.375, 0.5, 0.625)
    assert levels(Axis("a"), 0.95) == (pytest.approx(0.825), 0.95, 1.0)
    assert levels(Axis("a"), 1.0) == (0.875, 1.0)
    assert levels(Axis("a", kind="int", low=1, high=4), 2) == (1, 2, 3)
    assert levels(Axis("a", kind="int", low=1, high=4), 4) == (3, 4)
    assert levels(Axis("a", kind="int", low=32, high=512, scale="pow2"), 128) == (64, 128, 256)
    assert levels(Axis("a", kind="int", low=1, high=100), 50) == (38, 50, 63)
    assert levels(Axis("a", low=0.1, high=0.5, step=0.1), 0.3) == (0.2, 0.3, 0.4)
    assert levels(Axis("a", kind="categorical", values=(512, 128, 256)), 128) == (128, 256)
    assert levels(Axis("a", kind="categorical", values=("x", "y", "z")), "y") == ("x", "y", "z")
    assert levels(Axis("a", kind="categorical", values=tuple("wxyz")), "y") == ("y",)
    beside = Axis("a", low=1e-4, high=1e-1, scale="log", other=0.0)
    assert levels(beside, 0.0) == (0.0, 1e-4)
    assert levels(beside, 1e-2) == (pytest.approx(1e-2 / 1.8), 1e-2, pytest.approx(1.8e-2))
    assert levels(Axis("a", kind="int", low=1, high=3, other=0), 1) == (1, 2)


def test_the_two_levers_that_matter_around_the_best(tools: ModuleType) -> None:
    found = neighbourhood(space(), tools.history(*searched(tools)), 9)
    assert found is not None
    assert (found.centre, found.levers) == ("c005", ("lr", "epochs"))
    centre = {"lr": 1.1e-5, "epochs": 2, "kl": 0.5}
    assert len(found.cells) == 8  # the centre itself has run
    assert key(centre) not in {key(cell) for cell in found.cells}
    assert {cell["epochs"] for cell in found.cells} == {1, 2, 3}
    assert sorted({float(cell["lr"]) for cell in found.cells}) == pytest.approx(
        [1.1e-5 / 1.8, 1.1e-5, 1.98e-5]
    )
    assert {cell["kl"] for cell in found.cells} == {0.5}
    assert found.cells[0]["epochs"] == 2  # the most promising first
    assert truth(found.cells[0]) > truth(found.cells[-1])


def test_more_room_takes_more_levers_and_less_room_fewer(tools: ModuleType) -> None:
    history = tools.history(*searched(tools))
    wide, narrow = neighbourhood(space(), history, 27), neighbourhood(space(), history, 3)
    assert wide is not None
    assert narrow is not None
    assert (wide.levers, len(wide.cells)) == (("lr", "epochs", "kl"), 26)
    assert (narrow.levers, len(narrow.cells)) == (("lr",), 2)


def test_known_and_impossible_cells_are_left_out(tools: ModuleType) -> None:
    states = searched(tools)
    states.append(tools.state("c025", {"lr": 1.1e-5, "epochs": 3, "kl": 0.5}, 0.8))

    def resolve(params: Params) -> Any:
        if params["epochs"] == 1:
            raise ConfigError("one epoch cannot run.")
        return Resolved(None, params)  # type: ignore[arg-type]

    found = neighbourhood(space(resolve), tools.history(*states), 9)
    assert found is not None
    assert sorted(int(cell["epochs"]) for cell in found.cells) == [2, 2, 3, 3]


def test_minimising_goes_to_the_other_side(tools: ModuleType) -> None:
    states = [
        replace(state, score=replace(state.score, mean=-state.score.mean))
        for state in searched(tools)
        if state.score is not None
    ]
    found = neighbourhood(space(), tools.history(*states, maximize=False), 9)
    assert found is not None
    assert found.centre == "c005"


def test_a_forbidden_or_failing_best_is_no_centre(tools: ModuleType) -> None:
    history = tools.history(*searched(tools))
    found = neighbourhood(space(), history, 9, allowed=lambda _, name: name != "c005")
    assert found is not None
    assert found.centre != "c005"
    died = tools.state(
        "c005", {"lr": 1.1e-5, "epochs": 2, "kl": 0.5}, None, seed=1001, outcome=Outcome.CRASHED
    )
    other = neighbourhood(space(), tools.history(*searched(tools), died), 9)
    assert other is not None
    assert other.centre == found.centre


def test_too_few_scores_make_no_grid(tools: ModuleType) -> None:
    history = tools.history(*searched(tools)[:2])
    assert neighbourhood(space(), history, 9) is None
    assert grid().next(history, 2) == [Finish("too few scores for a local grid")]


def test_it_runs_its_cells_once_and_ends(tools: ModuleType) -> None:
    states = searched(tools)
    cells = neighbourhood(space(), tools.history(*states), 9)
    assert cells is not None
    started: list[RunState] = []
    for _ in range(20):
        decisions = grid().next(History((*states, *started)), 3)
        if isinstance(decisions[0], Finish):
            break
        for start in decisions:
            assert isinstance(start, Start)
            run = start.run
            assert (run.phase, run.seed, run.until) == (GRID, 1000, run.params["epochs"])
            score = 99.0 if not started else 0.1  # a good cell does not move the grid
            started.append(tools.state(run.config_id, run.params, score, phase=GRID))
    assert decisions == [Finish("8 cells around c005 over lr, epochs")]
    assert [state.run.config_id for state in started] == [f"c{n:03d}" for n in range(25, 33)]
    assert [key(state.run.params) for state in started] == [key(cell) for cell in cells.cells]


def test_it_waits_for_its_runs_and_makes_way_for_the_race(tools: ModuleType) -> None:
    states = searched(tools)
    starts = grid().next(History(tuple(states)), 99)
    running = [tools.state(s.run.config_id, s.run.params, phase=GRID, outcome=None) for s in starts]
    assert grid().next(History((*states, *running)), 1) == []
    assert ids(grid().next(History((*states, *running[:-1])), 1)) == [starts[-1].run.id]
    raced = [*states, tools.state("c005", {"lr": 1.1e-5, "epochs": 2, "kl": 0.5}, 0.9, seed=2000, phase=RACE)]
    assert grid().next(History(tuple(raced)), 1) == [Finish("local grid done")]
