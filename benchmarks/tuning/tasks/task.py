"""What tuners are compared on: runs that cost nothing, and a truth that no tuner sees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis


@dataclass(frozen=True)
class Result:
    """One run. `curve` holds held-out scores at equal shares of the run, the last at its end; () if unknown."""

    score: float | None  # in [0, 1], larger is better; None: the run failed
    error: float = 0.0  # known standard error of `score` itself; 0: unknown
    curve: tuple[float, ...] = ()
    seconds: float = 1.0


class Task(Protocol):
    """A task in one repeat: the split into search and truth seeds, and the sub-grid, are its own."""

    name: str
    family: str
    axes: tuple[Axis, ...]
    base: Params
    search_seeds: int
    """Seeds recorded for each configuration; further ones are resampled."""
    best: float
    """The highest truth of any configuration."""

    def run(self, params: Params, seed: int) -> Result:
        """The same for the same arguments; seed 0 … search_seeds - 1 are recorded ones."""

    def truth(self, params: Params) -> float:
        """The true mean score, from seeds that `run` never shows where there are such."""

    def grid(self, generator: np.random.Generator) -> Sequence[Params]:
        """At most 54 configurations: a full factorial of levels drawn anew."""
