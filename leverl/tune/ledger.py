"""What a study has spent, by phase and by how the runs ended."""

from dataclasses import dataclass

from leverl.tune.model import Cost, History


@dataclass(frozen=True)
class Entry:
    """Runs of one phase with one end; `outcome` is "running" for those that are not over."""

    phase: str
    outcome: str
    runs: int
    cost: Cost


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
    spent = Cost()
    for state in history.runs:
        spent = add(spent, state.cost)
    return spent


def add(one: Cost, two: Cost) -> Cost:
    """The sum of two costs."""
    return Cost(
        one.steps + two.steps,
        one.responses + two.responses,
        one.tokens + two.tokens,
        one.seconds + two.seconds,
    )
