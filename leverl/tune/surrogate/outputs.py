"""Values made fit for a Gaussian process: low outliers pulled in, then mean 0 and standard deviation 1.

A run that collapsed has a score, far below all others. Left as it is it would bend the whole model; left out it would
be tried again. Pulled in to the lower fence of a box plot it still says "bad".
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from leverl.tune.surrogate.kernel import Floats

FENCE: Final = 1.5
"""Interquartile ranges below the first quartile from where on values are pulled in (Tukey 1977)."""

_FEWEST: Final = 5


@dataclass(frozen=True)
class Outputs:
    """The map from values to standardised ones, and back."""

    floor: float
    center: float
    scale: float

    def forward(self, values: Floats) -> Floats:
        return np.asarray((np.maximum(values, self.floor) - self.center) / self.scale)

    def back(self, standardised: Floats) -> Floats:
        """Means in units of the values; variances are multiplied by scale²."""
        return np.asarray(self.center + self.scale * standardised)


def outputs(values: Floats, weights: Floats | None = None) -> Outputs:
    """Fitted to single runs' values [n]; `weights` [n] count a configuration once, however many runs it has."""
    floor = -np.inf
    if len(values) >= _FEWEST:
        first, third = np.quantile(values, [0.25, 0.75])
        if third > first:
            floor = float(first - FENCE * (third - first))
    pulled = np.maximum(values, floor)
    center = float(np.average(pulled, weights=weights))
    spread = float(np.sqrt(np.average((pulled - center) ** 2, weights=weights)))
    return Outputs(floor, center, spread if spread > 1e-12 * max(1.0, abs(center)) else 1.0)
