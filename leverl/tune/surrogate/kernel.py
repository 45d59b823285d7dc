"""The Matérn 5/2 kernel with a length scale per dimension, and its slopes."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROOT5 = math.sqrt(5.0)


def matern(one: Floats, two: Floats, lengthscales: Floats) -> Floats:
    """Correlations [a, b] between the rows of `one` [a, d] and `two` [b, d] (Rasmussen & Williams 2006, eq. 4.17)."""
    r = np.sqrt(_squares(one / lengthscales, two / lengthscales))
    return np.asarray((1.0 + _ROOT5 * r + 5.0 / 3.0 * r**2) * np.exp(-_ROOT5 * r))


def matern_and_slope(x: Floats, lengthscales: Floats) -> tuple[Floats, Floats]:
    """Correlations R [n, n] and S [n, n], where dR/dlog(lengthscale_j) = S * (difference_j / lengthscale_j)²."""
    scaled = x / lengthscales
    r = np.sqrt(_squares(scaled, scaled))
    decay = np.exp(-_ROOT5 * r)
    return (1.0 + _ROOT5 * r + 5.0 / 3.0 * r**2) * decay, 5.0 / 3.0 * (1.0 + _ROOT5 * r) * decay


def weighted_squares(x: Floats, weights: Floats) -> Floats:
    """Sums over pairs of weights[a, b] * (x[a, j] - x[b, j])², one per column j of `x` [n, d]; symmetric weights."""
    return np.asarray(
        2.0 * (weights.sum(axis=1) @ x**2) - 2.0 * np.einsum("aj,aj->j", x, weights @ x, optimize=True)
    )


def _squares(one: Floats, two: Floats) -> Floats:
    """Squared distances [a, b]."""
    square = (one**2).sum(axis=1)[:, None] + (two**2).sum(axis=1)[None, :] - 2.0 * one @ two.T
    return np.asarray(np.maximum(square, 0.0))
