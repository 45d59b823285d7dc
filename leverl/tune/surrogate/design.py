"""The first configurations: a scrambled Sobol' sequence over the space, as far as its points can run."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.stats import qmc

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Key, key

_POINTS: Final = 128  # a power of two


At = Callable[[Sequence[float]], Params]
"""The configuration at a point of the unit cube."""


def each_axis_alone(axes: Sequence[Axis]) -> At:
    """Where no constraints tie axes together."""

    def at(units: Sequence[float]) -> Params:
        return {axis.name: axis.at(unit) for axis, unit in zip(axes, units, strict=True)}

    return at


def spread_out(
    levers: int, at: At, admit: Callable[[Params], Params | None], taken: set[Key], seed: int
) -> Params | None:
    """The first point of the sequence that can run and is not taken; None when none of them is."""
    points = qmc.Sobol(d=levers, scramble=True, rng=np.random.default_rng([seed, 0])).random(_POINTS)
    for point in points.tolist():
        params = admit(at(point))
        if params is not None and key(params) not in taken:
            return params
    return None
