"""A space in Optuna's words: its dashboard shows the true values, and what was stored stays allowed.

`or: 0` becomes a categorical `NAME.on` beside the range. Optuna knows no powers of two and no logit scale: sizes
become whole numbers on a log scale, of which only powers of two are ever stored, and logit ranges linear floats.
Both keep the order of the values, which a categorical would lose.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from leverl.tune.model import Params, ParamValue
from leverl.tune.space.axis import Axis, same

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SWITCH: Final = ".on"
"""Ending of the categorical that says whether a lever is inside its range or takes the value beside it."""


def distributions(axes: Sequence[Axis]) -> dict[str, "BaseDistribution"]:
    """Optuna's parameters: name → distribution. They depend on the axes alone, so that a resumed study has the same."""
    from optuna.distributions import CategoricalDistribution

    found: dict[str, BaseDistribution] = {}
    for axis in axes:
        if axis.kind == "categorical":
            found[axis.name] = CategoricalDistribution(list(axis.values))
            continue
        if axis.other is not None:
            found[axis.name + SWITCH] = CategoricalDistribution([True, False])
        found[axis.name] = _range(axis)
    return found


def encode(axes: Sequence[Axis], params: Params) -> dict[str, ParamValue]:
    """`params` as Optuna's parameters; a value outside the space is left out."""
    found: dict[str, ParamValue] = {}
    for axis in axes:
        if axis.name not in params or not axis.contains(params[axis.name]):
            continue
        value = params[axis.name]
        beside = axis.other is not None and same(value, axis.other)
        if axis.other is not None:
            found[axis.name + SWITCH] = not beside
        if not beside:
            found[axis.name] = value
    return found


def decode(axes: Sequence[Axis], found: Mapping[str, Any]) -> Params:
    """The other way round; a whole number that Optuna proposes becomes the nearest power of two."""
    return {axis.name: _decoded(axis, found) for axis in axes}


def _decoded(axis: Axis, found: Mapping[str, Any]) -> ParamValue:
    if axis.other is not None and not found[axis.name + SWITCH]:
        return axis.other
    value: ParamValue = found[axis.name]
    snapped = axis.snap(value)
    return value if snapped is None else snapped


def _range(axis: Axis) -> "BaseDistribution":
    from optuna.distributions import FloatDistribution, IntDistribution

    if axis.kind == "float":
        return FloatDistribution(axis.low, axis.high, log=axis.scale == "log", step=axis.step)
    uneven = axis.scale in ("log", "pow2")
    return IntDistribution(int(axis.low), int(axis.high), log=uneven, step=int(axis.step or 1))
