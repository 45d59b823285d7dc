"""What a study has spent, what stopping runs early has saved, and what failed runs have lost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leverl.record.run_record import Outcome
from leverl.tune.model import Cost, History, RunState


@dataclass(frozen=True)
class Entry:
    """Runs of one phase with one end; `outcome` is "running" for those that are not over."""

    phase: str
    outcome: str
    runs: int
    cost: Cost


@dataclass(frozen=True)
class Balance:
    """A study's cost at a glance. A run that was started again counts as it ended last."""

    runs: int
    spent: Cost
    useful: Cost  # spent on runs that finished, or were stopped early and judged by their curve
    running: Cost  # on runs that are not over
    phases: Mapping[str, Cost]  # in order of their first run
    stopped: int  # runs that were stopped early
    saved: Cost  # what these would have cost beyond that at full length and at their own pace
    lost_runs: Mapping[str, int]  # cause → runs that left neither a score nor a prediction
    lost: Mapping[str, Cost]  # cause → what they cost

    @property
    def saved_share(self) -> float:
        """Saved steps as a share of those the study would have taken without stopping; 0 to 1."""
        planned = self.spent.steps + self.saved.steps
        return self.saved.steps / planned if planned else 0.0

    @property
    def lost_share(self) -> float:
        """Lost steps as a share of those spent; 0 to 1."""
        lost = total_of(self.lost.values()).steps
        return lost / self.spent.steps if self.spent.steps else 0.0


def balance(history: History) -> Balance:
    """The account of all runs so far."""
    phases: dict[str, Cost] = {}
    lost: dict[str, Cost] = {}
    lost_runs: dict[str, int] = {}
    for state in history.runs:
        phases[state.run.phase] = add(phases.get(state.run.phase, Cost()), state.cost)
        if (cause := _cause(state)) is not None:
            lost[cause] = add(lost.get(cause, Cost()), state.cost)
            lost_runs[cause] = lost_runs.get(cause, 0) + 1
    stopped = [state for state in history.runs if state.outcome is Outcome.STOPPED]
    return Balance(
        runs=len(history.runs),
        spent=total(history),
        useful=total_of(state.cost for state in history.runs if state.outcome and _cause(state) is None),
        running=total_of(state.cost for state in history.runs if state.outcome is None),
        phases=phases,
        stopped=len(stopped),
        saved=total_of(map(saved, stopped)),
        lost_runs=lost_runs,
        lost=lost,
    )


def saved(state: RunState) -> Cost:
    """What the rest of a run that was stopped early would have cost, at its own pace."""
    cost, left = state.cost, max(state.run.until - state.cost.steps, 0)
    if state.outcome is not Outcome.STOPPED or not cost.steps:
        return Cost()
    pace = left / cost.steps
    return Cost(
        left,
        round(cost.responses * pace),
        round(cost.tokens * pace),
        cost.seconds * pace,
        cost.gpu_seconds * pace,
    )


def ledger(history: History) -> tuple[Entry, ...]:
    """One entry for each phase and outcome that occurs, in order of occurrence."""
    found: dict[tuple[str, str], Entry] = {}
    for state in history.runs:
        place = state.run.phase, str(state.outcome or "running")
        before = found.get(place, Entry(*place, 0, Cost()))
        found[place] = Entry(*place, before.runs + 1, add(before.cost, state.cost))
    return tuple(found.values())


def total(history: History) -> Cost:
    """Everything spent."""
    return total_of(state.cost for state in history.runs)


def total_of(costs: Iterable[Cost]) -> Cost:
    """The sum of costs."""
    whole = Cost()
    for cost in costs:
        whole = add(whole, cost)
    return whole


def add(one: Cost, two: Cost) -> Cost:
    """The sum of two costs."""
    return Cost(
        one.steps + two.steps,
        one.responses + two.responses,
        one.tokens + two.tokens,
        one.seconds + two.seconds,
        one.gpu_seconds + two.gpu_seconds,
    )


def _cause(state: RunState) -> str | None:
    """Why nothing was learnt from a run that is over; None where something was, or while it runs."""
    if state.outcome is None or state.scored or state.prediction is not None:
        return None
    if state.outcome is Outcome.STOPPED:
        return None  # stopped before its curve said anything: that was the tuner's own decision
    if state.outcome is Outcome.NON_FINITE:
        return "non-finite"
    return "no score" if state.outcome is Outcome.FINISHED else str(state.outcome).replace("_", " ")
