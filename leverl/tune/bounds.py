"""Whether a configuration keeps the bounds that a study sets on metrics (`kl_divergence <= 0.1`)."""

from collections.abc import Callable, Mapping, Sequence

from leverl.tune.model import History
from leverl.tune.space.constraints import MetricConstraint
from leverl.tune.statistics import mean


def allowed(constraints: Sequence[MetricConstraint]) -> Callable[[History, str], bool] | None:
    """A predicate on configurations; None where nothing is bounded.

    What counts is the mean over the finished runs. A configuration whose runs never measured the metric is not
    allowed: a bound that cannot be checked is not kept.
    """
    if not constraints:
        return None

    def keeps(history: History, config_id: str) -> bool:
        runs = [state.bounded for state in history.of(config_id) if state.scored]
        return all(_holds(constraint, runs) for constraint in constraints)

    return keeps


def _holds(constraint: MetricConstraint, runs: Sequence[Mapping[str, float]]) -> bool:
    values = [run[constraint.metric] for run in runs if constraint.metric in run]
    return bool(values) and constraint.holds(mean(values))
