"""A strategy is a sequence of phases: search, local grid, race, confirmation. It decides from the history alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from leverl.tune.bounds import allowed
from leverl.tune.budget import Account
from leverl.tune.evidence.doubt import doubt
from leverl.tune.evidence.recommendation import Allowed, incumbent, recommend
from leverl.tune.evidence.verdict import Conclusion, conclude
from leverl.tune.model import (
    CONFIRM,
    GRID,
    RACE,
    SEARCH,
    Continue,
    Decision,
    Finish,
    History,
    Params,
    Phase,
    Recommendation,
    RunState,
    Sampler,
    Start,
    Stop,
)
from leverl.tune.phases.confirm import Confirm, pairs
from leverl.tune.phases.local_grid import LocalGrid
from leverl.tune.phases.race import Race
from leverl.tune.phases.search import Search
from leverl.tune.sampling import sampler_named
from leverl.tune.space.space import Space, key
from leverl.tune.stopping.rules import StopRules
from leverl.tune.study import LOCAL_CELLS, Study

DONE = "done"

_LEAST_SEARCH: Final = 2  # the base, and something to compare it with
_PAIR: Final = 2  # the leader and its challenger


@dataclass(frozen=True)
class Step:
    """What to do now. `phase` is "done" when nothing is left to start."""

    phase: str
    decisions: tuple[Start | Continue, ...] = ()
    finished: tuple[tuple[str, str], ...] = ()  # phases that are over, with their summaries
    out_of_budget: bool = False


@dataclass(frozen=True)
class Strategy:
    """The phases of a study, the sampler of its search and the rules that end runs early."""

    study: Study
    space: Space
    sampler: Sampler
    phases: tuple[Phase, ...]
    rules: StopRules

    def next(self, history: History, free: int, account: Account) -> Step:
        """What to do with `free` places.

        A phase ends when it says so, or when the budget that is left is needed by the phases after it.
        """
        history = replace(history, spent=account.spent, counts_time=account.counts_time)
        finished: list[tuple[str, str]] = []
        for phase in self.phases:
            left = account.runs_left - self._reserve_after(phase.name, account)
            room = free if math.isinf(left) else max(min(free, math.floor(left + 1e-9)), 0)
            decisions = phase.next(history, room)
            over = [decision for decision in decisions if isinstance(decision, Finish)]
            if over:
                finished.append((phase.name, over[0].summary))
                continue
            starts = _starts(decisions)
            running = any(state.outcome is None for state in history.in_phase(phase.name))
            if starts or running or room == free:
                return Step(phase.name, starts, tuple(finished))
            if phase.name == CONFIRM:
                return Step(DONE, (), tuple(finished), out_of_budget=True)
            finished.append((phase.name, f"ended at {self._why(account, phase.name)}"))
        return Step(DONE, (), tuple(finished))

    def stops(self, history: History) -> list[Stop]:
        """Runs to end early, as their curves and signals are now."""
        running = any(state.outcome is None for state in history.in_phase(SEARCH) + history.in_phase(GRID))
        if not running:
            return []
        return self.rules.decide(history, incumbent(self.space, history, allowed=self.allowed))

    def recommend(self, history: History) -> Recommendation | None:
        """The configuration to take as far as search and race can tell."""
        return recommend(self.space, history, allowed=self.allowed, epsilon=self.study.race.epsilon)

    def conclude(self, history: History, cut_short: str = "") -> Conclusion:
        """The end of the study; `cut_short` is the limit that ended it before its proof was over, if one did.

        Raises:
            TrainingFailed: no run has a score.
        """
        return conclude(
            self.space,
            history,
            cut_short=cut_short,
            allowed=self.allowed,
            epsilon=self.study.race.epsilon,
        )

    @property
    def allowed(self) -> Allowed | None:
        """Which configurations keep the bounds on metrics."""
        return allowed(self.space.metric_constraints)

    def _reserve_after(self, phase: str, account: Account) -> int:
        """Runs kept for the phases after `phase`; none where the budget pays for no proof, and a search is all it buys.

        Limits on time, steps or tokens become runs as soon as one has shown what it costs.
        """
        proof = {CONFIRM: 0, RACE: self.study.confirm_runs}
        if phase in proof:
            return proof[phase]
        total = len(account.history.runs) + account.runs_left
        race = self._race_runs(account.history, total)
        if total < _LEAST_SEARCH + race + self.study.confirm_runs:
            return 0
        return race + self.study.confirm_runs + (self._cells if phase == SEARCH else 0)

    def _race_runs(self, history: History, total: float) -> int:
        """Runs kept for the race, of `total`.

        Few where seeds hardly matter, for there another configuration tells more than another look at the same; and
        no more than a pair as long as the leader of the search is as clear as a race could make it.
        """
        runs = self.study.race_runs_of(total, doubt(history))
        search_ends = total - len(history.runs) < runs + self.study.confirm_runs + 1
        if runs <= _PAIR or not search_ends:
            return runs
        best = self.recommend(history)
        clear = best is not None and best.probability_best >= self.study.race.confidence
        return _PAIR if clear else runs

    @property
    def _cells(self) -> int:
        """Runs kept for the local grid: a third of the search at most."""
        if not self.study.local_grid:
            return 0
        runs = self.study.search_runs
        return LOCAL_CELLS if runs is None else min(LOCAL_CELLS, runs // 3)

    def _why(self, account: Account, phase: str) -> str:
        return account.exhausted or f"{len(account.history.in_phase(phase))} runs: the rest is for the proof"

    def planned(self, history: History) -> Mapping[str, int]:
        """Runs per phase, as far as they can be known; those already started where they cannot."""
        begun = [phase.name for phase in self.phases if history.in_phase(phase.name)]
        latest = begun[-1] if begun else SEARCH
        names = [phase.name for phase in self.phases]
        expected = {
            SEARCH: self._planned_search(history),
            GRID: self._cells,
            RACE: self._planned_race(history),
            CONFIRM: self.study.confirm_runs,
        }
        if latest == CONFIRM:  # until then nobody knows what the race leaves over
            expected[CONFIRM] = 2 * pairs(history, self.study.seeds.confirm, self.study.budget.trials)
        past, started = names[: names.index(latest)], {name: len(history.in_phase(name)) for name in names}
        return {name: started[name] if name in past else max(expected[name], started[name]) for name in names}

    def _planned_race(self, history: History) -> int:
        trials = self.study.budget.trials
        return self._race_runs(history, math.inf if trials is None else trials)

    def _planned_search(self, history: History) -> int:
        started, trials = len(history.in_phase(SEARCH)), self.study.budget.trials
        runs = None if trials is None else trials - self._planned_race(history) - self.study.confirm_runs
        size = self.space.size
        if self.study.sampler == "grid" and size is not None:
            cells = {
                key(found)
                for cell in self.space.cells()
                if (found := self.space.admit(cell).params) is not None
            }
            configurations = len(cells | {key(self.space.base_params())})
            grid = configurations * self.study.seeds.search + self.study.duplicates
            return grid if runs is None else min(grid, runs)
        return started if runs is None else runs - self._cells


def _starts(decisions: Sequence[Decision]) -> tuple[Start | Continue, ...]:
    return tuple(decision for decision in decisions if isinstance(decision, Start | Continue))


def build(
    study: Study,
    space: Space,
    until: Callable[[Params], int],
    last_k: int,
    prior: tuple[RunState, ...] = (),
) -> Strategy:
    """The strategy that a study names. The sampler learns from `prior` runs too, which no phase counts."""
    sampler = sampler_named(study.sampler, study.seed)
    search = Search(
        space,
        sampler,
        study.seeds_of(SEARCH),
        until,
        replicates=study.seeds.search,
        duplicates=study.duplicates,
        prior=prior,
    )
    keeps = allowed(space.metric_constraints)
    cells = LocalGrid(space, LOCAL_CELLS, study.seeds_of(GRID), until, allowed=keeps)
    race = Race(
        space,
        study.race.finalists,
        study.seeds_of(RACE),
        until,
        runs=None,
        epsilon=study.race.epsilon,
        confidence=study.race.confidence,
        allowed=keeps,
    )
    proof = Confirm(
        space,
        study.seeds_of(CONFIRM),
        until,
        least=study.seeds.confirm,
        runs=study.budget.trials,
        epsilon=study.race.epsilon,
        allowed=keeps,
    )
    phases: list[Phase] = [search, *([cells] if study.local_grid else []), race, proof]
    stopping = study.stopping
    rules = StopRules(
        after=stopping.after,
        probability=stopping.probability,
        maximize=study.maximize,
        last_k=last_k,
        guards=stopping.guards,
        curves=stopping.curves,
        objective=study.objective.name,
    )
    return Strategy(study, space, sampler, tuple(phases), rules)
