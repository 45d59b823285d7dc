"""How configurations stand: mean score over their runs, failures apart."""

from dataclasses import dataclass
from typing import Final

from leverl.record.run_record import Outcome
from leverl.tune.model import History, RunState
from leverl.tune.statistics import mean, mean_or_none, standard_error

FAILURES: Final = (Outcome.OUT_OF_MEMORY, Outcome.NON_FINITE, Outcome.CRASHED, Outcome.TIMED_OUT)
"""Ends that say something about the configuration. A lost process says nothing."""


@dataclass(frozen=True)
class Standing:
    """A configuration with at least one scored run."""

    config_id: str
    mean: float
    standard_error: float | None  # between seeds; of one run, that of its evaluation
    seeds: int
    failures: int
    kl: float | None
    cost: tuple[int, float]  # responses and seconds per run


def failed(state: RunState) -> bool:
    """Whether the run's end is a fact about its configuration."""
    return state.outcome in FAILURES


def standing(history: History, config_id: str, phase: str | None = None) -> Standing | None:
    """The configuration's standing in a phase (None: over all); None without a scored run."""
    states = history.of(config_id, phase)
    scored = [(state, state.score) for state in states if state.scored and state.score is not None]
    if not scored:
        return None
    values = [score.mean for _, score in scored]
    error = standard_error(values) if len(values) > 1 else scored[0][1].standard_error
    kls = [state.kl for state, _ in scored if state.kl is not None]
    return Standing(
        config_id=config_id,
        mean=mean(values),
        standard_error=error,
        seeds=len(values),
        failures=sum(failed(state) for state in states),
        kl=mean_or_none(kls),
        cost=(
            round(mean([state.cost.responses for state, _ in scored])),
            mean([state.cost.seconds for state, _ in scored]),
        ),
    )


def ranked(history: History, phase: str | None = None) -> list[Standing]:
    """Configurations with a score, best first; those that failed on a seed come after those that did not."""
    found = [standing(history, config_id, phase) for config_id in history.config_ids]
    sign = -1.0 if history.maximize else 1.0
    return sorted((s for s in found if s is not None), key=lambda s: (s.failures, sign * s.mean, s.config_id))
