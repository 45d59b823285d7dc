"""The few statistics of a study: means, standard errors, the paired interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

KNOWN_WEIGHT: Final = 2.0
"""Degrees of freedom, at most, of what is known beforehand of the variance of paired differences."""

_ROUNDING: Final = 1e-9


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean (unbiased variance); None below two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    variance = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))


@dataclass(frozen=True)
class Spread:
    """What is known beforehand of the variance of paired differences, and its degrees of freedom."""

    variance: float
    df: float


@dataclass(frozen=True)
class Paired:
    """Mean difference of pairs and its interval (None below two pairs, and where nothing tells the spread)."""

    difference: float
    interval: tuple[float, float] | None


def paired_t(
    one: Sequence[float], two: Sequence[float], known: Spread | None = None, level: float = 0.95
) -> Paired:
    """Mean of `one - two`, pair by pair, with Student's interval.

    Five pairs say little of their own spread, and less where scores are skewed or bounded. So their variance is
    averaged with what is `known` by degrees of freedom (the moderated t of Smyth 2004), with a weight that is
    capped at KNOWN_WEIGHT: then a wrong `known` does little harm. tests/tune/test_tune_interval.py measures it.
    """
    differences = [a - b for a, b in zip(one, two, strict=True)]
    count, centre = len(differences), mean(differences)
    if count < 2:
        return Paired(centre, None)
    df = float(count - 1)
    variance = math.fsum((value - centre) ** 2 for value in differences) / df
    if known is not None and known.df > 0 and known.variance > 0:
        weight = min(KNOWN_WEIGHT, known.df)
        variance = (df * variance + weight * known.variance) / (df + weight)
        df += weight
    from scipy.special import stdtrit  # quantiles of Student's t; scipy.stats takes seconds to import

    half = float(stdtrit(df, 0.5 + level / 2)) * math.sqrt(variance / count)
    if half <= _ROUNDING * max(map(abs, (*one, *two))):  # equal differences and nothing known: no interval,
        return Paired(centre, None)  # for one of width 0 would claim certainty
    return Paired(centre, (centre - half, centre + half))
