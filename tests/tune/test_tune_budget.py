"""What a budget leaves, in runs."""

import math
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from leverl.tune.budget import Account
from leverl.tune.model import Cost, History, RunState
from leverl.tune.study import Budget


def run(tools: ModuleType, number: int, steps: int, *, over: bool = True, **cost: Any) -> RunState:
    """A run of 4 steps that has done `steps`."""
    state: RunState = tools.state(f"c{number:03d}", {}, 0.5 if over else None, outcome="x" if over else None)
    return replace(state, outcome=state.outcome if over else None, cost=Cost(steps=steps, **cost))


def account(budget: dict[str, Any], *states: RunState, seconds: float = 0.0, parallel: int = 2) -> Account:
    return Account(Budget(**budget), History(states), seconds, parallel)


def test_nothing_limits_an_empty_budget(tools: ModuleType) -> None:
    found = account({}, run(tools, 0, 4))
    assert (found.runs_left, found.spent, found.exhausted) == (math.inf, 0.0, "")


def test_trials_count_runs_when_they_start(tools: ModuleType) -> None:
    found = account({"trials": 5}, run(tools, 0, 4), run(tools, 1, 1, over=False))
    assert (found.runs_left, found.spent, found.exhausted) == (3, 0.4, "")
    assert account({"trials": 1}, run(tools, 0, 4)).exhausted == "budget.trials = 1"


def test_steps_know_their_price_before_the_first_run() -> None:
    assert account({"steps": 40}).runs_left == math.inf  # nothing started: the price is the first run's


def test_a_run_that_was_stopped_leaves_its_rest(tools: ModuleType) -> None:
    # 40 steps in all; one whole run (4), one stopped after 1, one in flight that has done 3 of 4
    states = run(tools, 0, 4), run(tools, 1, 1), run(tools, 2, 3, over=False)
    found = account({"steps": 40}, *states)
    assert found.runs_left == pytest.approx((40 - 8) / 4 - 0.25)
    assert found.spent == pytest.approx(8 / 40)


def test_tokens_are_priced_by_what_runs_have_used(tools: ModuleType) -> None:
    states = run(tools, 0, 4, tokens=100), run(tools, 1, 2, tokens=80)  # 180 tokens for 1.5 runs
    assert account({"tokens": 1000}, *states).runs_left == pytest.approx((1000 - 180) / 120)


def test_hours_are_wall_time_and_runs_go_side_by_side(tools: ModuleType) -> None:
    states = run(tools, 0, 4, seconds=100.0), run(tools, 1, 4, seconds=100.0)
    found = account({"hours": 0.25}, *states, seconds=150.0)
    assert found.runs_left == pytest.approx((900 - 150) / 50)
    assert found.spent == pytest.approx(150 / 900)


def test_gpu_hours_count_what_runs_held(tools: ModuleType) -> None:
    found = account({"gpu_hours": 1.0}, run(tools, 0, 4, seconds=100.0, gpu_seconds=800.0))
    assert found.runs_left == pytest.approx((3600 - 800) / 800)


def test_the_tightest_limit_counts(tools: ModuleType) -> None:
    states = run(tools, 0, 4, seconds=100.0), run(tools, 1, 4, seconds=100.0)
    found = account({"trials": 30, "steps": 12, "hours": 1.0}, *states, seconds=150.0)
    assert found.runs_left == pytest.approx(1.0)
    assert found.spent == pytest.approx(8 / 12)
    over = account({"trials": 30, "steps": 8}, *states)
    assert (over.runs_left, over.exhausted) == (0.0, "budget.steps = 8")


def test_only_a_budget_of_time_makes_quick_runs_worth_more() -> None:
    counted = [
        account(budget).counts_time for budget in ({"trials": 9, "steps": 9}, {"hours": 1}, {"gpu_hours": 1})
    ]
    assert counted == [False, True, True]
