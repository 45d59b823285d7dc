"""The nearest configuration that can run, for a combination that cannot.

First the levers with countable values are moved, nearest combination first, for the rest stays as it is; then
whole combinations are drawn, and the nearest is led back towards the one wanted, as far as it can still run.
Deterministic: the same combination has the same repair.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from leverl.tune.model import Params, ParamValue
from leverl.tune.space.axis import Axis

if TYPE_CHECKING:
    from leverl.tune.space.space import Space

_MOST_CELLS: Final = 4096
_DRAWS: Final = 512
_HALVINGS: Final = 12


def nearest_admissible(space: "Space", params: Params) -> Params | None:
    """The configuration nearest to `params` that can run, without levers that have no effect; None without any.

    Raises:
        ConfigError: no combination keeps the constraints.
    """
    wanted = _inside(space, params)
    found = space.admit(wanted).params
    if found is None:
        found = _nearest_cell(space, wanted)
    return _nearest_draw(space, wanted) if found is None else found


def _inside(space: "Space", params: Params) -> dict[str, ParamValue]:
    """`params` with a value of the space for every lever: the nearest one, the base's, or the middle."""
    snapped = {
        axis.name: value
        for axis in space.axes
        if axis.name in params and (value := axis.snap(params[axis.name])) is not None
    }
    return space.fill(snapped) or snapped  # `fill` finds nothing wrong: all values are the space's


def _nearest_cell(space: "Space", wanted: Mapping[str, ParamValue]) -> Params | None:
    """`wanted` with its countable levers moved, as little as possible: those that constraints tie, then all."""
    for moved in (_tied_moved(space, wanted), _countable_moved(space, wanted)):
        candidates = [candidate for candidate in moved if space.keeps_constraints(candidate)]
        candidates.sort(key=lambda candidate: space.distance(candidate, wanted))
        for candidate in candidates:
            if (found := space.admit(candidate).params) is not None:
                return found
    return None


def _tied_moved(space: "Space", wanted: Mapping[str, ParamValue]) -> Iterator[dict[str, ParamValue]]:
    """Every broken block of constraints with a combination of its own that keeps them."""
    broken = [block for block in space.blocks if block.countable and not block.holds(wanted)]
    kept = [
        sorted(block.combinations, key=lambda part: space.distance({**wanted, **part}, wanted))
        for block in broken
    ]
    for combinations in itertools.islice(itertools.product(*kept), _MOST_CELLS):
        yield {**wanted, **{name: value for part in combinations for name, value in part.items()}}


def _countable_moved(space: "Space", wanted: Mapping[str, ParamValue]) -> Iterator[dict[str, ParamValue]]:
    """The neighbourhood of `wanted`: the nearest values of each countable lever, combined."""
    countable = [axis for axis in space.axes if axis.count is not None and axis.count <= _MOST_CELLS]
    choices = [sorted(axis.choices(), key=partial(axis.distance, wanted[axis.name])) for axis in countable]
    while math.prod(map(len, choices)) > _MOST_CELLS:
        longest = max(choices, key=len)
        longest.pop()
    for values in itertools.product(*choices):
        yield {**wanted, **{axis.name: value for axis, value in zip(countable, values, strict=True)}}


def _nearest_draw(space: "Space", wanted: Mapping[str, ParamValue]) -> Params | None:
    """The nearest of many draws that can run, led back towards `wanted`."""
    import numpy as np

    generator = np.random.default_rng(0)
    draws = [dict(space.draw(generator)) for _ in range(_DRAWS)]
    draws.sort(key=lambda draw: space.distance(draw, wanted))
    start = next((draw for draw in draws if space.admit(draw).params is not None), None)
    if start is None:
        return None
    best, back = start, 0.0
    for halving in range(1, _HALVINGS + 1):
        tried = {axis.name: _between(axis, start, wanted, back + 0.5**halving) for axis in space.axes}
        if space.keeps_constraints(tried) and space.admit(tried).params is not None:
            best, back = tried, back + 0.5**halving
    return space.admit(best).params


def _between(
    axis: Axis, start: Mapping[str, ParamValue], end: Mapping[str, ParamValue], share: float
) -> ParamValue:
    """The value at a share of the way; words, and a value beside the range, stay as they are at the start."""
    one, two = start[axis.name], end[axis.name]
    if not axis.ordered or axis.is_other(one) or axis.is_other(two):
        return one
    return axis.value(axis.position(one) + share * (axis.position(two) - axis.position(one)))
