"""Local grid: the levers that matter most, a step to both sides of the best of the search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leverl.tune.evidence.neighbourhood import neighbourhood
from leverl.tune.evidence.recommendation import Allowed
from leverl.tune.model import GRID, SEARCH, Decision, Finish, History, Params, Run, Start
from leverl.tune.phases._runs import has_run, run_of
from leverl.tune.space.space import Space, key


@dataclass(frozen=True)
class LocalGrid:
    """Runs the cells around the best of the search that have not run, at most `cells`, on each of `seeds`.

    They rest on the runs of the search alone, so they are fixed once the grid has begun.
    """

    space: Space
    cells: int
    seeds: tuple[int, ...]
    until: Callable[[Params], int]
    allowed: Allowed | None = None
    name: str = GRID

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """Runs to start now, the most promising first; `Finish` when all are over."""
        if any(state.run.phase not in (SEARCH, GRID) for state in history.runs):
            return [Finish("local grid done")]
        found = neighbourhood(self.space, history, self.cells, allowed=self.allowed)
        if found is None:
            return [Finish("too few scores for a local grid")]
        due = self._due(history, found.cells)
        if due:
            return [Start(run) for run in due[:free]]
        if any(state.outcome is None for state in history.in_phase(GRID)):
            return []
        where = f"around {found.centre} over {', '.join(found.levers)}" if found.levers else ""
        return [Finish(f"{len(found.cells)} cells {where}".rstrip())]

    def _due(self, history: History, cells: Sequence[Params]) -> list[Run]:
        known = {key(state.run.params): state.run.config_id for state in history.in_phase(GRID)}
        number = max(len(history.config_ids), 1)
        due: list[Run] = []
        for cell in cells:
            if key(cell) not in known:
                known[key(cell)] = f"c{number:03d}"
                number += 1
            config_id = known[key(cell)]
            due += [
                run_of(config_id, cell, seed, self.until(cell), GRID)
                for seed in self.seeds
                if not has_run(history, config_id, seed)
            ]
        return due
