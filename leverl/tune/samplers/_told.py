"""What samplers of other packages are told: one result per configuration.

They know no seeds and no curves. A configuration's result is the mean score of its runs or, where all were stopped
early, of what their curves predict.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leverl.record.run_record import Outcome
from leverl.tune.bounds import allowed
from leverl.tune.model import History, Params
from leverl.tune.ranking import failed
from leverl.tune.space.space import Space
from leverl.tune.statistics import mean, mean_or_none


@dataclass(frozen=True)
class Told:
    """A configuration and its result."""

    params: Params  # without levers that have no effect
    value: (
        float | None
    )  # as measured: lower is better where the study minimises; None where it failed on a seed
    infeasible: bool  # it failed, or breaks a bound that the study sets on a metric

    @property
    def running(self) -> bool:
        return self.value is None and not self.infeasible


def told(space: Space, history: History, pending: Sequence[Params] = ()) -> list[Told]:
    """All configurations inside the space in order of start, then `pending`, which are going to be started.

    Those of which nothing is known (the machine lost their runs) are left out.
    """
    keeps_bounds = allowed(space.metric_constraints)
    results: list[Told] = []
    for config_id in history.config_ids:
        states = history.of(config_id)
        params = history.params(config_id) or space.base_params()
        has_failed = any(failed(state) for state in states)
        value = None if has_failed else _value(history, config_id)
        known = value is not None or has_failed or any(state.outcome is None for state in states)
        if known and space.fill(params) is not None:
            scored = any(state.scored for state in states)
            breaks = scored and keeps_bounds is not None and not keeps_bounds(history, config_id)
            results.append(Told(params, value, has_failed or breaks))
    return results + [Told(params, None, False) for params in pending]


def worst(results: Sequence[Told], *, maximize: bool) -> float:
    """The worst value so far, for what has none but must be told with one; 0 before the first."""
    values = [result.value for result in results if result.value is not None]
    if not values:
        return 0.0
    return min(values) if maximize else max(values)


def _value(history: History, config_id: str) -> float | None:
    """Mean over the configuration's runs."""
    states = history.of(config_id)
    scores = [state.score.mean for state in states if state.scored and state.score is not None]
    if scores:
        return mean(scores)
    predictions = [
        state.prediction.mean
        for state in states
        if state.outcome is Outcome.STOPPED and state.prediction is not None
    ]
    return mean_or_none(predictions)
