"""Search: the base first, then what the sampler proposes, each on the search seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

from leverl.tune.model import SEARCH, Decision, Finish, History, Params, Run, Sampler, Start
from leverl.tune.space import Space

BASE: str = "c000"
"""The study's base configuration, always the first to run."""


@dataclass(frozen=True)
class Search:
    """Starts at most `runs` runs (None: until the sampler has nothing more to propose)."""

    space: Space
    sampler: Sampler
    seeds: tuple[int, ...]
    until: int
    runs: int | None
    name: str = SEARCH

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """Runs to start now; `Finish` when all are over."""
        if any(state.run.phase != SEARCH for state in history.runs):
            return [Finish("search done")]
        due = self._missing(history)
        if len(due) < free:
            due += self._new(history, free - len(due), len(history.runs) + len(due))
        if due:
            return [Start(run) for run in due[:free]]
        if any(state.outcome is None for state in history.runs) or free == 0:
            return []
        return [Finish(f"{len(history.runs)} runs of {len(history.config_ids)} configurations")]

    def _missing(self, history: History) -> list[Run]:
        """Runs of configurations that have begun but not on every seed, the base before all others."""
        begun = [(config_id, history.params(config_id)) for config_id in history.config_ids]
        return [
            run_of(config_id, params, seed, self.until, SEARCH)
            for config_id, params in begun or [(BASE, {})]
            for seed in self.seeds
            if not has_run(history, config_id, seed)
        ]

    def _new(self, history: History, room: int, started: int) -> list[Run]:
        """Runs of new configurations, as far as the budget goes."""
        wanted = -(-room // len(self.seeds))
        if self.runs is not None:
            wanted = min(wanted, (self.runs - started) // len(self.seeds))
        if wanted <= 0:
            return []
        first = max(len(history.config_ids), 1)
        suggestions: list[Params] = self.sampler.suggest(self.space, history, wanted)
        return [
            run_of(f"c{number:03d}", params, seed, self.until, SEARCH)
            for number, params in enumerate(suggestions, first)
            for seed in self.seeds
        ]


def has_run(history: History, config_id: str, seed: int) -> bool:
    """Whether the configuration was started with this seed."""
    return any(state.run.seed == seed for state in history.of(config_id))


def run_of(config_id: str, params: Params, seed: int, until: int, phase: str) -> Run:
    """A run; its id is the configuration's number and the seed."""
    return Run(f"{config_id.removeprefix('c')}-s{seed}", config_id, params, seed, until, phase)
