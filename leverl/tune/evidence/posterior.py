"""What is believed of configurations' true means: jointly normal, updated in closed form. Larger is better."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

_DRAWS: Final = 2048  # pairs of mirrored draws: P(best) is exact to about 0.6 %
_JITTER: Final = 1e-12
_SMALLEST: Final = 1e-300  # where nothing varies at all


@dataclass(frozen=True)
class Observation:
    """One run of a configuration. `value` is None while it is pending: only its weight is known."""

    config_id: str
    seed: int
    value: float | None
    variance: float  # of the value around the configuration's mean, the seed's common effect apart


@dataclass(frozen=True, eq=False)
class Belief:
    """Joint normal belief about the true mean scores of `ids`."""

    ids: tuple[str, ...]
    mean: FloatArray  # [n]
    covariance: FloatArray  # [n, n]

    def of(self, ids: Sequence[str]) -> "Belief":
        """The belief about some of the configurations, in that order."""
        rows = [self.ids.index(config_id) for config_id in ids]
        return Belief(tuple(ids), self.mean[rows], self.covariance[np.ix_(rows, rows)])

    def shifted(self, variance: float) -> "Belief":
        """The same, with an unknown offset of this variance common to all configurations."""
        return Belief(self.ids, self.mean, self.covariance + variance)

    def after(self, observations: Iterable[Observation], common: float) -> "Belief":
        """The belief once these runs are known: y = θ(config) + b(seed) + e.

        `common` is the variance of b, what a seed does to all configurations alike. Runs that are pending
        narrow the covariance as they will when they end; the mean rests on those that have ended.
        """
        runs = [found for found in observations if found.config_id in self.ids]
        if not runs:
            return self
        gain, seen = self._gain(runs, common)
        covariance = self.covariance - gain @ seen @ self.covariance
        ended = [found for found in runs if found.value is not None]
        if 0 < len(ended) < len(runs):
            gain, seen = self._gain(ended, common)
        values = np.array([found.value for found in ended], dtype=np.float64)
        mean = self.mean + gain @ (values - seen @ self.mean) if ended else self.mean
        return Belief(self.ids, mean, (covariance + covariance.T) / 2)

    def _gain(self, runs: Sequence[Observation], common: float) -> tuple[FloatArray, FloatArray]:
        """Kalman gain [n, r] and the selection [r, n] of the configurations that ran."""
        places = [self.ids.index(found.config_id) for found in runs]
        seen = np.zeros((len(runs), len(self.ids)))
        seen[np.arange(len(runs)), places] = 1.0
        seeds = np.array([found.seed for found in runs])
        joint = self.covariance[np.ix_(places, places)] + common * (seeds[:, None] == seeds[None, :])
        joint[np.diag_indices_from(joint)] += [found.variance for found in runs]
        joint[np.diag_indices_from(joint)] += _JITTER * float(np.trace(joint)) + _SMALLEST
        gain: FloatArray = np.linalg.solve(joint, self.covariance[places]).T
        return gain, seen

    def difference(self, one: int, two: int) -> tuple[float, float]:
        """Mean and standard deviation of θ(one) - θ(two), given by position."""
        c = self.covariance
        variance = float(c[one, one] + c[two, two] - 2 * c[one, two])
        return float(self.mean[one] - self.mean[two]), math.sqrt(max(variance, 0.0))

    def probability_best(self) -> FloatArray:
        """P(θ is the largest) of each configuration, [n]."""
        if len(self.ids) == 2:
            first = probability_positive(*self.difference(0, 1))
            return np.array([first, 1.0 - first])
        best = np.argmax(self._draws(), axis=1)
        return np.bincount(best, minlength=len(self.ids)) / len(best)

    def expected_loss(self) -> FloatArray:
        """E[largest θ] - E[θ]: what taking a configuration instead of the best is expected to cost, [n]."""
        if len(self.ids) == 2:
            gap, sd = self.difference(0, 1)
            top = float(self.mean[1]) + expected_positive(gap, sd)  # Clark (1961)
        else:
            draws = self._draws()
            top = float(np.mean(draws.max(axis=1) - draws @ np.full(len(self.ids), 1 / len(self.ids))))
            top += float(self.mean.mean())  # the mean over all is known exactly, only the rest is drawn
        return np.maximum(top - self.mean, 0.0)

    def _draws(self) -> FloatArray:
        """Mirrored draws [2·_DRAWS, n], the same at every call: decisions must not depend on luck."""
        root = _root(self.covariance)
        found: FloatArray = self.mean + _normals(len(self.ids)) @ root.T
        return found


def probability_positive(mean: float, sd: float) -> float:
    """P(x > 0) of a normal x; ½ where it is exactly 0."""
    if sd == 0.0:
        return 0.5 if mean == 0.0 else float(mean > 0.0)
    return 0.5 * math.erfc(-mean / sd / math.sqrt(2.0))


def expected_positive(mean: float, sd: float) -> float:
    """E[max(x, 0)] of a normal x."""
    if sd == 0.0:
        return max(mean, 0.0)
    density = math.exp(-0.5 * (mean / sd) ** 2) / math.sqrt(2.0 * math.pi)
    return mean * probability_positive(mean, sd) + sd * density


def _root(covariance: FloatArray) -> FloatArray:
    """R with R·Rᵀ = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    found: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))
    return found


@lru_cache(maxsize=4)
def _normals(count: int) -> FloatArray:
    drawn = np.random.default_rng(0).standard_normal((_DRAWS, count))
    return np.concatenate([drawn, -drawn])
