"""Selection: the best of the search on fresh seeds, for the best of many noisy scores flatters itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from leverl.tune.model import CONFIRM, SEARCH, SELECT, Decision, Finish, History, Start
from leverl.tune.phases.search import has_run, run_of
from leverl.tune.ranking import Standing, leader, ranked


@dataclass(frozen=True)
class Select:
    """Runs the `top_k` best of the search on the selection seeds."""

    top_k: int
    seeds: tuple[int, ...]
    until: int
    name: str = SELECT

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """Runs to start now, seed by seed; `Finish` when all are over."""
        finalists = candidates(history, self.top_k)
        if len(finalists) < 2 or history.in_phase(CONFIRM):
            return [Finish("nothing to choose between" if len(finalists) < 2 else "selection done")]
        due = [
            run_of(config_id, history.params(config_id), seed, self.until, SELECT)
            for seed in self.seeds
            for config_id in finalists
            if not has_run(history, config_id, seed)
        ]
        if due:
            return [Start(run) for run in due[:free]]
        if any(state.outcome is None for state in history.in_phase(SELECT)):
            return []
        return [Finish(f"{len(finalists)} candidates on {len(self.seeds)} fresh seeds")]


def candidates(history: History, top_k: int) -> list[str]:
    """The `top_k` configurations with the best search scores."""
    return [found.config_id for found in ranked(history, SEARCH)[:top_k]]


def chosen(history: History) -> Standing | None:
    """The leader: by selection where it took place, else by the search (one candidate, or an early end)."""
    return leader(history, SELECT) or leader(history, SEARCH)
