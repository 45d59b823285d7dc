"""A task whose runs were recorded: every configuration of a finite space, over a few seeds.

A tuner may ask for more seeds than were recorded. Such a run is resampled: the mean of the configuration's recorded
search runs, plus a residual of a search run of some configuration with a similar mean. Similar are the fifth of all
configurations (at least a dozen) whose means are closest in rank, because noise grows with the score in most tasks. The
residuals of n runs around their own mean are too small, so that they are multiplied by sqrt(n / (n - 1)). It fails as
often as the configuration's recorded search runs did. Truth seeds play no part in it.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis

from .drawing import generator
from .task import Result

Array = NDArray[np.float64]
SIMILAR = (12, 0.2)
"""Residuals come from this many configurations, or this share of all, whichever is more."""


@dataclass(eq=False)
class RecordedTask:
    """Cells are the combinations of the axes' values, the last axis moving fastest.

    Scores of search runs are [cells, seeds], NaN for a failed run; truths are [cells]. Errors and seconds have the
    shape of the scores, curves [cells, seeds, evaluations]; None where they are not known.

    Raises:
        ValueError: the shapes do not fit the axes, or there are fewer than two search seeds.
    """

    name: str
    family: str
    repeat: int
    axes: tuple[Axis, ...]
    base: Params
    scores: Array
    truths: Array
    lay_out: Callable[[np.random.Generator], Sequence[Params]]
    errors: Array | None = None
    curves: Array | None = None
    seconds: Array | None = None
    search_seeds: int = field(init=False)
    best: float = field(init=False)

    def __post_init__(self) -> None:
        cells = math.prod(len(axis.choices()) for axis in self.axes)
        if self.scores.shape[0] != cells or self.truths.shape != (cells,) or self.scores.shape[1] < 2:
            raise ValueError(
                f"{self.family}, {self.name}: {cells} cells with at least two search seeds are needed, found scores "
                f"{self.scores.shape} and truths {self.truths.shape}."
            )
        self.search_seeds = self.scores.shape[1]
        self.best = float(self.truths.max())
        self._places = [{value: place for place, value in enumerate(axis.choices())} for axis in self.axes]

    def run(self, params: Params, seed: int) -> Result:
        cell = self._cell(params)
        return self._recorded(cell, seed) if seed < self.search_seeds else self._resampled(cell, seed)

    def truth(self, params: Params) -> float:
        return float(self.truths[self._cell(params)])

    def grid(self, generator: np.random.Generator) -> Sequence[Params]:
        return self.lay_out(generator)

    def _cell(self, params: Params) -> int:
        found = 0
        for axis, places in zip(self.axes, self._places, strict=True):
            found = found * len(places) + places[params[axis.name]]
        return found

    def _recorded(self, cell: int, seed: int) -> Result:
        score = float(self.scores[cell, seed])
        return Result(
            score=None if math.isnan(score) else score,
            error=0.0 if self.errors is None else float(np.nan_to_num(self.errors[cell, seed])),
            curve=() if self.curves is None else _until_it_failed(self.curves[cell, seed]),
            seconds=1.0 if self.seconds is None else float(self.seconds[cell, seed]),
        )

    def _resampled(self, cell: int, seed: int) -> Result:
        """Like one of the cell's recorded runs, with a score of its own; the curve bends towards it as it goes on."""
        random = generator("resampled", self.family, self.name, self.repeat, cell, seed)
        like = int(random.integers(self.search_seeds))
        recorded = self._recorded(cell, like)
        if recorded.score is None:
            return recorded
        score = float(self._means[cell] + random.choice(self._residuals_near(cell)))
        shares = np.linspace(0.0, 1.0, len(recorded.curve))
        curve = np.array(recorded.curve) + (score - recorded.score) * shares
        return Result(score, recorded.error, tuple(curve.tolist()), recorded.seconds)

    def _residuals_near(self, cell: int) -> Array:
        """Residuals of the cells whose means are next to this cell's."""
        at_least, share = SIMILAR
        order, known = self._by_mean, len(self._by_mean)
        width = min(max(at_least, math.ceil(share * known)), known)
        place = int(np.searchsorted(self._means[order], self._means[cell]))
        first = min(max(place - width // 2, 0), known - width)
        found: Array = self._residuals[order[first : first + width]]
        return found[~np.isnan(found)]

    @cached_property
    def _means(self) -> Array:
        """Mean of each cell's search runs [cells]; NaN if all failed."""
        scored = ~np.isnan(self.scores)
        sums, counts = np.nansum(self.scores, axis=1), scored.sum(axis=1)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    @cached_property
    def _residuals(self) -> Array:
        """Scores around their cell's mean, in the size that new seeds would have [cells, seeds]."""
        counts = (~np.isnan(self.scores)).sum(axis=1, keepdims=True)
        grown = np.sqrt(counts / np.maximum(counts - 1, 1))
        found: Array = (self.scores - self._means[:, None]) * grown
        return found

    @cached_property
    def _by_mean(self) -> NDArray[np.intp]:
        """Cells with two scores or more, the lowest mean first."""
        order = np.argsort(self._means, kind="stable")
        found: NDArray[np.intp] = order[(~np.isnan(self.scores[order])).sum(axis=1) >= 2]
        return found


def _until_it_failed(curve: Array) -> tuple[float, ...]:
    return tuple(curve[~np.isnan(curve)].tolist())


def configurations(axes: Sequence[Axis]) -> list[Params]:
    """All combinations of the axes' values, in the order of the cells."""
    names = [axis.name for axis in axes]
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(axis.choices() for axis in axes))
    ]
