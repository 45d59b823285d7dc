"""What is believed of a lever before any run: a bell around a recommended value.

Used as in piBO (Hvarfner et al. 2022, arXiv 2204.11051): the sampler multiplies its acquisition by the density,
with a power that fades as runs come in. A wrong belief therefore costs runs, not the result.
"""

import math
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 0.25
"""Standard deviation in units of the axis: half a decade on a range of two decades.

At the ends of a range centred on the recommended value the density is 14 % of its peak: a nudge, no wall.
"""


@dataclass(frozen=True)
class Prior:
    """A normal distribution over an axis's unit coordinate, cut off at 0 and 1 and normalised there."""

    center: float
    width: float = WIDTH

    def log_density(self, unit: float) -> float:
        """Natural logarithm of the density at `unit` in [0, 1]; the uniform prior would have 0 everywhere."""
        distance = (unit - self.center) / self.width
        inside = _normal_cdf((1 - self.center) / self.width) - _normal_cdf(-self.center / self.width)
        return -0.5 * distance**2 - math.log(self.width * math.sqrt(2 * math.pi) * inside)


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
