"""A way to spend runs on a task and to name a configuration in the end.

All see the same runs: the i-th run of a configuration is the task's i-th seed, whoever asks, so that no method sees
a run twice and all are paired. All begin with the base, which a user has anyway. Runs go one after the other.
Confirming the winner is left out, of budgets too: every method would need it.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Protocol

from tasks.task import Result, Task

from leverl.tune.model import Params
from leverl.tune.space.space import Key, key

READ_AT: Final = (9, 18, 27, 36, 54)
"""Runs after which methods that need no budget beforehand are asked for their recommendation."""

TOLD: Final = (27, 54)
"""Budgets of methods that plan with theirs: a path for each."""


@dataclass(frozen=True)
class Reading:
    """What a method would take after `budget` runs. It may have used less: fewer `runs`, or shorter ones."""

    budget: int
    runs: int
    run_lengths: float  # work in units of whole runs: stopped ones count by the share of their steps
    params: Params
    cpu_seconds: float  # of the method itself, so far


@dataclass
class Runs:
    """A task's runs as a method asks for them."""

    task: Task
    seen: Counter[Key] = field(default_factory=Counter)
    cpu_seconds: float = 0.0  # of looking results up: no method's own time

    @property
    def count(self) -> int:
        return sum(self.seen.values())

    def next(self, params: Params) -> Result:
        """The next seed of this configuration."""
        began = time.process_time()
        name = key(params)
        result = self.task.run(params, self.seen[name])
        self.seen[name] += 1
        self.cpu_seconds += time.process_time() - began
        return result


class Peer(Protocol):
    """A tuner of another package, asked for one run after the other. Larger scores are better."""

    def ask(self) -> Params | None:
        """The next run's configuration; None when it has nothing more to propose."""

    def tell(self, score: float | None) -> None:
        """How the run ended that was asked for last; None: it failed."""

    def recommend(self) -> Params | None:
        """What it calls the best so far; None while nothing has a score."""


@dataclass(frozen=True)
class Method:
    """A way to tune. `module` is imported only when it is used: peers need not be installed.

    It has `create(task, seed, **options)`, which gives a Peer; or, for what `plans` with its budget,
    `read(task, seed, **options)`, which gives all readings itself.
    """

    name: str
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    plans: bool = False
    curves: bool = False  # only for tasks that have curves
    packages: tuple[str, ...] = ()  # whose versions a result depends on

    def path(self, task: Task, seed: int) -> list[Reading]:
        """Recommendations, in order of budgets."""
        module = import_module(self.module)
        if self.plans:
            found: list[Reading] = module.read(task, seed, **self.options)
            return found
        return follow(lambda: module.create(task, seed, **self.options), task)


def follow(create: Callable[[], Peer], task: Task, read_at: Sequence[int] = READ_AT) -> list[Reading]:
    """One path to the largest of `read_at`. A peer that has nothing more to propose keeps its recommendation."""
    runs, began = Runs(task), time.process_time()
    peer, readings = create(), list[Reading]()
    for budget in read_at:
        while runs.count < budget and (params := peer.ask()) is not None:
            peer.tell(runs.next(params).score)
        best = peer.recommend()
        spent = time.process_time() - began - runs.cpu_seconds
        readings.append(Reading(budget, runs.count, runs.count, task.base if best is None else best, spent))
    return readings
