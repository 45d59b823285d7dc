"""How much a score owes to its seed: variance components of configuration + seed + rest."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from leverl.tune.evidence.posterior import FloatArray

PRIOR_WEIGHT: Final = 4.0
"""Degrees of freedom that the first guess is worth against what replicates show."""

_RATIOS: Final = {0.0: 0.675, 0.25: 0.169, 0.5: 0.085, 1.0: 0.042, 2.0: 0.020, 4.0: 0.009}
"""Common variance of a seed ÷ the rest → how likely beforehand: mostly seeds act on each configuration anew."""

_SMALLEST: Final = 1e-300  # keeps logarithms finite where scores do not vary at all


@dataclass(frozen=True)
class SeedNoise:
    """Variances of one run's score around the true mean of its configuration."""

    common: float  # of what a seed does to all configurations alike; differences on one seed are free of it
    residual: float  # of the rest, the evaluation's error included
    df: int = 0  # degrees of freedom of the replicates that tell the residual apart from the common effect
    measured: float | None = None  # the residual by these alone, without the first guess; None without any

    @property
    def sd(self) -> float:
        """Standard deviation of a configuration's scores between seeds."""
        return math.sqrt(self.common + self.residual)


def seed_noise(runs: Sequence[tuple[str, int, float]], guess: float) -> SeedNoise:
    """Variance components of the scores of `runs` (group, seed, score); a group's mean may be anything.

    A group is a configuration within a phase. `guess` is the variance of one run that is believed beforehand.
    The restricted likelihood is averaged over a few ratios of the two components, so neither is ever negative
    and what the runs cannot tell apart stays with the residual.
    """
    sizes = Counter(group for group, _, _ in runs)
    repeated = [run for run in runs if sizes[run[0]] > 1]
    if not repeated:
        ratio = sum(ratio * weight for ratio, weight in _RATIOS.items())
        return SeedNoise(guess * ratio / (1 + ratio), guess / (1 + ratio))
    contrasts, seeds = _within_groups(repeated)
    common, residual = _averaged(contrasts, seeds, max(guess, _SMALLEST))
    coefficients, _, rank, _ = np.linalg.lstsq(seeds, contrasts, rcond=None)
    df = len(contrasts) - int(rank)
    unexplained = float(np.sum((contrasts - seeds @ coefficients) ** 2))
    return SeedNoise(common, residual, df, unexplained / df if df else None)


def _within_groups(runs: Sequence[tuple[str, int, float]]) -> tuple[FloatArray, FloatArray]:
    """Orthonormal contrasts within groups: of the scores [d] and of the seeds' indicators [d, s]."""
    names = list(dict.fromkeys(seed for _, seed, _ in runs))
    scores = np.array([score for _, _, score in runs], dtype=np.float64)
    seeds = np.zeros((len(runs), len(names)))
    seeds[np.arange(len(runs)), [names.index(seed) for _, seed, _ in runs]] = 1.0
    basis: list[FloatArray] = []
    for group in dict.fromkeys(group for group, _, _ in runs):
        rows = [row for row, run in enumerate(runs) if run[0] == group]
        basis += [_helmert(rows, size, len(runs)) for size in range(1, len(rows))]
    contrasts = np.stack(basis)
    return contrasts @ scores, contrasts @ seeds


def _helmert(rows: Sequence[int], size: int, total: int) -> FloatArray:
    """The mean of the first `size` rows against the next one, of length 1."""
    found = np.zeros(total)
    found[rows[:size]] = 1.0 / size
    found[rows[size]] = -1.0
    return found / math.sqrt(1.0 + 1.0 / size)


def _averaged(contrasts: FloatArray, seeds: FloatArray, guess: float) -> tuple[float, float]:
    """Common and residual variance, averaged over the ratios by their marginal likelihood."""
    df = len(contrasts)
    values, vectors = np.linalg.eigh(seeds @ seeds.T)
    squares = (vectors.T @ contrasts) ** 2
    logs, residuals = [], []
    for ratio, weight in _RATIOS.items():
        scales = 1.0 + ratio * np.maximum(values, 0.0)
        before = PRIOR_WEIGHT * guess / (1.0 + ratio)
        total = before + float(np.sum(squares / scales))
        residuals.append(total / (PRIOR_WEIGHT + df))
        logs.append(
            math.log(weight)
            - 0.5 * float(np.sum(np.log(scales)))
            + 0.5 * PRIOR_WEIGHT * math.log(before)
            - 0.5 * (PRIOR_WEIGHT + df) * math.log(total)
        )
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    residual = float(weights @ np.array(residuals))
    return float(weights @ (np.array(residuals) * np.array(list(_RATIOS)))), residual
