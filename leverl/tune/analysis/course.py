"""Who led when: the recommendation at a few points of the study's cost, each from the runs up to there."""

from collections.abc import Mapping, Sequence
from typing import Final

from leverl.tune.analysis.result import Lead
from leverl.tune.evidence.recommendation import Allowed, recommend
from leverl.tune.ledger import total
from leverl.tune.model import BASE, CONFIRM, History, Params
from leverl.tune.space.space import Space

POINTS: Final = 12
"""Most points; each is a fit of the surrogate."""


def course(space: Space, history: History, *, allowed: Allowed | None = None) -> tuple[Lead, ...]:
    """The leader by posterior mean at up to POINTS points, the last one after all runs before the confirmation.

    Runs count in their order of start, with what they brought in the end: a run that was in flight when a later
    one started counts as if it had been over.
    """
    runs = tuple(state for state in history.runs if state.run.phase != CONFIRM)
    valued = [
        count
        for count, state in enumerate(runs, 1)
        if state.scored or (state.outcome is not None and state.prediction is not None)
    ]
    found = []
    for count in _spread(valued, POINTS):
        before = History(runs[:count], history.maximize)
        best = recommend(space, before, allowed=allowed)
        if best is not None:
            found.append(
                Lead(
                    count,
                    _spent(before),
                    best.config_id,
                    best.mean,
                    best.sd,
                    _params(space, before, best.config_id),
                )
            )
    return tuple(found)


def _spread(values: Sequence[int], most: int) -> list[int]:
    """At most `most` of the values, evenly spread, both ends among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def _spent(history: History) -> Mapping[str, float]:
    cost = total(history)
    return {
        "responses": float(cost.responses),
        "steps": float(cost.steps),
        "seconds": cost.seconds,
        "gpu_seconds": cost.gpu_seconds,
    }


def _params(space: Space, history: History, config_id: str) -> Params:
    return space.base_params() if config_id == BASE else history.params(config_id)
