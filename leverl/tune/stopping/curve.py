"""What a run will score at its full length, judged by the part of its curve that has been seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Final

from leverl.record.series import Series
from leverl.tune.model import Prediction
from leverl.tune.statistics import mean

FEWEST: Final = 3
"""Evaluations below which nothing is predicted."""


@dataclass(frozen=True)
class Forecast:
    """A run's score at full length, as a mixture of normal distributions (weights sum to 1)."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def prediction(self, seed_sd: float = 0.0) -> Prediction:
        """Mean and standard deviation of the mixture; `seed_sd` is added, for a configuration's true mean."""
        centre = math.fsum(w * m for w, m in zip(self.weights, self.means, strict=True))
        parts = zip(self.weights, self.means, self.deviations, strict=True)
        variance = math.fsum(w * (sd**2 + (m - centre) ** 2) for w, m, sd in parts)
        return Prediction(centre, math.sqrt(variance + seed_sd**2))

    def probability_above(self, level: float, deviation: float = 0.0) -> float:
        """P(score > level), where the level is itself only known to a standard deviation."""
        parts = zip(self.weights, self.means, self.deviations, strict=True)
        return math.fsum(w * _normal_cdf(m - level, math.hypot(sd, deviation)) for w, m, sd in parts)


def predict_final(
    evaluations: Series,
    errors: Series,
    until: int,
    last_k: int,
    *,
    scale: float,
    maximize: bool = True,
    seed_sd: float = 0.0,
) -> Prediction | None:
    """What the run would score after `until` steps, with its standard error; None as in `forecast`.

    With `seed_sd`, the spread between seeds of a configuration, the error is that of the configuration's true mean.
    """
    found = forecast(evaluations, errors, until, last_k, scale=scale, maximize=maximize)
    return None if found is None else found.prediction(seed_sd)


@lru_cache(maxsize=1024)
def forecast(
    evaluations: Series,
    errors: Series,
    until: int,
    last_k: int,
    *,
    scale: float,
    maximize: bool = True,
) -> Forecast | None:
    """The mean of the run's last `last_k` evaluations at full length, before it gets there.

    The curve is taken for a saturating one plus a random walk plus noise (see `leverl.tune.stopping.fit`); still
    missing evaluations are expected at the spacing of those seen and after the last step. `scale` is the range of
    scores in the study: changes of that size are expected, much larger ones are not. Mean and errors have the unit of
    the scores, which may be any. Getting better, which way `maximize` says, is a little likelier than getting worse.

    The standard error of the evaluations (`errors`) shifts all evaluations of a run alike, so it is added once.

    None below FEWEST finite evaluations, or when `scale` is not positive: scores that never differed tell nothing.
    """
    points = [(s, v) for s, v in zip(evaluations.steps, evaluations.values, strict=True) if math.isfinite(v)]
    if len(points) < FEWEST or not scale > 0:
        return None
    steps, values = [step for step, _ in points], [value for _, value in points]
    missing = _missing_steps(steps, until)[-last_k:]
    room = last_k - len(missing)
    kept = [value for step, value in points if step > 0][-room:] if room else []
    error = _evaluation_error(errors, last_k)
    if not missing:
        return Forecast((1.0,), (mean(kept),), (error,))
    from leverl.tune.stopping.fit import Curve, extrapolate  # numpy is needed only when runs are under way

    unit = scale if maximize else -scale
    curve = Curve(tuple(step / until for step in steps), tuple(value / unit for value in values))
    weights, means, deviations = extrapolate(curve, tuple(step / until for step in missing))
    share = len(missing) / (len(missing) + len(kept))
    seen = math.fsum(kept) / (len(missing) + len(kept))
    return Forecast(
        weights=weights,
        means=tuple(seen + share * unit * value for value in means),
        deviations=tuple(math.hypot(share * scale * sd, error) for sd in deviations),
    )


def _missing_steps(steps: Sequence[int], until: int) -> list[int]:
    """Steps at which the run will still be evaluated: at the spacing so far, and after its last step."""
    spacing = max(round(median(b - a for a, b in pairwise(steps))), 1)
    planned = [*range(steps[-1] + spacing, until, spacing), until]
    return [step for step in planned if step > steps[-1]]


def _evaluation_error(errors: Series, last_k: int) -> float:
    known = [error for error in errors.values[-last_k:] if math.isfinite(error)]
    return mean(known) if known else 0.0


def _normal_cdf(difference: float, deviation: float) -> float:
    if deviation == 0.0:
        return 0.5 if difference == 0 else float(difference > 0)
    return 0.5 * math.erfc(-difference / deviation / math.sqrt(2.0))
