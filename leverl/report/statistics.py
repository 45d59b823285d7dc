"""Means, standard errors and intervals over seeds; all are unknown, never 0, where there is too little."""

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean, from the spread between seeds; None below two values."""
    variance = sample_variance(values)
    return None if variance is None else math.sqrt(variance / len(values))


def sample_variance(values: Sequence[float]) -> float | None:
    """Unbiased; None below two values."""
    if len(values) < 2:
        return None
    center = sum(values) / len(values)
    return sum((value - center) ** 2 for value in values) / (len(values) - 1)


def interval95(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % t interval of the mean; None below two values."""
    error = standard_error(values)
    if error is None:
        return None
    from scipy.special import stdtrit

    center = sum(values) / len(values)
    half = float(stdtrit(len(values) - 1, 0.975)) * error
    return center - half, center + half


def pooled_variance(groups: Sequence[Sequence[float]]) -> tuple[float, int] | None:
    """Variance within groups and its degrees of freedom; None when no group has two values."""
    freedom = sum(len(group) - 1 for group in groups if len(group) > 1)
    if freedom == 0:
        return None
    squares = sum((sample_variance(group) or 0.0) * (len(group) - 1) for group in groups if len(group) > 1)
    return squares / freedom, freedom
