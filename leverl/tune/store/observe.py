"""The history of a study: what the database decided, joined with what the run folders say."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from leverl.record.run_record import Outcome
from leverl.tune.model import History, RunState
from leverl.tune.stopping.curve import predict_final
from leverl.tune.stopping.rules import scores_seen
from leverl.tune.store.progress import Measure, read_state
from leverl.tune.store.storage import Entry


def observe(
    entries: Iterable[Entry], measure: Measure, *, maximize: bool, over: Mapping[str, RunState] | None = None
) -> History:
    """All runs; those that are not over with their curve so far. `over` saves reading what is known to be final."""
    known = over or {}
    states = [known.get(entry.run.id) or read_state(entry, measure) for entry in entries]
    return with_predictions(History(tuple(states), maximize), measure.last_k)


def with_predictions(history: History, last_k: int) -> History:
    """The same runs; those that were stopped early with what they would have scored."""
    seen = scores_seen(history, maximize=history.maximize)
    scale = 0.0 if seen is None else seen.width
    runs = tuple(_predicted(state, last_k, scale, history.maximize) for state in history.runs)
    return replace(history, runs=runs)


def _predicted(state: RunState, last_k: int, scale: float, maximize: bool) -> RunState:
    if state.outcome is not Outcome.STOPPED:
        return state
    found = predict_final(
        state.evaluations,
        state.evaluation_errors,
        state.run.until,
        last_k,
        scale=scale,
        maximize=maximize,
    )
    return replace(state, prediction=found)
