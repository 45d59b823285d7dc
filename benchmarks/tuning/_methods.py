"""What is compared: ways to spend runs on a task and to name a configuration in the end.

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

from _task import Result, Task

from leverl.tune.model import Params, ParamValue
from leverl.tune.space.axis import Axis
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


LEVERL: Final = "leverl"
GRID: Final = "grid"
GRID_3: Final = "grid ×3"
PEERS: Final = ("random", "Optuna TPE", "Optuna GP", "Ax", "SMAC", "SMAC 1 seed")

_OWN: Final[Mapping[str, Any]] = {"module": "_method_leverl", "plans": True, "packages": ("botorch",)}
_OPTUNA: Final[Mapping[str, Any]] = {"module": "_method_optuna", "packages": ("optuna",)}
_SMAC: Final[Mapping[str, Any]] = {"module": "_method_smac", "plans": True, "packages": ("smac",)}

METHODS: Final[Mapping[str, Method]] = {
    method.name: method
    for method in (
        Method(LEVERL, **_OWN),
        Method("leverl random", options={"strategy": "random"}, **_OWN),
        Method("leverl +grid", options={"strategy": "bayes+grid"}, **_OWN),
        Method("leverl +stopping", options={"stopping": True, "budgets": (27,)}, curves=True, **_OWN),
        Method(GRID, "_method_grid", plans=True),
        Method(GRID_3, "_method_grid", {"seeds": 3}, plans=True),
        Method("random", options={"sampler": "random"}, **_OPTUNA),
        Method("Optuna TPE", options={"sampler": "tpe"}, **_OPTUNA),
        Method("Optuna GP", options={"sampler": "gp"}, **_OPTUNA),
        Method("Ax", "_method_ax", packages=("ax-platform", "botorch")),
        Method("SMAC", **_SMAC),
        Method("SMAC 1 seed", options={"deterministic": True}, **_SMAC),
    )
}


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


@dataclass(frozen=True)
class Dimension:
    """An axis in words that every peer has: a range of floats, or countable `levels`, in order where they have one.

    Ordered levels are given to peers as whole numbers (their place in the list), so that peers know which are
    neighbours and a list of powers is what a logarithmic range would be. Ax takes the values themselves, as an
    ordered choice, which it treats the same way.
    """

    name: str
    levels: tuple[ParamValue, ...] = ()
    ordered: bool = True
    low: float = 0.0
    high: float = 1.0
    log: bool = False

    def place(self, value: ParamValue) -> int:
        return self.levels.index(value)


def dimensions(task: Task) -> list[Dimension]:
    """The axes of a task for peers.

    Raises:
        ValueError: an axis that not all peers have words for: a value beside its range, a logit scale, or whole
            numbers on a log scale.
    """
    return [_dimension(axis) for axis in task.axes]


def _dimension(axis: Axis) -> Dimension:
    whole_log = axis.kind == "int" and axis.scale == "log"
    if axis.other is not None or axis.scale == "logit" or whole_log:
        raise ValueError(f"{axis.name}: no peer has words for this axis, so it cannot be compared on.")
    if axis.finite:
        levels = axis.choices()
        return Dimension(
            axis.name, tuple(sorted(levels, key=float)) if axis.ordered else levels, axis.ordered
        )
    return Dimension(axis.name, low=axis.low, high=axis.high, log=axis.log)
