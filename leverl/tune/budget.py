"""What a study may spend, what it has spent, and how many more runs that leaves."""

import math
from dataclasses import dataclass
from typing import Final

from leverl.tune.model import History, RunState
from leverl.tune.statistics import mean_or_none
from leverl.tune.study import Budget

_HOUR: Final = 3600.0


@dataclass(frozen=True)
class Account:
    """A study's budget after `seconds` of wall time with `parallel` runs side by side.

    Whatever the budget counts is turned into runs of average cost, so that phases and strategies reason about
    one number. A run that was stopped early counts by the share of its steps that it did; runs in flight count
    as if they were done already.
    """

    budget: Budget
    history: History
    seconds: float
    parallel: int

    @property
    def spent(self) -> float:
        """Largest share of a limit that is used up, between 0 and 1; 0 without a limit."""
        shares = [used / limit for used, limit, _ in self._measured()]
        if self.budget.trials is not None:
            shares.append(len(self.history.runs) / self.budget.trials)
        return min(max(shares, default=0.0), 1.0)

    @property
    def counts_time(self) -> bool:
        """Whether a quick run uses up less than a slow one."""
        return self.budget.hours is not None or self.budget.gpu_hours is not None

    @property
    def runs_left(self) -> float:
        """Runs that can still be started; infinite without a limit, or where no run has shown its cost yet."""
        left = [self._left(used, limit, unit) for used, limit, unit in self._measured()]
        if self.budget.trials is not None:
            left.append(self.budget.trials - len(self.history.runs))
        return max(min(left, default=math.inf), 0.0)

    @property
    def exhausted(self) -> str:
        """The limit that is used up, in words; empty while there is something left."""
        budget = self.budget
        for name, (used, limit, _) in zip(self._names(), self._measured(), strict=True):
            if used >= limit:
                return f"budget.{name} = {getattr(budget, name):g}"
        if budget.trials is not None and len(self.history.runs) >= budget.trials:
            return f"budget.trials = {budget.trials}"
        return ""

    def _names(self) -> list[str]:
        names = ("steps", "tokens", "hours", "gpu_hours")
        return [name for name in names if getattr(self.budget, name) is not None]

    def _measured(self) -> list[tuple[float, float, float | None]]:
        """(used, limit, cost of one whole run) of every limit but the number of runs."""
        found: list[tuple[float, float, float | None]] = []
        for name in self._names():
            limit = float(getattr(self.budget, name))
            match name:
                case "steps":
                    steps = [state.run.until for state in self.history.runs]
                    unit = mean_or_none(steps)
                    found.append((self._sum("steps"), limit, unit))
                case "tokens":
                    found.append((self._sum("tokens"), limit, self._per_run("tokens")))
                case "gpu_hours":
                    found.append((self._sum("gpu_seconds"), limit * _HOUR, self._per_run("gpu_seconds")))
                case _:
                    unit = self._per_run("seconds")
                    wall = None if unit is None else unit / self.parallel
                    found.append((self.seconds, limit * _HOUR, wall))
        return found

    def _sum(self, name: str) -> float:
        return math.fsum(getattr(state.cost, name) for state in self.history.runs)

    def _per_run(self, name: str) -> float | None:
        """Mean cost of a run at full length; None before anything has been seen."""
        whole = math.fsum(state.progress for state in self.history.runs)
        used = self._sum(name)
        return used / whole if whole > 0 and used > 0 else None

    def _left(self, used: float, limit: float, unit: float | None) -> float:
        if used >= limit:
            return 0.0
        if unit is None:
            return math.inf
        return (limit - used) / unit - self._in_flight()

    def _in_flight(self) -> float:
        """Runs' worth of work that has been started and is still to be paid."""
        running: list[RunState] = [state for state in self.history.runs if state.outcome is None]
        return math.fsum(1.0 - state.progress for state in running)
