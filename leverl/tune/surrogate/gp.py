"""A Gaussian process with closed-form posterior; its hyperparameters by maximum a posteriori.

Priors: length scales LogNormal(√2 + ½ log d, √3), scaled with the number of levers (Hvarfner, Hellsten & Nardi 2024,
arXiv:2402.02229); noise Gamma(1.1, 0.05), which allows much of it. The usual priors for little noise make a process
follow the luck of single runs. Values are standardised, so the output scale is 1.

The fit is our own, not GPyTorch's: with analytic gradients it takes milliseconds, draws nothing from a global
generator, and is the same on every call.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from leverl.tune.surrogate.kernel import Floats, matern, matern_and_slope, weighted_squares

JITTER: Final = 1e-8
_SHAPE, _RATE = 1.1, 0.05  # of the Gamma prior of the noise
_NOISE_START: Final = 0.3
_NOISE_BOUNDS: Final = (1e-4, 5.0)
_LENGTH_BOUNDS: Final = (0.025, 100.0)
_IMPOSSIBLE: Final = 1e25
_MEAN_BOUNDS: Final = (-3.0, 3.0)
_SWEEPS: Final = 2
_WIDTH: Final = 2.0
_SLICE_BOUNDS: Final = (-3.7, 4.6)


@dataclass(frozen=True)
class Data:
    """Standardised means of `n` configurations and what is known of their noise.

    The variance of a mean is `fixed` + noise * `free`, where the noise is `noise`, or inferred if that is None.
    `degrees` and `squares` sum up the scatter of replicates around their means: a second view of an inferred noise.
    """

    x: Floats  # [n, d] encoded configurations
    y: Floats  # [n]
    fixed: Floats  # [n]
    free: Floats  # [n]
    levers: int  # the number of axes: d without one-hot and on/off dimensions
    noise: float | None = None
    degrees: float = 0.0
    squares: float = 0.0


@dataclass(frozen=True)
class Hyperparameters:
    """All in standardised units."""

    lengthscales: Floats  # [d]
    mean: float
    noise: float


@dataclass(frozen=True)
class Process:
    """A process conditioned on data."""

    data: Data
    hyper: Hyperparameters
    variances: Floats  # [n] of the means observed
    _factor: Floats = field(repr=False)  # lower Cholesky factor of the covariance of the data
    _weights: Floats = field(repr=False)  # its inverse times the centred values

    def mean(self, x: Floats) -> Floats:
        """Posterior mean [m] at `x` [m, d]."""
        return np.asarray(self.hyper.mean + self._cross(x) @ self._weights)

    def covariance(self, x: Floats, other: Floats | None = None) -> Floats:
        """Posterior covariance [m, k] between `x` [m, d] and `other` [k, d] (None: `x` itself)."""
        to = x if other is None else other
        left = solve_triangular(self._factor, self._cross(x).T, lower=True)
        right = left if other is None else solve_triangular(self._factor, self._cross(to).T, lower=True)
        prior = matern(x, to, self.hyper.lengthscales)
        return np.asarray(prior - left.T @ right)

    def variance(self, x: Floats) -> Floats:
        """Posterior variance [m]."""
        left = solve_triangular(self._factor, self._cross(x).T, lower=True)
        return np.asarray(np.maximum(1.0 - (left**2).sum(axis=0), 1e-12))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and variance [n] of each observed value given all others (Sundararajan & Keerthi 2001), in closed form.

        The variance is that of the observed value, noise included; hyperparameters are those of the full data.
        """
        inverse = cho_solve((self._factor, True), np.eye(len(self.data.y)))
        variance = 1.0 / np.diag(inverse)
        return self.data.y - self._weights * variance, variance

    def _cross(self, x: Floats) -> Floats:
        return matern(x, self.data.x, self.hyper.lengthscales)


def condition(data: Data, hyper: Hyperparameters) -> Process:
    """The process given the data.

    Raises:
        numpy.linalg.LinAlgError: the covariance is not positive definite, whatever the jitter.
    """
    variances = data.fixed + hyper.noise * data.free
    covariance = matern(data.x, data.x, hyper.lengthscales) + np.diag(variances)
    factor = _cholesky(covariance)
    return Process(data, hyper, variances, factor, cho_solve((factor, True), data.y - hyper.mean))


def fit(data: Data, start: Hyperparameters | None = None) -> Process:
    """The most probable process, sought from `start` or from two starts of its own.

    Where the search fails: length scales at their prior's mode, much noise.
    """
    best: tuple[float, Hyperparameters] | None = None
    for begin in _starts(data) if start is None else [start]:
        found = _climb(data, begin)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return condition(data, best[1] if best is not None else fallback(data))


def fallback(data: Data) -> Hyperparameters:
    """What is assumed when no fit succeeds."""
    lengths = np.full(data.x.shape[1], _prior_mode(data))
    return Hyperparameters(lengths, 0.0, _NOISE_START if data.noise is None else data.noise)


def draws(
    data: Data, start: Hyperparameters, generator: np.random.Generator, count: int
) -> list[Hyperparameters]:
    """`count` length scales and means from their posterior, the noise as in `start`.

    By slice sampling one coordinate after the other (Neal 2003).
    """
    known = data if data.noise is not None else replace(data, noise=start.noise, degrees=0.0, squares=0.0)
    chart = _Chart(known, start)
    theta = chart.start
    found = []
    for number in range(_SWEEPS * count):
        for j in generator.permutation(len(theta)):
            theta = _slice(chart, theta, int(j), generator)
        if number % _SWEEPS == _SWEEPS - 1:
            found.append(chart.at(theta))
    return found


def _starts(data: Data) -> Iterator[Hyperparameters]:
    """Short scales with much noise, and long scales with little: two ways to explain the same values."""
    short = np.full(data.x.shape[1], _prior_mode(data))
    long = np.where(np.ptp(data.x, axis=0) > 0, math.sqrt(data.levers), short)
    yield Hyperparameters(short, 0.0, _NOISE_START if data.noise is None else data.noise)
    yield Hyperparameters(long, 0.0, _NOISE_START / 6 if data.noise is None else data.noise)


def _prior_mode(data: Data) -> float:
    location, scale = _length_prior(data)
    return math.exp(location - scale**2)


def _length_prior(data: Data) -> tuple[float, float]:
    return math.sqrt(2.0) + 0.5 * math.log(data.levers), math.sqrt(3.0)


def _climb(data: Data, start: Hyperparameters) -> tuple[float, Hyperparameters] | None:
    """From `start` to the nearest peak, and the loss there; None where no step succeeds."""
    chart = _Chart(data, start)
    result = minimize(
        chart.loss_and_slope,
        chart.start,
        jac=True,
        method="L-BFGS-B",
        bounds=chart.bounds,
        options={"maxiter": 100},
    )
    if not np.isfinite(result.fun) or result.fun >= _IMPOSSIBLE:
        return None
    return float(result.fun), chart.at(np.asarray(result.x))


class _Chart:
    """Hyperparameters as a vector: log length scales, mean and, where it is inferred, log noise.

    Dimensions in which all data agree keep their length scale: the data say nothing of it.
    """

    def __init__(self, data: Data, start: Hyperparameters) -> None:
        self._data = data
        self._lengths = start.lengthscales
        self._varying = np.flatnonzero(np.ptp(data.x, axis=0) > 0)
        self._size = len(self._varying)
        self._columns = data.x[:, self._varying]
        self._location, self._scale = _length_prior(data)
        tail = [start.mean] if data.noise is not None else [start.mean, math.log(start.noise)]
        self.start: Floats = np.concatenate([np.log(start.lengthscales[self._varying]), tail])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        lengths = [(math.log(_LENGTH_BOUNDS[0]), math.log(_LENGTH_BOUNDS[1]))] * self._size
        noise = (
            [] if self._data.noise is not None else [(math.log(_NOISE_BOUNDS[0]), math.log(_NOISE_BOUNDS[1]))]
        )
        return [*lengths, _MEAN_BOUNDS, *noise]

    def at(self, theta: Floats) -> Hyperparameters:
        lengths = self._lengths.copy()
        lengths[self._varying] = np.exp(theta[: self._size])
        return Hyperparameters(lengths, float(theta[self._size]), self._noise(theta))

    def loss(self, theta: Floats) -> float:
        """Negative log posterior density."""
        correlation = matern(self._columns, self._columns, np.exp(theta[: self._size]))
        try:
            factor = self._factor(correlation, theta)
        except np.linalg.LinAlgError:
            return _IMPOSSIBLE
        residual = solve_triangular(factor, self._data.y - theta[self._size], lower=True)
        data = 0.5 * float(residual @ residual) + float(np.log(np.diag(factor)).sum())
        return data + self._prior(theta)

    def loss_and_slope(self, theta: Floats) -> tuple[float, Floats]:
        """Negative log posterior density and its gradient."""
        data, d = self._data, self._size
        correlation, slope = matern_and_slope(self._columns, np.exp(theta[:d]))
        try:
            factor = self._factor(correlation, theta)
        except np.linalg.LinAlgError:
            return _IMPOSSIBLE, np.zeros_like(theta)
        inverse = cho_solve((factor, True), np.eye(len(data.y)))
        centred = data.y - theta[d]
        weights = inverse @ centred
        loss = 0.5 * float(centred @ weights) + float(np.log(np.diag(factor)).sum())
        outer = np.outer(weights, weights) - inverse
        gradient = np.zeros_like(theta)
        gradient[:d] = -0.5 * weighted_squares(self._columns / np.exp(theta[:d]), outer * slope)
        gradient[:d] += 1.0 + (theta[:d] - self._location) / self._scale**2
        gradient[d] = theta[d] - weights.sum()
        if data.noise is None:
            noise = self._noise(theta)
            gradient[d + 1] = -0.5 * noise * float(np.diag(outer) @ data.free)
            gradient[d + 1] += _RATE * noise - (_SHAPE - 1.0) + 0.5 * (data.degrees - data.squares / noise)
        return loss + self._prior(theta), gradient

    def _prior(self, theta: Floats) -> float:
        """Of length scales, mean (standard normal) and noise; the replicates' own view of the noise is added."""
        logs, mean = theta[: self._size], float(theta[self._size])
        loss = float(np.sum(logs + 0.5 * ((logs - self._location) / self._scale) ** 2)) + 0.5 * mean**2
        if self._data.noise is None:
            noise = self._noise(theta)
            loss += _RATE * noise - (_SHAPE - 1.0) * math.log(noise)
            loss += 0.5 * (self._data.degrees * math.log(noise) + self._data.squares / noise)
        return loss

    def _noise(self, theta: Floats) -> float:
        return self._data.noise if self._data.noise is not None else math.exp(float(theta[self._size + 1]))

    def _factor(self, correlation: Floats, theta: Floats) -> Floats:
        return _cholesky(correlation + np.diag(self._data.fixed + self._noise(theta) * self._data.free))


def _slice(chart: _Chart, theta: Floats, j: int, generator: np.random.Generator) -> Floats:
    """One coordinate drawn anew."""

    def density(value: float) -> float:
        if not _SLICE_BOUNDS[0] < value < _SLICE_BOUNDS[1]:
            return -math.inf
        moved = theta.copy()
        moved[j] = value
        return -chart.loss(moved)

    level = density(float(theta[j])) + math.log(max(generator.random(), 1e-300))
    low = float(theta[j]) - _WIDTH * generator.random()
    high = low + _WIDTH
    while density(low) >= level:
        low -= _WIDTH
    while density(high) >= level:
        high += _WIDTH
    for _ in range(40):
        value = low + (high - low) * generator.random()
        if density(value) >= level:
            moved = theta.copy()
            moved[j] = value
            return moved
        low, high = (value, high) if value < theta[j] else (low, value)
    return theta


def _cholesky(matrix: Floats) -> Floats:
    """Lower factor, with as little jitter as it takes.

    Raises:
        numpy.linalg.LinAlgError: not even 1e-4 helps.
    """
    eye = np.eye(len(matrix))
    for jitter in (JITTER, 1e-6):
        try:
            return np.asarray(np.linalg.cholesky(matrix + jitter * eye))
        except np.linalg.LinAlgError:
            continue
    return np.asarray(np.linalg.cholesky(matrix + 1e-4 * eye))
