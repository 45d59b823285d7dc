"""One searched lever: its values, and where they lie between 0 and 1."""

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Literal

from leverl.errors import ConfigError
from leverl.tune.model import LeverAxis, ParamValue
from leverl.tune.space.priors import Prior

OTHER_SHARE: Final = 0.25
"""How often random sampling takes the value beside a range (`or: 0`)."""

Kind = Literal["float", "int", "categorical"]
Scale = Literal["linear", "log", "logit", "pow2"]

_SAME_STEP: Final = 1e-9
"""How far a float may lie from its step, in steps."""


@dataclass(frozen=True)
class Axis:
    """A range [low, high] of numbers, or a list of `values` (kind categorical).

    Two coordinates describe a value. Its `position` in [0, 1] is the place inside the range: linear in the
    scale (log, logit, log2 for pow2), and the middle of its cell where values are countable. Its `unit` in
    [0, 1] also covers `other`, the value of its own beside the range (`or: 0`), which takes the first
    OTHER_SHARE; without `other` the two are equal. `at` turns a unit into a value, `unit` is its inverse.

    Axis("x", low=0.0, high=1.0) is enough: `path` is only needed for levers of a configuration.

    Raises:
        ConfigError: the range is empty, or scale, step and bounds do not fit together.
    """

    name: str
    path: str = ""
    kind: Kind = "float"
    low: float = 0.0
    high: float = 1.0
    scale: Scale = "linear"
    step: float | None = None  # linear only; values low, low + step, …, high
    values: tuple[ParamValue, ...] = ()
    other: ParamValue | None = None
    prior: Prior | None = None  # over `unit`; None: all values are equally likely to be good

    def __post_init__(self) -> None:
        for message in _impossible(self):
            raise ConfigError(f"{self.name}: {message}")

    @property
    def log(self) -> bool:
        return self.scale == "log"

    @property
    def finite(self) -> bool:
        """Whether the values can be counted."""
        return self.kind != "float" or self.step is not None

    @property
    def ordered(self) -> bool:
        """Whether neighbouring values are alike: numbers are, also in a list; words, true and false are not."""
        return self.kind != "categorical" or all(_is_number(value) for value in self.values)

    @property
    def count(self) -> int | None:
        """Number of values, `other` included; None for a range of floats."""
        return self._levels + (self.other is not None) if self.finite else None

    def choices(self) -> tuple[ParamValue, ...]:
        """All values of a finite axis, in order; `other` comes first, a list keeps the order it was written in."""
        if self.kind == "categorical":
            return self.values
        inside = tuple(self._level(index) for index in range(self._levels))
        return inside if self.other is None else (self.other, *inside)

    def contains(self, value: Any) -> bool:
        if self.kind == "categorical":
            return any(same(value, choice) for choice in self.values)
        if not _is_number(value):
            return False
        return self.is_other(value) or (self.low <= value <= self.high and self._is_level(value))

    def is_other(self, value: ParamValue) -> bool:
        """Whether `value` is the one beside the range."""
        return self.other is not None and same(value, self.other)

    def at(self, unit: float) -> ParamValue:
        """The value at `unit` in [0, 1]; equal lengths are equally likely under random sampling."""
        if self.other is None:
            return self.value(unit)
        return self.other if unit < OTHER_SHARE else self.value((unit - OTHER_SHARE) / (1 - OTHER_SHARE))

    def unit(self, value: ParamValue) -> float:
        """The inverse of `at`: at(unit(v)) == v where values are countable, up to rounding elsewhere.

        Raises:
            ConfigError: the axis does not contain the value.
        """
        if self.other is None:
            return self.position(value)
        if self.is_other(value):
            return 0.5 * OTHER_SHARE
        return OTHER_SHARE + (1 - OTHER_SHARE) * self.position(value)

    def value(self, position: float) -> ParamValue:
        """The value at `position` in [0, 1] of the range (or list), leaving `other` out."""
        if self._evenly_spaced:
            return self._level(min(max(int(position * self._levels), 0), self._levels - 1))
        low, high = self._ends
        found = self._from_scale(low + (high - low) * position)
        found = min(max(found, self.low), self.high)
        return min(max(round(found), int(self.low)), int(self.high)) if self.kind == "int" else found

    def position(self, value: ParamValue) -> float:
        """Where `value` lies inside the range or list, in [0, 1]; a list of numbers is ordered by size.

        Raises:
            ConfigError: the range does not contain the value (`other` lies beside it).
        """
        if self.is_other(value) or not self.contains(value):
            raise ConfigError(f"{self.name} = {value!r} lies outside its range.")
        if self._evenly_spaced:
            return (self._index(value) + 0.5) / self._levels
        low, high = self._ends
        number = float(value)
        if self.kind == "int":  # the middle of its cell
            at = 0.5 * (self._to_scale(number - 0.5) + self._to_scale(number + 0.5))
        else:
            at = self._to_scale(number)
        return min(max((at - low) / (high - low), 0.0), 1.0) if high > low else 0.5

    def share(self, value: ParamValue) -> float:
        """How much of [0, 1] the units of `value` take, on a finite axis."""
        if self.is_other(value):
            return OTHER_SHARE
        inside = 1.0 if self.other is None else 1 - OTHER_SHARE
        if self._evenly_spaced:
            return inside / self._levels
        low, high = self._ends
        number = float(value)
        return inside * (self._to_scale(number + 0.5) - self._to_scale(number - 0.5)) / (high - low)

    def snap(self, value: ParamValue) -> ParamValue | None:
        """The value of the axis closest to `value`, on the axis's scale; None for a word it does not have."""
        if self.contains(value):
            return value
        if not _is_number(value) or not self.ordered:
            return None
        if self.kind == "categorical":
            return min(self._sorted, key=lambda choice: abs(float(choice) - float(value)))
        number = min(max(float(value), self.low), self.high)
        if self._evenly_spaced:
            return self._level(round(self._steps_from_low(number)))
        return round(number) if self.kind == "int" else number

    def middle(self) -> ParamValue:
        """The value in the middle of the range, or of the list."""
        return self.value(0.5)

    def distance(self, one: ParamValue, two: ParamValue) -> float:
        """How far two values lie apart: a share of the range for numbers, 1 for different words.

        1 also between the range and the value beside it.
        """
        if same(one, two):
            return 0.0
        if not self.ordered or self.is_other(one) or self.is_other(two):
            return 1.0
        first, last = self.position(self._first), self.position(self._last)
        return abs(self.position(one) - self.position(two)) / (last - first) if last > first else 0.0

    def view(self, base: ParamValue | None) -> LeverAxis:
        """The axis for plots and tables."""
        if self.kind == "categorical":
            return LeverAxis(self.name, "categorical", None, None, self.values, base)
        scale = "int" if self.kind == "int" and self.scale == "linear" else self.scale
        beside = () if self.other is None else (self.other,)
        return LeverAxis(self.name, scale, self.low, self.high, beside, base)

    # Countable values: level number 0, 1, … of the range or list.

    @property
    def _evenly_spaced(self) -> bool:
        """Whether all values take equal shares of [0, 1]; whole numbers on a log scale do not."""
        return self.finite and self.scale != "log"

    @cached_property
    def _levels(self) -> int:
        """How many values the range or list has."""
        if self.kind == "categorical":
            return len(self.values)
        return round(self._steps_from_low(self.high)) + 1

    def _steps_from_low(self, number: float) -> float:
        if self.scale == "pow2":
            return math.log2(number / self.low)
        return (number - self.low) / (self.step or 1)

    def _level(self, index: int) -> ParamValue:
        if self.kind == "categorical":
            return self._sorted[index]
        if self.scale == "pow2":
            return int(self.low) << index
        value = self.low + index * (self.step or 1)
        return int(value) if self.kind == "int" else min(max(float(f"{value:.12g}"), self.low), self.high)

    def _index(self, value: ParamValue) -> int:
        if self.kind == "categorical":
            return next(number for number, choice in enumerate(self._sorted) if same(choice, value))
        return round(self._steps_from_low(float(value)))

    def _is_level(self, value: float) -> bool:
        """Whether a number inside the range is one of its values."""
        if not self.finite:
            return True
        if self.kind == "int":
            return value == int(value) and (
                not self._evenly_spaced or self._level(self._index(value)) == value
            )
        return abs(self._steps_from_low(value) - self._index(value)) < _SAME_STEP

    @cached_property
    def _sorted(self) -> tuple[ParamValue, ...]:
        return tuple(sorted(self.values, key=float)) if self.ordered else self.values

    @property
    def _first(self) -> ParamValue:
        return self._sorted[0] if self.kind == "categorical" else self.low

    @property
    def _last(self) -> ParamValue:
        return self._sorted[-1] if self.kind == "categorical" else self.high

    # Ranges of floats, and of whole numbers on a log scale.

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Both ends on the scale; a cell of a whole number reaches half a unit to both sides."""
        margin = 0.5 if self.kind == "int" else 0.0
        return self._to_scale(self.low - margin), self._to_scale(self.high + margin)

    def _to_scale(self, number: float) -> float:
        if self.scale == "log":
            return math.log(number)
        return math.log(number / (1 - number)) if self.scale == "logit" else number

    def _from_scale(self, number: float) -> float:
        if self.scale == "log":
            return math.exp(number)
        return 1 / (1 + math.exp(-number)) if self.scale == "logit" else number


def same(one: Any, two: Any) -> bool:
    """Equality that keeps True apart from 1 (both are lever values)."""
    return one == two and isinstance(one, bool) == isinstance(two, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _impossible(axis: Axis) -> list[str]:
    """What does not fit together, in the words of a study file."""
    if axis.kind == "categorical":
        return [] if axis.values else ["a list needs at least one value."]
    low, high, scale, step = axis.low, axis.high, axis.scale, axis.step
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        return [f"min = {low!r} must be below max = {high!r}."]
    if step is not None and scale != "linear":
        return [
            f"step and {scale} exclude each other: steps are equal on a linear scale only. Leave out one."
        ]
    found: list[str] = []
    if scale == "log" and low <= 0:
        found.append(f"min = {low!r} has no logarithm. Give min > 0; to try 0 as well, write {{…, or: 0}}.")
    if scale == "logit" and not (axis.kind == "float" and low > 0 and high < 1):
        found.append(
            f"logit needs 0 < min and max < 1, found {low!r} and {high!r}. To try 0 or 1 as well, write {{…, or: 1}}."
        )
    if scale == "pow2" and not (axis.kind == "int" and _is_power_of_two(low) and _is_power_of_two(high)):
        found.append(
            f"pow2 needs whole powers of two (32, 64, 128, …) as min and max, found {low!r} and {high!r}."
        )
    if step is not None:
        found += _impossible_step(axis, step)
    if axis.other is not None and (not _is_number(axis.other) or low <= float(axis.other) <= high):
        found.append(f"or = {axis.other!r} must be a number outside [{low!r}, {high!r}].")
    return found


def _impossible_step(axis: Axis, step: float) -> list[str]:
    if not step > 0 or (axis.kind == "int" and step != int(step)):
        return [f"step = {step!r} must be {'a whole number' if axis.kind == 'int' else 'a number'} above 0."]
    low, high, exact = (Decimal(str(number)) for number in (axis.low, axis.high, step))
    if (high - low) % exact:
        last = low + (high - low) // exact * exact
        return [
            f"max = {axis.high!r} is not min plus a whole number of steps of {step!r}; write max: {last}."
        ]
    return []


def _is_power_of_two(number: float) -> bool:
    return number >= 1 and number == int(number) and int(number) & (int(number) - 1) == 0
