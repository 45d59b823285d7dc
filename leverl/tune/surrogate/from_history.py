"""Measurements of a study."""

import math

from leverl.record.run_record import Outcome
from leverl.tune.bounds import allowed
from leverl.tune.model import History, RunState
from leverl.tune.ranking import failed
from leverl.tune.space.space import Space
from leverl.tune.surrogate.encoding import Encoding
from leverl.tune.surrogate.measurement import Measurement, State


def measurements(space: Space, history: History) -> list[Measurement]:
    """What the runs say, larger is better. Lost and interrupted runs are left out: they say nothing.

    The base counts as a point of the space if it is one; before its first run it is on its way.
    """
    encoding = Encoding(space.axes)
    sign = 1.0 if history.maximize else -1.0
    keeps = allowed(space.metric_constraints)
    found = []
    for state in history.runs or (None,):
        params = (state.run.params if state is not None else {}) or space.base_params()
        if not encoding.contains(params):
            continue
        if state is None:
            found.append(Measurement(params, None, 0.0, "pending"))
        elif (one := _measurement(state, sign)) is not None:
            kept = keeps is None or not state.scored or keeps(history, state.run.config_id)
            found.append(Measurement(params, *one, cost=_cost(state), allowed=kept))
    return found


def _measurement(state: RunState, sign: float) -> tuple[float | None, float, State] | None:
    if state.outcome is None:
        return None, 0.0, "pending"
    if state.scored and state.score is not None and math.isfinite(state.score.mean):
        return sign * state.score.mean, (state.score.standard_error or 0.0) ** 2, "finished"
    if state.outcome is Outcome.STOPPED and state.prediction is not None:
        return sign * state.prediction.mean, state.prediction.standard_error**2, "predicted"
    if failed(state) or state.outcome in (Outcome.STOPPED, Outcome.FINISHED):
        return None, 0.0, "failed"
    return None


def _cost(state: RunState) -> float | None:
    """Seconds at full length."""
    if state.outcome not in (Outcome.FINISHED, Outcome.STOPPED) or state.cost.seconds <= 0:
        return None
    return state.cost.seconds / state.progress if state.progress > 0 else None
