"""The words of tuning: a study has configurations, a configuration has runs, a run has seed and outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from leverl.record.run_record import Outcome, Score
from leverl.record.series import EMPTY, Series

if TYPE_CHECKING:
    from leverl.tune.space.space import Space

ParamValue = float | int | str | bool
Params = Mapping[str, ParamValue]
"""Lever → value. A lever that has no effect in a configuration is missing."""

SEARCH, GRID, RACE, CONFIRM = "search", "grid", "race", "confirm"
"""Phases of a run. Their seeds never overlap: the seeds that chose a winner never confirm it."""

BASE = "c000"
"""The study's base configuration, always the first to run."""


@dataclass(frozen=True)
class Run:
    """One process: a configuration with a seed, trained for `until` steps."""

    id: str  # "012-s1": configuration 12, seed 1; also the folder's name
    config_id: str  # "c012"
    params: Params  # lever name → value; empty for the base
    seed: int
    until: int
    phase: str
    parent: Path | None = None


@dataclass(frozen=True)
class Cost:
    """What a run used."""

    steps: int = 0
    responses: int = 0
    tokens: int = 0
    seconds: float = 0.0
    gpu_seconds: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """What a run that was stopped early would have scored at its full length, judged by its curve."""

    mean: float
    standard_error: float


@dataclass(frozen=True)
class RunState:
    """A run and what is known of it so far; `outcome` is None while it waits or runs."""

    run: Run
    folder: Path
    outcome: Outcome | None = None
    score: Score | None = None
    prediction: Prediction | None = None  # of a run that was stopped early, instead of a score
    evaluations: Series = EMPTY
    evaluation_errors: Series = EMPTY  # standard errors of the above
    signals: Mapping[str, Series] = field(default_factory=dict)  # the series that guards watch, see SIGNALS
    kl: float | None = None  # mean kl_divergence over the last tenth of the steps
    length: float | None = None  # mean response length, likewise
    steps_to_90: int | None = None
    bounded: Mapping[str, float] = field(default_factory=dict)  # metrics that a constraint bounds, likewise
    cost: Cost = Cost()
    message: str = ""

    @property
    def scored(self) -> bool:
        return self.outcome is Outcome.FINISHED and self.score is not None

    @property
    def progress(self) -> float:
        """Share of its steps that the run has done, between 0 and 1."""
        return min(self.cost.steps / self.run.until, 1.0) if self.run.until else 0.0


@dataclass(frozen=True)
class History:
    """Everything a sampler, a phase or a report may know. Runs are in order of start; the base is `c000`."""

    runs: tuple[RunState, ...]
    maximize: bool = True
    spent: float = 0.0  # share of the budget that is used up, between 0 and 1; 0 without a budget
    counts_time: bool = False  # the budget does, so that quick runs leave more of it

    def of(self, config_id: str, phase: str | None = None) -> tuple[RunState, ...]:
        """Runs of a configuration, of one phase or of all."""
        return tuple(s for s in self.runs if s.run.config_id == config_id and phase in (None, s.run.phase))

    def in_phase(self, phase: str) -> tuple[RunState, ...]:
        return tuple(state for state in self.runs if state.run.phase == phase)

    @property
    def config_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(state.run.config_id for state in self.runs))

    def params(self, config_id: str) -> Params:
        return self.of(config_id)[0].run.params


@dataclass(frozen=True)
class Start:
    """Start this run."""

    run: Run


@dataclass(frozen=True)
class Continue:
    """Go on with this run, which was stopped early, from its checkpoint."""

    run_id: str


@dataclass(frozen=True)
class Stop:
    """Stop this run; `reason` is shown to the user."""

    run_id: str
    reason: str


@dataclass(frozen=True)
class Finish:
    """This phase is done; `summary` is shown to the user."""

    summary: str


Decision = Start | Continue | Stop | Finish


class Sampler(Protocol):
    """Proposes configurations. Pure: the same history gives the same suggestion."""

    name: str  # shown in the report, e.g. "optuna GPSampler"

    def suggest(self, space: "Space", history: History, n: int) -> list[Params]:
        """Up to `n` configurations; fewer, or none, when the space is exhausted.

        One that has run before asks for another seed of it (or for the rest of a run that was stopped).
        """


class Phase(Protocol):
    """One part of a strategy. Pure: decides from the history alone, so a study can be resumed anywhere."""

    @property
    def name(self) -> str: ...

    def next(self, history: History, free: int) -> Sequence[Decision]:
        """What to do now that `free` places for runs are free."""


@dataclass(frozen=True)
class Recommendation:
    """The configuration to take as far as search and race can tell. Scores point the way of the objective."""

    config_id: str
    mean: float  # posterior mean and standard deviation of its true mean score
    sd: float
    seed_sd: float  # standard deviation of a configuration's scores between seeds
    probability_best: float  # among those still in question: the race's finalists, or all that have a score
    expected_loss: float  # what the best of these is expected to score better, ≥ 0
    indistinguishable: tuple[str, ...]  # it was taken from these; empty when it stands alone
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Winner against base on fresh seeds, paired by seed. Scores are per seed, in the order of `seeds`."""

    seeds: tuple[int, ...]
    winner: tuple[float, ...]
    base: tuple[float, ...]
    difference: float  # positive is better, whichever way the goal points
    interval: (
        tuple[float, float] | None
    )  # 95 %, of the paired differences; None below two pairs or without spread
    gain: bool  # the interval lies above zero (in the goal's direction)
    config_id: str = ""  # the configuration compared: also where the base is kept in the end


@dataclass(frozen=True)
class Winner:
    """How a study ended."""

    study: str
    config_id: str  # "c000" when nothing beat the base
    params: Params
    comparison: (
        Comparison | None
    )  # None when the base itself won the search, or confirmation could not finish
    verdict: str  # one sentence for people
    best_yaml: Path
    report: Path


@dataclass(frozen=True)
class LeverAxis:
    """A searched lever, as plots and tables need it."""

    name: str
    scale: str  # "linear", "log", "int", "categorical"
    low: float | None
    high: float | None
    values: tuple[ParamValue, ...]
    base: ParamValue | None  # the base configuration's value


@dataclass(frozen=True)
class StudyView:
    """A study as views and reports see it: everything is in its folder, nothing in memory only."""

    name: str
    folder: Path
    target: str  # recipe or file the base extends
    base_settings: Mapping[str, ParamValue]  # what the study sets on top of the target
    strategy: str
    sampler: str  # which sampler really ran, e.g. "optuna GPSampler"
    objective: str  # metric, e.g. "eval/score"
    axes: tuple[LeverAxis, ...]
    history: History
    planned: Mapping[str, int]  # phase → runs planned
    steps: int  # steps of a run
    phase: str  # running phase, or "done"
    budget_seconds: float | None
    seconds: float  # wall time so far, over all sittings
    winner: Winner | None = None
    recommendation: Recommendation | None = None  # of search and race, as they stand; None without a score


class StudyObserver(Protocol):
    """What the scheduler tells whoever watches; must be quick and must not raise."""

    def refreshed(self, view: StudyView) -> None:
        """Called about once a second and at each change; running runs carry their curve so far."""

    def event(self, text: str) -> None:
        """Something a person wants to know: a run ended and why, a phase began, a retry."""

    def ended(self, view: StudyView) -> None:
        """The study is over, or was interrupted (`view.winner` is None)."""
