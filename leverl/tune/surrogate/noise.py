"""How far a run's score strays from its configuration's true mean: by replicates where there are some.

Empirical Bayes: the sum of squares of replicates around their means, with NU0 degrees of freedom of prior evidence
that the noise is what the process inferred from all values together. From LOG_LINEAR_FROM degrees of freedom on, the
logarithm of the variance may also rise or fall with the predicted mean (RL runs at a high level often scatter more).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from scipy.optimize import minimize

from leverl.tune.space.space import Key
from leverl.tune.surrogate.kernel import Floats
from leverl.tune.surrogate.outputs import Outputs

NU0: Final = 4.0
LOG_LINEAR_FROM: Final = 6
_SLOPE_SPREAD: Final = (
    1.0  # prior standard deviation of the change of log variance per standard deviation of scores
)
_LEAST: Final = 1e-6
_MOST_FOLD: Final = 30.0  # how far the log-linear part may move the variance away from the pooled one


@dataclass(frozen=True)
class Scatter:
    """Replicates of one configuration, standardised."""

    key: Key
    mean: float  # predicted
    degrees: int  # runs - 1
    squares: float  # sum of squares around their mean
    evaluation: float  # mean known variance of their values


@dataclass(frozen=True)
class SeedVariance:
    """Variance between seeds as a function of the predicted mean, in the units of its inputs."""

    pooled: float
    degrees: int
    slope: float = 0.0  # of log variance in the predicted mean
    intercept: float = 0.0  # log variance at a predicted mean of 0
    span: tuple[float, float] = (0.0, 0.0)  # predicted means that were replicated; constant outside
    own: dict[Key, tuple[int, float]] = field(
        default_factory=dict
    )  # degrees and squares of replicated configurations

    def at(self, means: Floats, keys: Sequence[Key] | None = None) -> Floats:
        """[n]; with `keys` a configuration's own replicates count too."""
        if self.slope == 0.0:
            variance = np.full(len(means), self.pooled)
        else:
            inside = np.clip(means, *self.span)
            variance = np.exp(self.intercept + self.slope * inside)
            variance = np.clip(variance, self.pooled / _MOST_FOLD, self.pooled * _MOST_FOLD)
        if keys is not None and self.degrees:
            for number, name in enumerate(keys):
                degrees, squares = self.own.get(name, (0, 0.0))
                variance[number] = (NU0 * variance[number] + squares) / (NU0 + degrees)
        return variance


def seed_variance(replicates: Sequence[Scatter], inferred: float) -> SeedVariance:
    """From replicates, with `inferred` as the prior guess."""
    degrees = sum(one.degrees for one in replicates)
    if degrees == 0:
        return SeedVariance(inferred, 0)
    excess = sum(one.squares - one.degrees * one.evaluation for one in replicates)
    pooled = max((NU0 * inferred + max(excess, 0.0)) / (NU0 + degrees), _LEAST)
    own = {one.key: (one.degrees, max(one.squares - one.degrees * one.evaluation, 0.0)) for one in replicates}
    if degrees < LOG_LINEAR_FROM or len(replicates) < 3:
        return SeedVariance(pooled, degrees, own=own)
    intercept, slope = _log_linear(replicates, pooled)
    means = [one.mean for one in replicates]
    return SeedVariance(pooled, degrees, slope, intercept, (min(means), max(means)), own)


def _log_linear(replicates: Sequence[Scatter], pooled: float) -> tuple[float, float]:
    """Intercept and slope of the log variance: gamma regression with a normal prior on the slope."""
    x = np.array([one.mean for one in replicates])
    half = np.array([one.degrees / 2 for one in replicates])
    seen = np.array([max(one.squares, 0.0) / one.degrees for one in replicates])
    evaluation = np.array([one.evaluation for one in replicates])
    center = float(np.average(x, weights=half))

    def loss(theta: Floats) -> float:
        seed = np.exp(np.clip(theta[0] + theta[1] * (x - center), -30.0, 30.0))
        total = seed + evaluation
        data = float((half * (np.log(total) + seen / total)).sum())
        prior = 0.5 * NU0 * (theta[0] + pooled * math.exp(-max(theta[0], -30.0)))
        return float(data + prior + 0.5 * (theta[1] / _SLOPE_SPREAD) ** 2)

    result = minimize(loss, np.array([math.log(pooled), 0.0]), method="Nelder-Mead")
    level, slope = (float(value) for value in result.x)
    return level - slope * center, slope


@dataclass(frozen=True)
class Noise:
    """The noise of single runs, in units of the values."""

    seed_variance: float  # between runs of one configuration, pooled over the space
    evaluation_variance: float  # usual known error variance of one run's value
    degrees: int  # of freedom from replicates; 0: inferred from all values together
    share: float  # of the variance of single runs' scores (1 - intraclass correlation)
    slope: float  # change of log seed variance per standard deviation of the scores; 0 without evidence


def in_score_units(seeds: SeedVariance, evaluation: float, spread: float, out: Outputs) -> Noise:
    """From standardised quantities; `spread` is the variance of the true means."""
    run = seeds.pooled + evaluation
    return Noise(
        seed_variance=seeds.pooled * out.scale**2,
        evaluation_variance=evaluation * out.scale**2,
        degrees=seeds.degrees,
        share=run / (run + spread),
        slope=seeds.slope,
    )
