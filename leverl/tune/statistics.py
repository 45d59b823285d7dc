"""The few statistics of a study: means, standard errors, the paired interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


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
class Paired:
    """Mean difference of pairs and its t interval (None below two pairs)."""

    difference: float
    interval: tuple[float, float] | None


def paired_t(one: Sequence[float], two: Sequence[float], level: float = 0.95) -> Paired:
    """Mean of `one - two`, pair by pair, with Student's interval (n - 1 degrees of freedom)."""
    differences = [a - b for a, b in zip(one, two, strict=True)]
    centre, error = mean(differences), standard_error(differences)
    if error is None:
        return Paired(centre, None)
    from scipy.special import stdtrit  # quantiles of Student's t; scipy.stats takes seconds to import

    half = float(stdtrit(len(differences) - 1, 0.5 + level / 2)) * error
    return Paired(centre, (centre - half, centre + half))
