"""What a study is: base configuration, space, strategy, seeds, stopping and budget, checked."""

import math
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from leverl.tune.model import CONFIRM, GRID, RACE, SEARCH

LOCAL_GRID: Final = "+grid"
"""Ending of a strategy that adds a small grid around the best of its search."""

LOCAL_CELLS: Final = 9
"""Cells of the local grid, at most."""

REPLICATES: Final = 4
"""Seeds that a configuration may get in the search, at most: those that decide get more in the race."""

MOST_PROOF: Final = 2
"""Times `seeds.confirm` that winner and base get at most: runs that the race did not need go into the proof."""

_FIRST_SEED: Final = {SEARCH: 1000, GRID: 1000, RACE: 2000, CONFIRM: 3000}
_SEEDS_PER_STUDY_SEED: Final = 10_000
_MOST_SEEDS: Final = 500
_RACE_SHARE: Final = 0.3  # at most, where the spread between seeds is large
_DUPLICATES: Final = 3
_RUNS_PER_DUPLICATE: Final = 8


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Target(_Part):
    """What is trained: a recipe or configuration file, and settings on top of it."""

    leverl: str
    set: dict[str, Any] = {}


class Objective(_Part):
    """What is optimised: a metric of held-out evaluation, as the mean of its last values."""

    name: str = "eval/score"
    goal: Literal["maximize", "minimize"] = "maximize"


class Seeds(_Part):
    """How many seeds a configuration gets in each phase."""

    search: int = Field(1, ge=1, le=_MOST_SEEDS)
    duplicates: int | None = Field(None, ge=0, le=100)  # start-up configurations with a second seed
    race: int = Field(4, ge=1, le=_MOST_SEEDS)  # at most, for each finalist
    confirm: int = Field(5, ge=2, le=_MOST_SEEDS)  # at least, for the winner and the base each


class Race(_Part):
    """When the best few have been told apart: the leader is best with `confidence`, or taking it loses less than
    `epsilon` (in units of the objective; by default a tenth of the standard deviation between seeds)."""

    finalists: int = Field(4, ge=1, le=6)
    confidence: float = Field(0.9, gt=0.5, lt=1)
    epsilon: float | None = Field(None, ge=0)


class Stopping(_Part):
    """Which runs of the search end early. `after` is the share of a run's steps before which no curve is judged."""

    guards: bool = True
    curves: bool = True
    after: float = Field(0.2, gt=0, lt=1)
    probability: float = Field(0.05, gt=0, lt=0.5)


class Budget(_Part):
    """How much may be spent over all phases, whichever comes first. Runs are counted when they start."""

    trials: int | None = Field(None, ge=1)
    steps: int | None = Field(None, ge=1)
    tokens: int | None = Field(None, ge=1)
    hours: float | None = Field(None, gt=0)
    gpu_hours: float | None = Field(None, gt=0)

    @property
    def limited(self) -> bool:
        return any(value is not None for value in self.model_dump().values())


class Limits(_Part):
    """When a run is ended by force: resident memory of its processes, and hours of wall time."""

    memory_gb: float | None = Field(None, gt=0)
    run_hours: float | None = Field(None, gt=0)


class Study(_Part):
    """A study: base configuration, space, strategy and budget."""

    name: str
    target: Target
    strategy: str = "bayes"
    objective: Objective = Objective()
    space: dict[str, Any] | Literal["default"]
    constraints: list[str] = []
    fidelity: Literal["responses", "steps"] = "responses"  # what is equal in all runs
    seeds: Seeds = Seeds()
    stopping: Stopping = Stopping()
    race: Race = Race()
    budget: Budget = Budget()
    limits: Limits = Limits()
    parallel: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)

    @property
    def maximize(self) -> bool:
        return self.objective.goal == "maximize"

    @property
    def sampler(self) -> str:
        """Name of the sampler that proposes configurations."""
        return self.strategy.removesuffix(LOCAL_GRID)

    @property
    def local_grid(self) -> bool:
        return self.strategy.endswith(LOCAL_GRID)

    def seeds_of(self, phase: str) -> tuple[int, ...]:
        """The seeds of a phase. Those of search, race and confirmation, and of other studies, never meet.

        The local grid shares the seeds of the search, for its cells compete with what the search has found.
        """
        count = {
            SEARCH: max(self.seeds.search, REPLICATES),
            GRID: 1,
            RACE: self.seeds.race,
            CONFIRM: MOST_PROOF * self.seeds.confirm,
        }[phase]
        first = self.seed * _SEEDS_PER_STUDY_SEED + _FIRST_SEED[phase]
        return tuple(range(first, first + count))

    @property
    def confirm_runs(self) -> int:
        """Runs of the confirmation: winner and base."""
        return 2 * self.seeds.confirm

    @property
    def race_runs(self) -> int:
        """Runs kept for the race as long as nothing is known of the noise."""
        return self.race_runs_of(math.inf if self.budget.trials is None else self.budget.trials)

    def race_runs_of(self, total: float, doubt: float = 1.0) -> int:
        """Runs kept for the race in a study of `total` runs: a share of what the confirmation leaves, but a pair.

        The share is proportional to the `doubt` (0 … 1) in what the search has seen.
        """
        finalists = self.race.finalists
        if finalists == 1:
            return 0
        most = finalists * self.seeds.race
        if math.isinf(total):
            return most
        return min(most, max(2, round(_RACE_SHARE * doubt * (total - self.confirm_runs))))

    @property
    def reserved_runs(self) -> int:
        """Runs that race and confirmation take."""
        return self.race_runs + self.confirm_runs

    @property
    def search_runs(self) -> int | None:
        """Runs left for search and local grid; None without a budget of runs."""
        return None if self.budget.trials is None else self.budget.trials - self.reserved_runs

    @property
    def duplicates(self) -> int:
        """Start-up configurations, the base first, that run on a second seed to learn the noise between seeds."""
        if self.seeds.search > 1:
            return 0
        if self.seeds.duplicates is not None:
            return self.seeds.duplicates
        return (
            _DUPLICATES
            if self.search_runs is None
            else min(_DUPLICATES, self.search_runs // _RUNS_PER_DUPLICATE)
        )
