"""Whether another run of a known configuration tells more than a run of a new one.

Noisy expected improvement never looks at a configuration twice: its true mean cannot be better than itself. What a
second seed brings is knowledge, so the two are compared by the knowledge gradient: how much the highest posterior
mean is expected to rise through one more run (Frazier, Powell & Dayanik 2009), over the known configurations and the
new one.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri

from leverl.tune.surrogate.kernel import Floats

MOST_RUNS: Final = 4
"""Runs of one configuration in a search; the race gives the best ones more."""

_OUTCOMES: Final = 64


@dataclass(frozen=True)
class Gain:
    """Expected rise of the highest posterior mean, by where the next run goes."""

    mean: Floats  # [n] posterior means of all configurations that could be recommended
    covariance: Floats  # [n, n]

    def of(self, place: int, noise: float) -> float:
        """For one more run of configuration number `place`, whose result has variance `noise` around its mean."""
        spread = np.sqrt(max(self.covariance[place, place] + noise, 1e-12))
        normal = ndtri((np.arange(_OUTCOMES) + 0.5) / _OUTCOMES)
        outcomes = self.mean[:, None] + np.outer(self.covariance[:, place] / spread, normal)
        return float(outcomes.max(axis=0).mean() - self.mean.max())


def continued(noise: float, prediction: float) -> float:
    """The variance that a new, independent result would need to tell as much as the rest of a stopped run.

    Its prediction has error variance `prediction` on top of `noise`; run to its end, `noise` alone is left.
    """
    return noise * (noise + prediction) / max(prediction, 1e-12)
