"""A run as series: what readers return and detectors, scores and reports take."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leverl.record.run_record import RunRecord, Score


@dataclass(frozen=True)
class Series:
    """One metric over steps; both lists have the same length, steps ascend."""

    steps: tuple[int, ...]
    values: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def last(self) -> float | None:
        return self.values[-1] if self.values else None


EMPTY = Series((), ())


@dataclass(frozen=True)
class RunSeries:
    """All that a run's folder says: scalar metrics, histograms, samples, record and configuration."""

    name: str
    metrics: Mapping[str, Series]
    histograms: Mapping[str, tuple[tuple[int, tuple[int, ...]], ...]] = field(default_factory=dict)
    record: RunRecord | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def get(self, metric: str) -> Series:
        """The series of `metric`, empty when it was not measured."""
        return self.metrics.get(metric, EMPTY)


def score_of(evaluations: Series, standard_errors: Series, last_k: int) -> Score | None:
    """Mean of the last `last_k` evaluations.

    The evaluations share their prompts, so their errors do not average out: the standard error is the mean of
    theirs (an upper bound). None when there is no evaluation or one of them is not finite.
    """
    trained = tuple(step for step in evaluations.steps if step > 0)
    if trained:  # the evaluation before any training counts only where there is no other
        last_k = min(last_k, len(trained))
    values = evaluations.values[-last_k:]
    if not values or not all(math.isfinite(value) for value in values):
        return None
    by_step = dict(zip(standard_errors.steps, standard_errors.values, strict=True))
    errors = [by_step[step] for step in evaluations.steps[-last_k:] if step in by_step]
    return Score(
        mean=sum(values) / len(values),
        standard_error=sum(errors) / len(errors) if len(errors) == len(values) else None,
        evaluations=len(values),
    )


def steps_to_share_of_gain(evaluations: Series, share: float = 0.9) -> int | None:
    """First step at which the series has made `share` of its own gain (the articles' convergence speed).

    None when it did not gain.
    """
    if len(evaluations) < 2:
        return None
    first, last = evaluations.values[0], evaluations.values[-1]
    if not last > first:
        return None
    target = first + share * (last - first)
    return next(s for s, v in zip(evaluations.steps, evaluations.values, strict=True) if v >= target)


def mean_of_last(series: Series, share: float = 0.1) -> float | None:
    """Mean over the last `share` of the points (at least one); None when empty."""
    if not series.values:
        return None
    tail: Sequence[float] = series.values[-max(1, round(share * len(series))) :]
    return sum(tail) / len(tail)
