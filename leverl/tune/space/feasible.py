"""Draws that keep the constraints, however few combinations do.

Constraints tie levers together in blocks. A block of levers with countable values is gone through once; its
admissible combinations are then drawn from directly, each as likely as it would be if combinations were drawn
freely and refused ones thrown away. A block with a range of floats in it is drawn from by doing just that, which
is cheap because nothing has to be resolved.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from leverl.tune.model import ParamValue
from leverl.tune.space.axis import Axis
from leverl.tune.space.expressions import Expression

if TYPE_CHECKING:
    import numpy as np

LARGEST: Final = 50_000
"""Combinations of a block, complete or not, that are gone through."""

DRAWS: Final = 20_000
"""Draws after which a block that is not gone through counts as impossible."""


@dataclass(frozen=True)
class Condition:
    """A constraint whose names are levers of the space, or have the same value all over it."""

    expression: Expression
    searched: Mapping[str, str]  # name in the expression → name of the axis
    fixed: Mapping[str, Any]  # name in the expression → value

    @property
    def names(self) -> frozenset[str]:
        """The axes it needs."""
        return frozenset(self.searched.values())

    def holds(self, params: Mapping[str, ParamValue]) -> bool:
        values = {name: params[axis] for name, axis in self.searched.items()}
        return self.expression.holds({**self.fixed, **values})


@dataclass(frozen=True)
class Block:
    """Levers that conditions tie together."""

    axes: tuple[Axis, ...]
    conditions: tuple[Condition, ...]

    @property
    def countable(self) -> bool:
        """Whether its admissible combinations can be gone through."""
        return self._table is not None

    @property
    def words(self) -> str:
        """The conditions, for messages."""
        return " and ".join(f"'{condition.expression.text}'" for condition in self.conditions)

    def holds(self, params: Mapping[str, ParamValue]) -> bool:
        return all(condition.holds(params) for condition in self.conditions)

    @property
    def combinations(self) -> Sequence[Mapping[str, ParamValue]]:
        """All admissible combinations; none of a block that is not countable."""
        return self._table.combinations if self._table else ()

    def at(self, units: Sequence[float]) -> dict[str, ParamValue] | None:
        """The admissible combination at a point of the unit cube; None without any, or if they cannot be counted.

        One lever after the other: each unit picks among the values still possible after those before it, by the
        share of the admissible combinations they have (Rosenblatt 1952). So an even spread of points over the
        cube gives an even spread over the admissible combinations.
        """
        table = self._table
        if table is None or not table.places:
            return None
        first, end = 0, len(table.places)
        prefix: tuple[float, ...] = ()
        for unit in units:
            below, above = table.mass[first], table.mass[end]
            index = bisect_right(table.mass, below + unit * (above - below), first, end) - 1
            prefix = table.places[min(max(index, first), end - 1)][: len(prefix) + 1]
            first = bisect_left(table.places, prefix, first, end)
            end = bisect_left(table.places, (*prefix, math.inf), first, end)
        return table.combinations[first]

    def draw(self, generator: "np.random.Generator") -> dict[str, ParamValue] | None:
        """A random admissible combination; None where there is none, or none was found."""
        if self.countable:
            return self.at(generator.random(len(self.axes)).tolist())
        for _ in range(DRAWS):
            units = generator.random(len(self.axes)).tolist()
            found = {axis.name: axis.at(unit) for axis, unit in zip(self.axes, units, strict=True)}
            if self.holds(found):
                return found
        return None

    @cached_property
    def _table(self) -> "_Table | None":
        combinations = self._gone_through()
        if combinations is None:
            return None
        rows = sorted(
            ((tuple(axis.unit(cell[axis.name]) for axis in self.axes), cell) for cell in combinations),
            key=lambda row: row[0],
        )
        mass = [math.prod(axis.share(cell[axis.name]) for axis in self.axes) for _, cell in rows]
        return _Table(
            [place for place, _ in rows], [cell for _, cell in rows], [0.0, *itertools.accumulate(mass)]
        )

    def _gone_through(self) -> list[dict[str, ParamValue]] | None:
        """All admissible combinations, grown lever by lever; None if there are too many on the way."""
        grown: list[dict[str, ParamValue]] = [{}]
        for axis in self.axes:
            if axis.count is None or axis.count > LARGEST:
                return None
            alone = [condition for condition in self.conditions if condition.names == {axis.name}]
            values = [
                v for v in axis.choices() if all(condition.holds({axis.name: v}) for condition in alone)
            ]
            if len(grown) * len(values) > LARGEST:
                return None
            known = {*grown[0], axis.name} if grown else set()
            complete = [c for c in self.conditions if axis.name in c.names and c.names <= known]
            wider = ({**cell, axis.name: value} for cell in grown for value in values)
            grown = [cell for cell in wider if all(condition.holds(cell) for condition in complete)]
        return grown


@dataclass(frozen=True)
class _Table:
    """Admissible combinations in the order of their units, and how likely those before each are together."""

    places: list[tuple[float, ...]]
    combinations: list[dict[str, ParamValue]]
    mass: list[float]


def tied(axes: Sequence[Axis], conditions: Iterable[Condition]) -> tuple[Block, ...]:
    """Levers tied together by conditions, directly or through others; free levers are in no block."""
    groups: list[tuple[set[str], list[Condition]]] = []
    for condition in conditions:
        names, together = set(condition.names), [condition]
        apart = []
        for group in groups:
            if group[0] & names:
                names |= group[0]
                together = [*group[1], *together]
            else:
                apart.append(group)
        groups = [*apart, (names, together)]
    return tuple(
        Block(tuple(axis for axis in axes if axis.name in names), tuple(conditions))
        for names, conditions in groups
        if names
    )
