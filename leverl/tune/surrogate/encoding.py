"""Configurations as points of a cube, such that configurations that behave alike lie close together.

| axis | dimensions |
|---|---|
| number (float, int, a list of numbers) | its place in the range, 0…1 in the axis's scale |
| words, true and false | one-hot, scaled so that two words lie at distance 1 |
| `or:` beside a range | a switch of its own; the place is OFF_PLACE when off |
| any lever without effect (missing) | an activity switch of its own; the other dimensions stand at fixed values |

So two configurations that differ only in levers without effect are the same point. Switches at 0 or 1 in all
known configurations carry no information and cost nothing: they add no distance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from leverl.tune.model import Params, ParamValue
from leverl.tune.space.axis import Axis, same
from leverl.tune.surrogate.kernel import Floats

OFF_PLACE: Final = 0.5
"""Where the place of a lever is put that is off or without effect."""

_ONE_HOT: Final = math.sqrt(0.5)


@dataclass(frozen=True)
class Encoding:
    """The map from configurations to points [d]."""

    axes: tuple[Axis, ...]

    @property
    def dimensions(self) -> int:
        return sum(columns.width for columns in self._columns)

    def contains(self, params: Params) -> bool:
        """Whether all values lie inside their axes (a base may not)."""
        return all(axis.contains(params[axis.name]) for axis in self.axes if axis.name in params)

    def encode(self, configurations: Sequence[Params]) -> Floats:
        """Points [n, d].

        Raises:
            ConfigError: a value lies outside its axis.
        """
        rows = [[x for columns in self._columns for x in columns.of(params)] for params in configurations]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.dimensions)

    @cached_property
    def _columns(self) -> tuple["_Columns", ...]:
        return tuple(_Columns(axis) for axis in self.axes)


class _Columns:
    """The dimensions of one axis; the last is the activity switch."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._resting = self._words(None) if not axis.ordered else [OFF_PLACE, *self._switch(False)]
        ends = axis.values if axis.kind == "categorical" else (axis.low, axis.high)
        if axis.ordered:
            places = sorted(axis.position(end) for end in ends)
            self._first, self._length = places[0], places[-1] - places[0]
        self._seen: dict[tuple[type, ParamValue], list[float]] = {}  # a search looks at few values many times

    @property
    def width(self) -> int:
        return len(self._resting) + 1

    def of(self, params: Params) -> list[float]:
        axis = self._axis
        if axis.name not in params:
            return [*self._resting, 0.0]
        value = params[axis.name]
        known = (type(value), value)  # True is not 1
        if known not in self._seen:
            self._seen[known] = self._active(value)
        return self._seen[known]

    def _active(self, value: ParamValue) -> list[float]:
        axis = self._axis
        if not axis.ordered:
            return [*self._words(value), 1.0]
        if axis.other is not None and same(value, axis.other):
            return [OFF_PLACE, *self._switch(False), 1.0]
        return [self._place(value), *self._switch(True), 1.0]

    def _place(self, value: ParamValue) -> float:
        """Where a number lies, the ends of a countable range at 0 and 1 too."""
        return (self._axis.position(value) - self._first) / self._length if self._length > 0 else OFF_PLACE

    def _switch(self, on: bool) -> list[float]:
        return [] if self._axis.other is None else [float(on)]

    def _words(self, value: ParamValue | None) -> list[float]:
        choices = self._axis.values
        if len(choices) <= 2:  # one dimension tells two words apart
            return [0.0 if value is None else float(same(value, choices[0]))]
        return [_ONE_HOT * (value is not None and same(value, choice)) for choice in choices]
