"""Numbers on regrets: means, paired differences with bootstrap intervals, ranks, wins and losses.

Repeats count alike within a task, tasks within a family, and families among each other.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .shards import Shard

Array = NDArray[np.float64]
Task = tuple[str, str]
"""Family and name."""

DRAWS: Final = 10_000
TIE: Final = 1e-9
"""Regrets that differ by no more are the same: finite tasks have the same configuration recommended often."""


@dataclass(frozen=True)
class Entry:
    """A method after a budget of runs; `budget` None: whatever it took, as grids do."""

    method: str
    budget: int | None = None


@dataclass(frozen=True)
class Estimate:
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


class Regrets:
    """What was measured: entry → task → repeat → regret."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = {(shard.method, (shard.family, shard.task), shard.repeat): shard for shard in shards}
        self.tasks: tuple[Task, ...] = tuple(sorted({task for _, task, _ in self._shards}))
        self.families: tuple[str, ...] = tuple(dict.fromkeys(family for family, _ in self.tasks))
        self.methods: frozenset[str] = frozenset(method for method, _, _ in self._shards)

    def of(self, entry: Entry, task: Task) -> dict[int, float]:
        """Repeat → regret."""
        return self.values(entry, task, "regret")

    def values(self, entry: Entry, task: Task, name: str) -> dict[int, float]:
        """Repeat → what readings say under this name."""
        found = {}
        for (method, where, repeat), shard in self._shards.items():
            if method == entry.method and where == task:
                reading = shard.at(entry.budget)
                if reading is not None:
                    found[repeat] = float(reading[name])
        return dict(sorted(found.items()))

    def tasks_of(self, family: str | None) -> list[Task]:
        """Tasks of a family, or of all."""
        return [task for task in self.tasks if family in (None, task[0])]


def mean_and_error(samples: Sequence[Array]) -> tuple[float, float]:
    """Mean over tasks of each task's mean, and its standard error; NaN where a task has one repeat."""
    mean = float(np.mean([values.mean() for values in samples]))
    variances = [values.var(ddof=1) / len(values) if len(values) > 1 else np.nan for values in samples]
    return mean, math.sqrt(sum(variances)) / len(samples)


def differences(regrets: Regrets, one: Entry, two: Entry, tasks: Sequence[Task]) -> list[Array]:
    """Regret of `one` minus that of `two` for each task over the repeats that both have. Tasks without are left out."""
    found = []
    for task in tasks:
        first, second = regrets.of(one, task), regrets.of(two, task)
        shared = first.keys() & second.keys()
        if shared:
            found.append(np.array([first[repeat] - second[repeat] for repeat in sorted(shared)]))
    return found


def bootstrap(samples: Sequence[Array], draws: int = DRAWS) -> Estimate:
    """Mean over tasks with its 95 % percentile interval; repeats are resampled within each task (Efron 1979).

    Nothing bounds the interval where a task has one repeat only.
    """
    mean = float(np.mean([values.mean() for values in samples]))
    if any(len(values) < 2 for values in samples):
        return Estimate(mean, -math.inf, math.inf)
    generator = np.random.default_rng(0)
    means = np.zeros(draws)
    for values in samples:
        chosen = generator.integers(len(values), size=(draws, len(values)))
        means += values[chosen].mean(axis=1) / len(samples)
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(mean, float(low), float(high))


def average_ranks(
    regrets: Regrets, methods: Sequence[str], budget: int, family: str | None = None
) -> dict[str, float]:
    """Mean rank of each method among `methods`, 1 the lowest regret, ties averaged.

    Over the repeats that all of them have; empty where there are none.
    """
    families = [family] if family else list(regrets.families)
    by_family = [_ranks_of_family(regrets, methods, budget, name) for name in families]
    known = [found for found in by_family if found is not None]
    if not known:
        return {}
    return dict(zip(methods, map(float, np.mean(known, axis=0)), strict=True))


def _ranks_of_family(regrets: Regrets, methods: Sequence[str], budget: int, family: str) -> Array | None:
    by_task = []
    for task in regrets.tasks_of(family):
        found = [regrets.of(Entry(method, budget), task) for method in methods]
        shared = sorted(set.intersection(*(set(values) for values in found)))
        if shared:
            by_task.append(
                np.mean([ranks([values[repeat] for values in found]) for repeat in shared], axis=0)
            )
    return np.mean(by_task, axis=0) if by_task else None


def ranks(values: Sequence[float]) -> Array:
    """Ranks from 1, the lowest value first; those that are tied share the mean of their ranks."""
    found = np.array(values, dtype=np.float64)
    gaps = found[:, None] - found[None, :]
    below, same = (gaps > TIE).sum(axis=1), (np.abs(gaps) <= TIE).sum(axis=1)
    return np.asarray(below + (same + 1) / 2, dtype=np.float64)


def wins(samples: Sequence[Array]) -> tuple[int, int, int]:
    """How often the first of a pair was better, as good, and worse."""
    values = np.concatenate(samples) if samples else np.zeros(0)
    better, worse = int((values < -TIE).sum()), int((values > TIE).sum())
    return better, len(values) - better - worse, worse


def per_suggestion(regrets: Regrets, method: str, tasks: Sequence[Task]) -> float | None:
    """Mean CPU seconds of a method for each run that it chose, over its longest paths; None without any."""
    seconds, runs = 0.0, 0.0
    for task in tasks:
        seconds += sum(regrets.values(Entry(method), task, "cpu_seconds").values())
        runs += sum(regrets.values(Entry(method), task, "runs").values())
    return seconds / runs if runs else None


def mean_over(regrets: Regrets, entry: Entry, tasks: Sequence[Task], name: str) -> float | None:
    """Mean over all repeats of what readings say under this name; None without any."""
    values = [value for task in tasks for value in regrets.values(entry, task, name).values()]
    return float(np.mean(values)) if values else None


def samples_of(regrets: Regrets, entry: Entry, tasks: Sequence[Task]) -> list[Array]:
    """Regrets for each task; tasks without are left out."""
    found: list[Mapping[int, float]] = [regrets.of(entry, task) for task in tasks]
    return [np.array(list(values.values())) for values in found if values]
