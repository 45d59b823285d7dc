"""Measurements gathered by configuration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from leverl.tune.model import Params
from leverl.tune.space.space import Key, key
from leverl.tune.surrogate.kernel import Floats
from leverl.tune.surrogate.measurement import Measurement

_LEAST_SHARE: Final = 0.1  # of the usual variance of an evaluation


@dataclass(frozen=True)
class Group:
    """A configuration and its runs that have a value."""

    key: Key
    params: Params
    values: Floats  # [m]
    variances: Floats  # [m] known error variances of the values
    finished: tuple[bool, ...]  # [m] False for a run that was stopped early
    allowed: bool = True  # all of them keep the study's bounds

    def pooled(self, seed_variance: float) -> tuple[float, float, float]:
        """Mean, the part of its variance that is known, and the factor of `seed_variance` in the rest."""
        weights = 1.0 / np.maximum(seed_variance + self.variances, 1e-12)
        weights = weights / weights.sum()
        return (
            float(weights @ self.values),
            float(weights**2 @ self.variances),
            float((weights**2).sum()),
        )


def has_value(one: Measurement) -> bool:
    return one.state in ("finished", "predicted") and one.value is not None and math.isfinite(one.value)


def floored(found: Sequence[Measurement]) -> list[Measurement]:
    """With a least variance for finished runs: a share of what is usual.

    An evaluation in which every response was wrong reports an error of 0, as if more prompts could not have changed
    the score. Taken at its word, a few such runs would outweigh all others.
    """
    known = [one.variance for one in found if one.state == "finished" and one.variance > 0]
    if not known:
        return list(found)
    least = _LEAST_SHARE * sum(known) / len(known)
    return [
        replace(one, variance=least) if one.state == "finished" and one.variance < least else one
        for one in found
    ]


def grouped(found: Sequence[Measurement]) -> list[Group]:
    """Configurations with a value, in the order of their first run."""
    runs: dict[Key, list[Measurement]] = {}
    for one in found:
        if has_value(one):
            runs.setdefault(key(one.params), []).append(one)
    return [
        Group(
            name,
            group[0].params,
            np.array([one.value for one in group], dtype=np.float64),
            np.array([max(one.variance, 0.0) for one in group], dtype=np.float64),
            tuple(one.state == "finished" for one in group),
            all(one.allowed for one in group),
        )
        for name, group in runs.items()
    ]
