"""Confirmation: leader and base on seeds that chose neither, paired by seed."""

from collections.abc import Sequence
from dataclasses import dataclass

from leverl.tune.model import CONFIRM, Decision, Finish, History, Start
from leverl.tune.phases.search import BASE, has_run, run_of
from leverl.tune.phases.select import chosen


@dataclass(frozen=True)
class Confirm:
    """Runs leader and base side by side on the confirmation seeds."""

    seeds: tuple[int, ...]
    until: int
    name: str = CONFIRM

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """Runs to start now, pair by pair; `Finish` when all are over, or when the base itself leads."""
        best = chosen(history)
        if best is None or best.config_id == BASE:
            return [Finish("the base leads" if best else "no run has a score")]
        due = [
            run_of(config_id, history.params(config_id), seed, self.until, CONFIRM)
            for seed in self.seeds
            for config_id in (best.config_id, BASE)
            if not has_run(history, config_id, seed)
        ]
        if due:
            return [Start(run) for run in due[:free]]
        if any(state.outcome is None for state in history.in_phase(CONFIRM)):
            return []
        return [Finish(f"{best.config_id} and the base on {len(self.seeds)} fresh seeds")]
