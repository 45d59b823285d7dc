"""The few statistics of studies and their reports: means, their errors and intervals, variances.

What too few values cannot tell is None, never 0.
"""

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


def mean_or_none(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None without a value."""
    return mean(values) if values else None


def sample_variance(values: Sequence[float]) -> float:
    """Unbiased variance of at least two values."""
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def pooled_variance(groups: Sequence[Sequence[float]]) -> tuple[float, int] | None:
    """Variance within groups and its degrees of freedom; None when no group has two values."""
    replicated = [group for group in groups if len(group) > 1]
    df = sum(len(group) - 1 for group in replicated)
    if df == 0:
        return None
    return math.fsum(sample_variance(group) * (len(group) - 1) for group in replicated) / df, df


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean, from the spread of the values; None below two."""
    return math.sqrt(sample_variance(values) / len(values)) if len(values) > 1 else None


def interval95(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % t interval of the mean; None below two values."""
    error = standard_error(values)
    if error is None:
        return None
    centre, half = mean(values), t_quantile(len(values) - 1) * error
    return centre - half, centre + half


def interval_places(low: float, high: float) -> int | None:
    """Decimal places an interval deserves: two digits of half its width, and as many as keep an end that is not 0
    off 0. None where a fixed number of places does not read well (a width of 0, more than six places).
    """
    half = (high - low) / 2
    if not math.isfinite(half) or half <= 0:
        return None
    first_digits = [1 - _exponent(half), *(-_exponent(abs(end)) for end in (low, high) if end)]
    places = max(0, *first_digits)
    return places if places <= 6 else None


def interval_format(ends: tuple[float, float] | None) -> str:
    """How a sentence writes numbers that have this interval: the format `.3f`, say."""
    places = interval_places(*ends) if ends is not None else None
    return ".3g" if places is None else f".{places}f"


def _exponent(size: float) -> int:
    return math.floor(math.log10(size))


def t_quantile(df: float, level: float = 0.95) -> float:
    """What Student's t with `df` degrees of freedom stays below, in absolute value, with probability `level`."""
    from scipy.special import stdtrit  # scipy.stats takes seconds to import

    return float(stdtrit(df, 0.5 + level / 2))


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
    variance = sample_variance(differences)
    if known is not None and known.df > 0 and known.variance > 0:
        weight = min(KNOWN_WEIGHT, known.df)
        variance = (df * variance + weight * known.variance) / (df + weight)
        df += weight
    half = t_quantile(df, level) * math.sqrt(variance / count)
    if half <= _ROUNDING * max(map(abs, (*one, *two))):  # equal differences and nothing known: no interval,
        return Paired(centre, None)  # for one of width 0 would claim certainty
    return Paired(centre, (centre - half, centre + half))
