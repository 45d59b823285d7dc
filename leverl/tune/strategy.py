"""A strategy is a sequence of phases: search, selection, confirmation. It decides from the history alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leverl.plugins import load
from leverl.tune.model import CONFIRM, SEARCH, SELECT, Finish, History, Phase, Sampler, Start, Stop
from leverl.tune.phases.confirm import Confirm
from leverl.tune.phases.search import BASE, Search
from leverl.tune.phases.select import Select, candidates, chosen
from leverl.tune.space import Space, key
from leverl.tune.study import Study

DONE = "done"


@dataclass(frozen=True)
class Step:
    """What to do now. `phase` is "done" when nothing is left to start."""

    phase: str
    starts: tuple[Start, ...] = ()
    stops: tuple[Stop, ...] = ()
    finished: tuple[tuple[str, str], ...] = ()  # phases that are over, with their summaries
    out_of_time: bool = False


@dataclass(frozen=True)
class Strategy:
    """The phases of a study and the sampler of its search."""

    study: Study
    space: Space
    sampler: Sampler
    phases: tuple[Phase, ...]

    def next(self, history: History, free: int, *, parallel: int, seconds_left: float | None) -> Step:
        """What to do with `free` places; `seconds_left` of the hours budget (None: no such budget).

        The search ends while there is still time for selection and confirmation, judging by the runs so far.
        """
        finished: list[tuple[str, str]] = []
        for phase in self.phases:
            late = seconds_left is not None and self._must_end(phase.name, history, parallel, seconds_left)
            running = any(state.outcome is None for state in history.in_phase(phase.name))
            if late and phase.name == SEARCH:
                if running:
                    return Step(SEARCH)
                finished.append((SEARCH, "ended while there is time left for the proof"))
                continue
            decisions = phase.next(history, free)
            over = [decision for decision in decisions if isinstance(decision, Finish)]
            if over:
                finished.append((phase.name, over[0].summary))
            elif late:
                over_now = DONE if not running else phase.name
                return Step(over_now, finished=tuple(finished), out_of_time=not running)
            else:
                starts = tuple(decision for decision in decisions if isinstance(decision, Start))
                stops = tuple(decision for decision in decisions if isinstance(decision, Stop))
                return Step(phase.name, starts, stops, tuple(finished))
        return Step(DONE, finished=tuple(finished))

    def _must_end(self, phase: str, history: History, parallel: int, seconds_left: float) -> bool:
        if seconds_left <= 0:
            return True
        ended = [state.cost.seconds for state in history.runs if state.outcome is not None]
        begun_search = len(history.config_ids) > 1
        if phase != SEARCH or not ended or not begun_search:
            return False
        needed = self.study.reserved_runs * (sum(ended) / len(ended)) / parallel
        return seconds_left < needed

    def planned(self, history: History) -> Mapping[str, int]:
        """Runs per phase, as far as they can be known; those already started where they cannot."""
        started = len(history.in_phase(SEARCH))
        later = any(state.run.phase != SEARCH for state in history.runs)
        search = started if later else self._planned_search(started)
        finalists = candidates(history, self.study.top_k) if later else []
        top_k = len(finalists) if later else self.study.top_k
        best = chosen(history) if history.in_phase(CONFIRM) else None
        confirm = 0 if best is not None and best.config_id == BASE else 2 * self.study.seeds.confirm
        return {
            SEARCH: search,
            SELECT: top_k * self.study.seeds.select if top_k > 1 else 0,
            CONFIRM: confirm,
        }

    def _planned_search(self, started: int) -> int:
        runs = self.study.search_runs
        size = self.space.size
        if self.study.strategy == "grid" and size is not None:
            cells = {
                key(found)
                for cell in self.space.cells()
                if (found := self.space.admit(cell).params) is not None
            }
            configurations = len(cells | {key(self.space.base_params())})
            grid = configurations * self.study.seeds.search
            return grid if runs is None else min(grid, runs)
        return started if runs is None else runs


def build(study: Study, space: Space, until: int) -> Strategy:
    """The strategy that a study names."""
    sampler: Sampler = load("leverl.tune.samplers", study.strategy, "strategy").create(study.seed)
    phases: Sequence[Phase] = (
        Search(space, sampler, study.seeds_of(SEARCH), until, study.search_runs),
        Select(study.top_k, study.seeds_of(SELECT), until),
        Confirm(study.seeds_of(CONFIRM), until),
    )
    return Strategy(study, space, sampler, tuple(phases))
