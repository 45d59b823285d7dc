"""Confirmation: leader and base on seeds that chose neither, paired by seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leverl.tune.evidence.recommendation import Allowed, confirmed, recommend
from leverl.tune.model import BASE, CONFIRM, Decision, Finish, History, Params, Start
from leverl.tune.phases._runs import fresh, has_run, run_of
from leverl.tune.space.space import Space
from leverl.tune.study import MOST_PROOF


@dataclass(frozen=True)
class Confirm:
    """Runs the recommended configuration and the base side by side on the confirmation seeds.

    The configuration is fixed once its confirmation has begun, and so is the number of seeds: `least`, or up to all
    of `seeds` where the study's budget of `runs` has some left that the race did not need. More pairs show smaller
    gains; that their number rests on nothing the proof sees keeps its interval honest.
    """

    space: Space
    seeds: tuple[int, ...]
    until: Callable[[Params], int]
    least: int
    runs: int | None = None
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
        seeds = fresh(self.seeds, history, CONFIRM)[: pairs(history, self.least, self.runs)]
        due = [
            run_of(name, history.params(name), seed, self.until(history.params(name)), CONFIRM)
            for seed in seeds
            for name in (config_id, BASE)
            if not has_run(history, name, seed)
        ]
        if due:
            return [Start(run) for run in due[:free]]
        if any(state.outcome is None for state in history.in_phase(CONFIRM)):
            return []
        return [Finish(f"{config_id} and the base on {len(seeds)} fresh seeds")]


def pairs(history: History, least: int, runs: int | None) -> int:
    """Seeds that the proof takes, with `runs` for the whole study: what is left before it begins, within its bounds."""
    if runs is None:
        return least
    before = sum(state.run.phase != CONFIRM for state in history.runs)
    return min(max((runs - before) // 2, least), MOST_PROOF * least)
