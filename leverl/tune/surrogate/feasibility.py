"""The probability that a run gives a score at all: a model of its own, fed by every run that is over.

A Gaussian process classifier with a logistic likelihood in Laplace's approximation (Rasmussen & Williams 2006,
algorithms 3.1, 3.2 and 5.1). Runs that succeeded inform it as much as those that failed, so it learns on which side
of a wall (memory, divergence) a configuration lies, and which levers make the wall.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from leverl.tune.surrogate.kernel import Floats, matern, matern_and_slope, weighted_squares

_SUCCESSES, _FAILURES = 1.8, 0.2  # prior evidence for the share of runs that succeed
_NEWTON: Final = 50
_SCALE_PRIOR: Final = (math.log(9.0), 1.0)  # of the log output scale: latent values of ± 3 are certain
_JITTER: Final = 1e-6


@dataclass(frozen=True)
class Feasibility:
    """P(a run gives a score) over points of the encoded cube; 1 everywhere while nothing has failed."""

    _x: Floats | None = field(default=None, repr=False)
    _lengthscales: Floats | None = field(default=None, repr=False)
    _scale: float = 1.0
    _latent: "_Mode | None" = field(default=None, repr=False)

    def probability(self, x: Floats) -> Floats:
        """[m] at points [m, d]."""
        if self._x is None or self._lengthscales is None or self._latent is None:
            return np.ones(len(x))
        cross = self._scale * matern(x, self._x, self._lengthscales)
        mean = self._latent.prior + cross @ self._latent.slope
        shrink = solve_triangular(self._latent.factor, self._latent.root[:, None] * cross.T, lower=True)
        variance = np.maximum(self._scale - (shrink**2).sum(axis=0), 0.0)
        return _logistic(mean / np.sqrt(1.0 + math.pi / 8.0 * variance))


def feasibility(x: Floats, succeeded: Sequence[bool], levers: int) -> Feasibility:
    """Fitted to runs at `x` [n, d]; `levers` scales the prior of the length scales as in `gp`."""
    if all(succeeded):
        return Feasibility()
    labels = np.where(np.asarray(succeeded), 1.0, 0.0)
    d = x.shape[1]
    location, spread = math.sqrt(2.0) + 0.5 * math.log(levers), math.sqrt(3.0)

    def loss(theta: Floats) -> tuple[float, Floats]:
        value, gradient = _evidence(x, labels, np.exp(theta[:d]), math.exp(theta[d]))
        logs = theta[:d]
        value -= float(np.sum(logs + 0.5 * ((logs - location) / spread) ** 2))
        gradient[:d] -= 1.0 + (logs - location) / spread**2
        value -= 0.5 * (float(theta[d] - _SCALE_PRIOR[0]) / _SCALE_PRIOR[1]) ** 2
        gradient[d] -= (theta[d] - _SCALE_PRIOR[0]) / _SCALE_PRIOR[1] ** 2
        return -value, -gradient

    start = np.append(np.full(d, location - spread**2 + 1.0), _SCALE_PRIOR[0])
    bounds = [(math.log(0.05), math.log(100.0))] * d + [(0.0, 6.0)]
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50})
    theta = np.asarray(result.x) if np.isfinite(result.fun) else start
    lengths, scale = np.exp(theta[:d]), math.exp(float(theta[d]))
    return Feasibility(x, lengths, scale, _mode(_covariance(x, lengths, scale), labels))


@dataclass(frozen=True)
class _Mode:
    """Where the posterior of the latent values peaks."""

    prior: float
    values: Floats  # [n]
    inner: Floats  # [n] K⁻¹ (values - prior)
    slope: Floats  # [n] of the log likelihood
    root: Floats  # [n] √W
    factor: Floats  # Cholesky factor of I + √W K √W


def _mode(covariance: Floats, labels: Floats) -> _Mode:
    n = len(labels)
    good = float(labels.sum())
    prior = math.log((good + _SUCCESSES) / (n - good + _FAILURES))
    values = np.full(n, prior)
    inner = np.zeros(n)
    for _ in range(_NEWTON):
        share = _logistic(values)
        root = np.sqrt(share * (1.0 - share))
        factor = _factor(covariance, root)
        target = root**2 * (values - prior) + labels - share
        inner = target - root * cho_solve((factor, True), root * (covariance @ target))
        moved = prior + covariance @ inner
        step = float(np.abs(moved - values).max())
        values = moved if step < 10.0 else values + (moved - values) * 10.0 / step
        if step < 1e-8:
            break
    share = _logistic(values)
    root = np.sqrt(share * (1.0 - share))
    return _Mode(prior, values, inner, labels - share, root, _factor(covariance, root))


def _evidence(x: Floats, labels: Floats, lengths: Floats, scale: float) -> tuple[float, Floats]:
    """Laplace's log evidence and its gradient in the logarithms of length scales and output scale."""
    correlation, slope = matern_and_slope(x, lengths)
    covariance = scale * correlation + _JITTER * np.eye(len(x))
    mode = _mode(covariance, labels)
    value = (
        -0.5 * float(mode.inner @ (mode.values - mode.prior))
        - float(np.logaddexp(0.0, -(2.0 * labels - 1.0) * mode.values).sum())
        - float(np.log(np.diag(mode.factor)).sum())
    )
    inverse = mode.root[:, None] * cho_solve((mode.factor, True), np.diag(mode.root))
    shrink = solve_triangular(mode.factor, mode.root[:, None] * covariance, lower=True)
    share = _logistic(mode.values)
    third = (2.0 * share - 1.0) * share * (1.0 - share)
    indirect = 0.5 * (np.diag(covariance) - (shrink**2).sum(axis=0)) * third
    outer = indirect - inverse @ (covariance @ indirect)
    weights = 0.5 * (np.outer(mode.inner, mode.inner) - inverse)
    weights += 0.5 * (np.outer(outer, mode.slope) + np.outer(mode.slope, outer))
    gradient = np.empty(len(lengths) + 1)
    gradient[:-1] = weighted_squares(x / lengths, weights * slope * scale)
    gradient[-1] = float((weights * scale * correlation).sum())
    return value, gradient


def _factor(covariance: Floats, root: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(np.eye(len(root)) + root[:, None] * covariance * root))


def _covariance(x: Floats, lengths: Floats, scale: float) -> Floats:
    return np.asarray(scale * matern(x, x, lengths) + _JITTER * np.eye(len(x)))


def _logistic(values: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(values, -500.0, 500.0))))
