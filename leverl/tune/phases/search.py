"""Search: the base first, then what the sampler proposes; some of the first on a second seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from leverl.record.run_record import Outcome
from leverl.tune.model import (
    BASE,
    GRID,
    SEARCH,
    Continue,
    Decision,
    Finish,
    History,
    Params,
    Run,
    RunState,
    Sampler,
    Start,
)
from leverl.tune.phases._runs import run_of
from leverl.tune.space.space import Space, key


@dataclass(frozen=True)
class Search:
    """Starts what the sampler proposes until it has nothing more, or whoever asks has no more room.

    `seeds` are all that a configuration may get here; it gets the first `replicates` of them at once. The first
    `duplicates` configurations, the base among them, get one more: they were not chosen for their scores, so
    that their differences measure the noise between seeds without bias.
    """

    space: Space
    sampler: Sampler
    seeds: tuple[int, ...]
    until: Callable[[Params], int]
    replicates: int = 1
    duplicates: int = 0
    prior: tuple[RunState, ...] = ()  # runs of another study, which the sampler learns from
    name: str = SEARCH

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """What to start now; `Finish` when all are over."""
        if any(state.run.phase not in (SEARCH, GRID) for state in history.runs):
            return [Finish("search done")]
        due: list[Decision] = [Start(run) for run in self._missing(history)]
        if len(due) < free:
            due += self._proposed(history, free - len(due))
        if due:
            return due[:free]
        if any(state.outcome is None for state in history.in_phase(SEARCH)) or free == 0:
            return []
        runs, configurations = len(history.in_phase(SEARCH)), len(history.config_ids)
        return [Finish(f"{runs} runs of {configurations} configurations")]

    def _missing(self, history: History) -> list[Run]:
        """Runs of configurations that have begun but not on all seeds that they are to have."""
        begun = [(config_id, history.params(config_id)) for config_id in history.config_ids] or [(BASE, {})]
        return [
            self._run(config_id, params, seed)
            for place, (config_id, params) in enumerate(begun)
            for seed in self.seeds[: self.replicates + (place < self.duplicates)]
            if seed not in _seeds(history, config_id)
        ]

    def _proposed(self, history: History, room: int) -> list[Decision]:
        """New configurations, or another seed of one that the sampler wants to know better."""
        wanted = max(room // self.replicates, 1)
        known = {
            key(history.params(config_id) or self.space.base_params()): config_id
            for config_id in history.config_ids
        }
        number = max(len(history.config_ids), 1)
        decisions: list[Decision] = []
        again: set[str] = set()
        known_runs = replace(history, runs=(*self.prior, *history.runs))
        for params in self.sampler.suggest(self.space, known_runs, wanted):
            config_id = known.get(key(params))
            if config_id is not None:
                if config_id not in again:
                    decisions += self._again(history, config_id)
                again.add(config_id)
                continue
            config_id, number = f"c{number:03d}", number + 1
            known[key(params)] = config_id
            again.add(config_id)
            decisions += [Start(self._run(config_id, params, seed)) for seed in self.seeds[: self.replicates]]
        return decisions

    def _again(self, history: History, config_id: str) -> list[Decision]:
        """Go on with the run that was stopped, else take the next seed."""
        states = history.of(config_id)
        stopped = [state.run.id for state in states if state.outcome is Outcome.STOPPED]
        if stopped:
            return [Continue(stopped[0])]
        fresh = [seed for seed in self.seeds if seed not in _seeds(history, config_id)]
        return [Start(self._run(config_id, history.params(config_id), seed)) for seed in fresh[:1]]

    def _run(self, config_id: str, params: Params, seed: int) -> Run:
        return run_of(config_id, params, seed, self.until(params), SEARCH)


def _seeds(history: History, config_id: str) -> set[int]:
    return {state.run.seed for state in history.of(config_id)}
