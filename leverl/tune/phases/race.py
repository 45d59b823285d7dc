"""Race: the best few of the search on fresh common seeds, for the best of many noisy scores flatters itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from leverl.tune.evidence.belief import Searched, failures, observations, search_knowledge, searched
from leverl.tune.evidence.posterior import Observation
from leverl.tune.evidence.recommendation import Allowed, contest, steadiest
from leverl.tune.evidence.top_two import allocate
from leverl.tune.model import CONFIRM, RACE, Decision, Finish, History, Params, Start
from leverl.tune.phases._runs import fresh, run_of
from leverl.tune.space.space import Space

HOPELESS: Final = 0.05
"""P(best) after the search below which a configuration does not enter the race (two always do)."""


@dataclass(frozen=True)
class Race:
    """Tells the finalists apart, on at most `len(seeds)` seeds each and at most `runs` runs (None: no such limit).

    Each finalist runs on the first seed; then leader or challenger, whichever run tells more. It ends when the
    leader is best with probability `confidence`, when the best is expected to be better by less than `epsilon`
    (in units of the score; None: a tenth of the standard deviation between seeds), or when no run is left. A
    finalist that failed more often than another is out.
    """

    space: Space
    finalists: int
    seeds: tuple[int, ...]
    until: Callable[[Params], int]
    runs: int | None = None
    epsilon: float | None = None
    confidence: float = 0.9
    allowed: Allowed | None = None
    model: bool = True
    name: str = RACE

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """Runs to start now; `Finish` when the race is decided and none is running."""
        if history.in_phase(CONFIRM):
            return [Finish("race done")]
        names = finalists_of(self.space, history, self.finalists, allowed=self.allowed, model=self.model)
        if len(names) < 2:
            return [Finish("nothing to choose between")]
        running = any(state.outcome is None for state in history.in_phase(RACE))
        decided = self._decided(history, names)
        if decided is not None:
            return [] if running else [Finish(decided)]
        due = self._due(history, names, max(free, 1))
        if due or running:
            return [self._start(history, config_id, seed) for config_id, seed in due[:free]]
        return [Finish(f"{len(history.in_phase(RACE))} runs of {len(names)} finalists, none is left")]

    def _decided(self, history: History, names: Sequence[str]) -> str | None:
        """Why the race is over, by the runs that have ended; None while it goes on."""
        ended = _ended(history)
        if not {state.run.config_id for state in ended.in_phase(RACE)}.issuperset(names):
            return None
        steady = steadiest(ended, names)
        if len(steady) == 1:
            return f"{steady[0]} is the finalist that failed least"
        found = contest(self.space, ended, steady, epsilon=self.epsilon, model=self.model)
        chance = float(found.belief.probability_best()[found.leader])
        loss = float(found.belief.expected_loss()[found.leader])
        runs = len(history.in_phase(RACE))
        if chance >= self.confidence:
            return f"{steady[found.leader]} is the best of {len(names)} finalists, P {chance:.2g}, after {runs} runs"
        if loss <= found.epsilon:
            return f"no finalist is expected to be better by more than {found.epsilon:.2g}, after {runs} runs"
        return None

    def _due(self, history: History, names: Sequence[str], count: int) -> list[tuple[str, int]]:
        """The next `count` runs as (configuration, seed): first each finalist once, then the most telling."""
        race = history.in_phase(RACE)
        if self.runs is not None:
            count = min(count, self.runs - len(race))
        used = {name: {state.run.seed for state in history.of(name, RACE)} for name in names}
        seeds = fresh(self.seeds, history, RACE)
        opening = [(name, seeds[0]) for name in names if not used[name]]
        if len(opening) >= count:
            return opening[: max(count, 0)]
        steady = steadiest(_ended(history), names)
        knowledge = search_knowledge(self.space, history, model=self.model)
        if knowledge is None:
            return opening
        noise = knowledge.noise(history, steady)
        unused = {name: [seed for seed in seeds if seed not in used[name]] for name in steady}
        prior = knowledge.before_race(steady, noise)
        known = observations(history, noise)
        for name, seed in opening:
            if name in unused:
                unused[name].remove(seed)
                known.append(Observation(name, seed, None, noise.residual))
        return opening + allocate(prior, known, noise, unused, count - len(opening))

    def _start(self, history: History, config_id: str, seed: int) -> Start:
        params = history.params(config_id)
        return Start(run_of(config_id, params, seed, self.until(params), RACE))


def finalists_of(
    space: Space, history: History, count: int, *, allowed: Allowed | None = None, model: bool = True
) -> tuple[str, ...]:
    """The configurations that race, the most promising first: at most `count`, by P(best) after the search.

    A run that was stopped counts by its prediction. Configurations that failed on a seed of the search come last.
    The race's own runs change nothing, so the finalists are fixed once it has begun.
    """
    before = searched(history)
    permitted = frozenset(c for c in before.config_ids if allowed is None or allowed(before, c))
    chosen = _promising(Searched(space, before, model, permitted))
    raced = tuple(dict.fromkeys(state.run.config_id for state in history.in_phase(RACE)))
    return (*raced, *(name for name in chosen if name not in raced))[:count]


@lru_cache(maxsize=32)
def _promising(asked: Searched) -> tuple[str, ...]:
    """All that may race, in order; at least two where so many have a value."""
    history = asked.history
    knowledge = search_knowledge(asked.space, history, model=asked.model)
    if knowledge is None:
        return ()
    known = [name for name in knowledge.belief.ids if asked.allowed is None or name in asked.allowed]
    steady = steadiest(history, known)
    belief = knowledge.belief.of(steady)
    chances = dict(zip(steady, map(float, belief.probability_best()), strict=True))
    means = dict(zip(steady, map(float, belief.mean), strict=True))
    order = sorted(steady, key=lambda name: (-chances[name], -means[name], name))
    chosen = [name for place, name in enumerate(order) if place < 2 or chances[name] >= HOPELESS]
    if len(chosen) < 2:
        others = [name for name in known if name not in steady]
        chosen += sorted(others, key=lambda name: (failures(history, name), name))
    return tuple(chosen)


def _ended(history: History) -> History:
    return History(tuple(state for state in history.runs if state.outcome is not None), history.maximize)
