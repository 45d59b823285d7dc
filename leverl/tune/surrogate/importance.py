"""Which levers matter: total Sobol' indices of functions drawn from the posterior."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import qmc

from leverl.tune.surrogate.encoding import Encoding
from leverl.tune.surrogate.gp import Process
from leverl.tune.surrogate.kernel import Floats

_POINTS: Final = 128  # a power of two


@dataclass(frozen=True)
class Interval:
    """A median with its 90 % interval."""

    median: float
    low: float
    high: float


def total_effects(encoding: Encoding, process: Process, *, draws: int, seed: int) -> Mapping[str, Interval]:
    """Lever → total effect; all levers are taken as active.

    Jansen's estimator: half the mean squared change when a lever alone is drawn anew, over the variance.
    """
    axes = encoding.axes
    points = qmc.Sobol(d=2 * len(axes), scramble=True, rng=np.random.default_rng([seed, 1])).random(_POINTS)
    here, there = points[:, : len(axes)], points[:, len(axes) :]
    blocks = [here]
    for number in range(len(axes)):
        moved = here.copy()
        moved[:, number] = there[:, number]
        blocks.append(moved)
    x = encoding.encode(
        [
            {axis.name: axis.at(float(unit)) for axis, unit in zip(axes, row, strict=True)}
            for block in blocks
            for row in block
        ]
    )
    functions = _draw(process, x, np.random.default_rng([seed, 2]), draws).reshape(
        draws, len(axes) + 1, _POINTS
    )
    variance = np.maximum(functions[:, 0].var(axis=1), 1e-12)
    effects = {}
    for number, axis in enumerate(axes, 1):
        change = 0.5 * ((functions[:, number] - functions[:, 0]) ** 2).mean(axis=1)
        low, median, high = np.quantile(np.minimum(change / variance, 1.0), [0.05, 0.5, 0.95])
        effects[axis.name] = Interval(float(median), float(low), float(high))
    return effects


def _draw(process: Process, x: Floats, generator: np.random.Generator, count: int) -> Floats:
    """Functions [count, n] from the posterior at `x` [n, d]; equal rows of `x` get equal values."""
    unique, inverse = np.unique(x, axis=0, return_inverse=True)
    normal = generator.standard_normal((count, len(unique)))
    values, vectors = np.linalg.eigh(process.covariance(unique))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray((process.mean(unique) + normal @ root.T)[:, inverse.ravel()])
