"""leverl itself: its strategy as a study runs it, without the confirmation, on a task's runs."""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean
from typing import Final

import numpy as np
from tasks.task import Result, Task

from leverl.tune import strategy as strategies
from leverl.tune.model import BASE, Run
from leverl.tune.space.space import free
from leverl.tune.strategy import Strategy
from leverl.tune.study import Budget, Seeds, Stopping, Study, Target

from .method import TOLD, Reading, Runs
from .simulator import play

STEPS: Final = 1000  # of every run: curves are known at shares of it

_SAME: Final = 1e-6


def read(
    task: Task,
    seed: int,
    *,
    strategy: str = "bayes",
    stopping: bool = False,
    budgets: tuple[int, ...] = TOLD,
) -> list[Reading]:
    """One study for each budget, with a study's defaults: duplicates, race and what it recommends.

    A study's budget includes its confirmation, which is added here and never run. Without `stopping` runs come
    without their curves.
    """
    return [_study(task, seed, strategy, stopping, budget) for budget in budgets]


def _study(task: Task, seed: int, strategy: str, stopping: bool, budget: int) -> Reading:
    runs, began = Runs(task), time.process_time()
    planned = _strategy(task, seed, strategy, stopping, budget)
    history = play(planned, _outcome(runs, task, stopping), proof=False)
    best = planned.recommend(history)
    params = task.base if best is None or best.config_id == BASE else history.params(best.config_id)
    spent = time.process_time() - began - runs.cpu_seconds
    lengths = sum(state.progress for state in history.runs)
    return Reading(budget, len(history.runs), lengths, params, spent)


def _strategy(task: Task, seed: int, strategy: str, stopping: bool, budget: int) -> Strategy:
    study = Study(
        name=task.name,
        target=Target(leverl="grpo"),
        strategy=strategy,
        space={axis.name: None for axis in task.axes},  # the axes themselves are given below
        stopping=Stopping(curves=stopping, guards=stopping),
        budget=Budget(trials=budget + 2 * Seeds().confirm),
        seed=seed,
    )
    last_k = _last_k(task) if stopping else 1
    return strategies.build(study, free(task.axes, base=task.base), lambda _: STEPS, last_k)


def _outcome(runs: Runs, task: Task, stopping: bool) -> Callable[[Run], Result]:
    """What a run gives. The base's own runs come without levers."""

    def found(run: Run) -> Result:
        result = runs.next(run.params or task.base)
        return result if stopping else replace(result, curve=())

    return found


def _last_k(task: Task) -> int:
    """Of how many last evaluations a score is the mean, which a study knows from its configuration.

    Raises:
        ValueError: of no number of them.
    """
    some = [task.run(params, 0) for params in (task.base, *task.grid(np.random.default_rng(0)))]
    whole = [result for result in some if result.score is not None and result.curve]
    for count in range(1, min((len(result.curve) for result in whole), default=0) + 1):
        if all(abs(fmean(result.curve[-count:]) - (result.score or 0.0)) < _SAME for result in whole):
            return count
    raise ValueError(f"{task.name}: scores are not the mean of a curve's last evaluations.")
