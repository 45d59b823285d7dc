"""Confirmation: leader and base on seeds that chose neither, paired by seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leverl.tune.evidence.recommendation import Allowed, confirmed, recommend
from leverl.tune.model import BASE, CONFIRM, Decision, Finish, History, Params, Start
from leverl.tune.phases._runs import fresh, has_run, run_of
from leverl.tune.space.space import Space


@dataclass(frozen=True)
class Confirm:
    """Runs the recommended configuration and the base side by side on the confirmation seeds.

    The configuration is fixed once its confirmation has begun.
    """

    space: Space
    seeds: tuple[int, ...]
    until: Callable[[Params], int]
    epsilon: float | None = None
    allowed: Allowed | None = None
    model: bool = True
    name: str = CONFIRM

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """Runs to start now, pair by pair; `Finish` when all are over, or when the base itself leads."""
        config_id = confirmed(history)
        if config_id is None:
            best = recommend(
                self.space, history, allowed=self.allowed, epsilon=self.epsilon, model=self.model
            )
            if best is None or best.config_id == BASE:
                return [Finish("the base leads" if best else "no run has a score that counts")]
            config_id = best.config_id
        due = [
            run_of(name, history.params(name), seed, self.until(history.params(name)), CONFIRM)
            for seed in fresh(self.seeds, history, CONFIRM)
            for name in (config_id, BASE)
            if not has_run(history, name, seed)
        ]
        if due:
            return [Start(run) for run in due[:free]]
        if any(state.outcome is None for state in history.in_phase(CONFIRM)):
            return []
        return [Finish(f"{config_id} and the base on {len(self.seeds)} fresh seeds")]
