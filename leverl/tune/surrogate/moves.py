"""Neighbours of a configuration: one lever a step further, or all levers a little."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from leverl.tune.model import Params, ParamValue
from leverl.tune.space.axis import Axis, same

_SWITCH_SHARE: Final = 0.1  # how often a jump flips a switch or draws another word


def completed(axes: Sequence[Axis], params: Params, generator: np.random.Generator) -> dict[str, ParamValue]:
    """With random values for levers without effect: a move elsewhere may give them one."""
    return {
        axis.name: params[axis.name] if axis.name in params else axis.at(generator.random()) for axis in axes
    }


def steps(
    axes: Sequence[Axis], params: Params, size: float, generator: np.random.Generator
) -> Iterator[Params]:
    """Each active lever alone: `size` of its range up and down, at least one value; switches and words changed."""
    full = completed(axes, params, generator)
    for axis in axes:
        if axis.name in params:
            for value in _beside(axis, full[axis.name], size, generator):
                yield {**full, axis.name: value}


def jump(axes: Sequence[Axis], params: Params, size: float, generator: np.random.Generator) -> Params:
    """All levers moved at random by about `size` of their range."""
    full = completed(axes, params, generator)
    for axis in axes:
        value = full[axis.name]
        if (
            not axis.ordered
            or _off(axis, value)
            or generator.random() < _SWITCH_SHARE * (axis.other is not None)
        ):
            if generator.random() < _SWITCH_SHARE:
                full[axis.name] = axis.at(generator.random())
        else:
            full[axis.name] = _moved(axis, value, size * generator.standard_normal())
    return full


def _beside(
    axis: Axis, value: ParamValue, size: float, generator: np.random.Generator
) -> Iterator[ParamValue]:
    if not axis.ordered:
        yield from (choice for choice in axis.values if not same(choice, value))
        return
    if _off(axis, value):
        yield axis.value(generator.random())
        return
    if axis.other is not None:
        yield axis.other
    yield from (_moved(axis, value, size), _moved(axis, value, -size))


def _moved(axis: Axis, value: ParamValue, by: float) -> ParamValue:
    """At least one value further on an axis with few values."""
    if axis.count is not None:
        least = 1.0 / axis.count
        by = float(np.sign(by)) * max(abs(by), least)
    return axis.value(min(max(axis.position(value) + by, 0.0), 1.0))


def _off(axis: Axis, value: ParamValue) -> bool:
    return axis.other is not None and same(value, axis.other)
