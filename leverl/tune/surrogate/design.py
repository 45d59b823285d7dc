"""The first configurations: a scrambled Sobol' sequence over the space, as far as its points can run."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.stats import qmc

from leverl.tune.axis import Axis
from leverl.tune.model import Params
from leverl.tune.space import Key, key

_POINTS: Final = 128  # a power of two


def spread_out(
    axes: Sequence[Axis], admit: Callable[[Params], Params | None], taken: set[Key], seed: int
) -> Params | None:
    """The first point of the sequence that can run and is not taken; None when none of them is."""
    points = qmc.Sobol(d=len(axes), scramble=True, rng=np.random.default_rng([seed, 0])).random(_POINTS)
    for point in points:
        params = admit({axis.name: axis.at(float(unit)) for axis, unit in zip(axes, point, strict=True)})
        if params is not None and key(params) not in taken:
            return params
    return None
