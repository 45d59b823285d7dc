"""Edges of the histogram of the probability ratio, `ratio/histogram`."""

import math
from typing import Final

_STEPS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

RATIO_BINS: Final[tuple[float, ...]] = (
    *(math.exp(-step) for step in reversed(_STEPS)),
    *(math.exp(step) for step in _STEPS),
)
"""1-2-5 steps of |log ratio|. 24 edges make 25 bins: bin i holds edge[i − 1] ≤ ratio < edge[i], the middle
one holds 1, so that float noise around 1 does not fall apart, and the first and last are open."""
