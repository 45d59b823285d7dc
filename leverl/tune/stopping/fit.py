"""Extrapolation of a learning curve: saturating growth plus a random walk plus noise, averaged over their constants.

    y(t) = R0 + G · g(t) + W(t) + e(t),   g(t) = 1 / (1 + (mid / t)^B)

g is the saturation curve of Khatri et al. 2025 (ScaleRL, arXiv 2510.13786), W a Wiener process and e white noise. Given
mid, B and the sizes of W and e, everything is normal: R0 and G are integrated out in closed form (Bayesian linear
regression), and the rest is averaged over a grid with the posterior weights. So nothing is optimised or drawn: the same
curve always gives the same answer. A curve that is still flat keeps some belief in growth that sets in later, one
that falls goes on from where it is.

t is the share of the run's steps; scores come in units of the range seen in the study, so the priors below are free
of units. They were set on recorded curves (`benchmarks/stopping.py` prints the calibration) and are wide on purpose.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

_MIDS: Final = tuple(float(mid) for mid in np.geomspace(0.03, 1.5, 28))  # where half of the growth is done
_STEEPNESS: Final = (1.0, 1.4, 2.0, 2.8, 4.0, 5.7, 8.0, 12.0)
_FLAT: Final = 0.3  # prior probability of no growth at all
_RISE: Final = 0.4  # prior mean of G: runs more often get better than worse
_GROWTH: Final = 1.0  # prior standard deviation of G
_START: Final = 1.0  # of R0, around the first evaluation
_WALK: Final = (0.03, 0.08, 0.2, 0.5)  # standard deviation of W after the whole run
_NOISE: Final = (0.002, 0.007, 0.02, 0.06, 0.15)  # of a single evaluation
_POINTS: Final = 32  # longer curves are averaged in as many pieces
_NEGLIGIBLE: Final = 1e-7  # posterior weights below it are dropped


@dataclass(frozen=True)
class Curve:
    """Evaluations so far: at which share of the run's steps, and the scores in units of the study's range."""

    shares: tuple[float, ...]
    scores: tuple[float, ...]


Mixture: TypeAlias = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]
"""Weights (sum 1), means and standard deviations of normal distributions."""


def extrapolate(curve: Curve, future: tuple[float, ...]) -> Mixture:
    """Distribution of the mean of the evaluations at the shares `future`, all after the last one of `curve`.

    Larger scores are better.
    """
    first = curve.scores[0]
    times, scores, counts = _pieces(np.array(curve.shares), np.array(curve.scores) - first)
    ahead = np.array(future)
    walk, noise = _sizes()
    shared = np.minimum(times[:, None], times[None])
    covariance = walk[:, None, None] ** 2 * shared + noise[:, None, None] ** 2 * np.diag(
        1.0 / counts
    )  # [S, n, n]
    growth, growth_ahead = _growth(times), _growth(ahead).mean(axis=0)
    fits = _Products.of(covariance, scores, times, growth)
    start, rise = fits.regression()
    evidence = fits.evidence(start, rise) + _log_prior()
    between = np.minimum(ahead[:, None], ahead[None]).mean()
    means, variances = fits.ahead(start, rise, growth_ahead, walk**2, float(between))
    variances = variances + (noise**2 / len(ahead))[:, None]
    weights = np.exp(evidence - evidence.max())
    return _largest(weights / weights.sum(), means + first, np.sqrt(variances))


@dataclass(frozen=True)
class _Products:
    """xᵀ K⁻¹ y of scores, ones, times and growth curves, for each of S covariances K [n, n] (and J growth curves)."""

    log_determinant: FloatArray  # [S, 1]
    score_score: FloatArray  # [S, 1], and so on
    score_one: FloatArray
    score_time: FloatArray
    one_one: FloatArray
    one_time: FloatArray
    time_time: FloatArray
    score_growth: FloatArray  # [S, J], and so on
    one_growth: FloatArray
    time_growth: FloatArray
    growth_growth: FloatArray

    @classmethod
    def of(
        cls, covariance: FloatArray, scores: FloatArray, times: FloatArray, growth: FloatArray
    ) -> "_Products":
        plain = np.stack([scores, np.ones_like(scores), times], axis=1)
        columns = np.concatenate([plain, growth], axis=1)  # [n, 3 + J]
        solved = np.linalg.solve(covariance, np.broadcast_to(columns, (len(covariance), *columns.shape)))
        left = np.einsum("na,snb->sab", plain, solved)  # [S, 3, 3 + J]
        own = np.einsum("nj,snj->sj", growth, solved[:, :, 3:])
        (ss, so, st), (_, oo, ot), (_, _, tt) = (
            [left[:, row, column, None] for column in range(3)] for row in range(3)
        )
        log_determinant = np.linalg.slogdet(covariance)[1][:, None]
        return cls(
            log_determinant, ss, so, st, oo, ot, tt, left[:, 0, 3:], left[:, 1, 3:], left[:, 2, 3:], own
        )

    def regression(self) -> tuple["_Normal", "_Normal"]:
        """Posterior of R0 and of G, given everything else."""
        one, both, own = self._precision()
        determinant = one * own - both**2
        pull = self.score_growth + _RISE / _GROWTH**2
        start = (own * self.score_one - both * pull) / determinant
        growth = (one * pull - both * self.score_one) / determinant
        shared = -both / determinant
        return _Normal(start, own / determinant, shared), _Normal(growth, one / determinant, shared)

    def evidence(self, start: "_Normal", rise: "_Normal") -> FloatArray:
        """Logarithm of the likelihood with R0 and G integrated out, up to a constant [S, J]."""
        one, both, own = self._precision()
        pull = self.score_growth + _RISE / _GROWTH**2
        explained = self.score_one * start.mean + pull * rise.mean
        complexity = np.log(one * own - both**2)
        return np.asarray(-0.5 * (self.score_score - explained + self.log_determinant + complexity))

    def _precision(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior precision of R0, of both together and of G; the priors are independent."""
        return self.one_one + 1.0 / _START**2, self.one_growth, self.growth_growth + 1.0 / _GROWTH**2

    def ahead(
        self, start: "_Normal", rise: "_Normal", growth: FloatArray, walk: FloatArray, between: float
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance [S, J] of R0 + G · growth + W, averaged over the shares ahead.

        W ahead has the covariance walk · t with W at an earlier t, and the variance walk · between.
        """
        pull = walk[:, None]
        of_start, of_growth = 1.0 - pull * self.one_time, growth - pull * self.time_growth
        mean = pull * self.score_time + of_start * start.mean + of_growth * rise.mean
        variance = (
            pull * between
            - pull**2 * self.time_time
            + of_start**2 * start.variance
            + 2 * of_start * of_growth * start.covariance
            + of_growth**2 * rise.variance
        )
        return mean, np.maximum(variance, 0.0)


@dataclass(frozen=True)
class _Normal:
    mean: FloatArray
    variance: FloatArray
    covariance: FloatArray  # of R0 and G


@lru_cache(maxsize=1)
def _sizes() -> tuple[FloatArray, FloatArray]:
    """Standard deviations of walk and noise, all pairs [S]."""
    walk, noise = np.meshgrid(_WALK, _NOISE)
    return walk.ravel(), noise.ravel()


@lru_cache(maxsize=1)
def _log_prior() -> FloatArray:
    """Of the growth curves [J], the flat one first."""
    curves = len(_MIDS) * len(_STEEPNESS)
    return np.log(np.array([_FLAT, *[(1.0 - _FLAT) / curves] * curves], dtype=np.float64))


def _growth(times: FloatArray) -> FloatArray:
    """Growth curves at `times` [n, J], the flat one first; 0 before the first step."""
    mid, steepness = (axis.ravel() for axis in np.meshgrid(_MIDS, _STEEPNESS))
    after = np.maximum(times, 1e-9)[:, None]
    curves = 1.0 / (1.0 + (mid / after) ** steepness)
    return np.concatenate([np.zeros((len(times), 1)), curves], axis=1)


def _pieces(times: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Times and scores averaged over at most `_POINTS` pieces, and the evaluations in each."""
    parts = np.array_split(np.arange(len(times)), min(len(times), _POINTS))
    counts = np.array([len(part) for part in parts], dtype=np.float64)
    return (
        np.array([times[part].mean() for part in parts]),
        np.array([scores[part].mean() for part in parts]),
        counts,
    )


def _largest(weights: FloatArray, means: FloatArray, deviations: FloatArray) -> Mixture:
    """The components that matter, as plain numbers."""
    kept = weights > _NEGLIGIBLE
    total = float(weights[kept].sum())
    return (
        tuple(float(weight) / total for weight in weights[kept]),
        tuple(map(float, means[kept])),
        tuple(map(float, deviations[kept])),
    )
