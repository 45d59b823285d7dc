"""A study's view turned into what its report shows: configurations with means, costs, failures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from leverl.record.run_record import Outcome
from leverl.report import numbers
from leverl.report.marks import mark_of
from leverl.tune.analysis.result import Analysis, Standing
from leverl.tune.ledger import Balance, balance
from leverl.tune.model import BASE as BASE_ID
from leverl.tune.model import (
    CONFIRM,
    GRID,
    RACE,
    SEARCH,
    Comparison,
    LeverAxis,
    ParamValue,
    RunState,
    StudyView,
)
from leverl.tune.statistics import interval95, mean, mean_or_none, standard_error

_FINALISTS_SHOWN = 3


@dataclass(frozen=True)
class Difference:
    """A configuration against the base, paired by seed within a phase."""

    value: float
    interval: tuple[float, float] | None
    pairs: int


@dataclass(frozen=True)
class Configuration:
    """A configuration and its runs. Scores are those of finished runs: a stopped run has none."""

    id: str
    values: tuple[ParamValue | None, ...]  # one per axis of the study; None: the lever does not apply
    runs: tuple[RunState, ...]

    @cached_property
    def scores(self) -> tuple[float, ...]:
        return finished_scores(self.runs)

    @property
    def mean(self) -> float | None:
        return mean_or_none(self.scores)

    @property
    def standard_error(self) -> float | None:
        return standard_error(self.scores)

    @property
    def score_text(self) -> str:
        if self.scores:
            return numbers.with_error(self.mean, self.standard_error)
        partial = [
            state for state in self.runs if state.outcome is Outcome.STOPPED and state.evaluations.values
        ]
        if partial:
            return f"({numbers.short(partial[-1].evaluations.last)} at step {partial[-1].cost.steps})"
        return numbers.UNKNOWN

    @property
    def states(self) -> str:
        """`● finished 2 · ▲ out of memory`."""
        counts = Counter((mark.glyph, mark.word) for mark in map(mark_of, self.runs))
        return " · ".join(
            "\u00a0".join([glyph, *word.split(), *([str(n)] if n > 1 else [])])
            for (glyph, word), n in counts.items()
        )

    @property
    def reasons(self) -> str:
        """Why runs ended that did not simply finish; each reason once."""
        return " · ".join(dict.fromkeys(state.message for state in self.runs if state.message))

    @property
    def kl(self) -> float | None:
        return mean_or_none([state.kl for state in self.runs if state.kl is not None])

    @property
    def length(self) -> float | None:
        return mean_or_none([state.length for state in self.runs if state.length is not None])

    @property
    def steps(self) -> int:
        return sum(state.cost.steps for state in self.runs)

    @property
    def seconds(self) -> float:
        return sum(state.cost.seconds for state in self.runs)


def finished_scores(runs: Sequence[RunState]) -> tuple[float, ...]:
    return tuple(
        state.score.mean for state in runs if state.outcome is Outcome.FINISHED and state.score is not None
    )


@dataclass(frozen=True)
class StudyData:
    """What the sections of the report share; `analysis` is there where a page is written, not in live views."""

    view: StudyView
    analysis: Analysis | None = None

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """In order of their first run."""
        history = self.view.history
        return tuple(
            Configuration(id=name, values=self._values(name), runs=history.of(name))
            for name in history.config_ids
        )

    @cached_property
    def by_id(self) -> dict[str, Configuration]:
        return {configuration.id: configuration for configuration in self.configurations}

    @cached_property
    def ranked(self) -> tuple[Configuration, ...]:
        """Those with a score, best mean first; ties in order of start."""
        scored = [c for c in self.configurations if c.scores]
        return tuple(sorted(scored, key=lambda c: self.worth(c.mean)))

    @property
    def base(self) -> Configuration | None:
        return self.by_id.get(BASE_ID)

    @cached_property
    def leader(self) -> Configuration | None:
        """The winner of a study that is over, else the one the study would choose now."""
        if self.view.winner is not None:
            return self.by_id.get(self.view.winner.config_id)
        found = self.view.recommendation
        return self.by_id.get(found.config_id) if found else None

    @property
    def comparison(self) -> Comparison | None:
        return self.view.winner.comparison if self.view.winner else None

    @cached_property
    def candidate(self) -> Configuration | None:
        """What was compared with the base: the winner, or the one that did not beat the base; before that the
        configuration in front."""
        if self.comparison is not None and self.comparison.config_id in self.by_id:
            return self.by_id[self.comparison.config_id]
        confirmed = [c for c in self.configurations if c.id != BASE_ID and self.phase_runs(c, CONFIRM)]
        if confirmed:
            scores = {c.id: finished_scores(self.phase_runs(c, CONFIRM)) for c in confirmed}
            return min(confirmed, key=lambda c: self.worth(mean_or_none(scores[c.id])))
        leader = self.leader
        return (
            leader
            if leader and leader.id != BASE_ID
            else next((c for c in self.ranked if c.id != BASE_ID), None)
        )

    @cached_property
    def finalists(self) -> tuple[Configuration, ...]:
        """Those of the race (else the best of the search), without candidate and base."""
        raced = [c for c in self.configurations if self.phase_runs(c, RACE)]
        pool = raced or list(self.ranked)
        others = [c for c in pool if c.id != BASE_ID and c is not self.candidate and c.scores]
        return tuple(sorted(others, key=lambda c: self.worth(c.mean))[:_FINALISTS_SHOWN])

    def worth(self, score: float | None) -> float:
        """A key that sorts the better first."""
        if score is None:
            return float("inf")
        return -score if self.view.history.maximize else score

    @staticmethod
    def phase_runs(configuration: Configuration, phase: str) -> tuple[RunState, ...]:
        return tuple(state for state in configuration.runs if state.run.phase == phase)

    def against_base(self, configuration: Configuration) -> Difference | None:
        """Mean difference to the base over shared seeds of one phase, the latest phase that has some."""
        if self.base is None or configuration.id == BASE_ID:
            return None
        proof = self.view.winner.comparison if self.view.winner else None
        if proof is not None and proof.config_id == configuration.id:  # one interval, wherever it stands
            low, high = proof.interval or (0.0, 0.0)
            ends = (low, high) if self.view.history.maximize else (-high, -low)
            sign = 1.0 if self.view.history.maximize else -1.0
            return Difference(sign * proof.difference, ends if proof.interval else None, len(proof.seeds))
        for phase in (CONFIRM, RACE, GRID, SEARCH):
            own = _by_seed(self.phase_runs(configuration, phase))
            base = _by_seed(self.phase_runs(self.base, phase))
            pairs = [own[seed] - base[seed] for seed in own if seed in base]
            if pairs:
                return Difference(mean(pairs), interval95(pairs), len(pairs))
        return None

    @cached_property
    def seeds(self) -> dict[str, tuple[int, ...]]:
        """Phase → its seeds, ascending."""
        found: dict[str, set[int]] = {}
        for state in self.view.history.runs:
            found.setdefault(state.run.phase, set()).add(state.run.seed)
        return {phase: tuple(sorted(seeds)) for phase, seeds in found.items()}

    @cached_property
    def balance(self) -> Balance:
        return balance(self.view.history)

    @property
    def saved_share(self) -> float:
        """Steps saved by stopping, as a share of those the study would have taken."""
        return self.balance.saved_share

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """Configuration → what is believed of it; empty without an analysis."""
        return {one.config_id: one for one in self.analysis.standings} if self.analysis else {}

    @property
    def indistinguishable(self) -> tuple[str, ...]:
        """The configurations that cannot be told apart from the best, it included; empty when it stands alone."""
        found = self.view.recommendation
        return found.indistinguishable if found else ()

    def value_of(self, configuration: Configuration, axis: LeverAxis) -> ParamValue | None:
        return configuration.values[self.view.axes.index(axis)]

    def _values(self, config_id: str) -> tuple[ParamValue | None, ...]:
        params = self.view.history.params(config_id)
        if config_id == BASE_ID:
            return tuple(params.get(axis.name, axis.base) for axis in self.view.axes)
        return tuple(params.get(axis.name) for axis in self.view.axes)


def _by_seed(runs: Sequence[RunState]) -> dict[int, float]:
    return {
        state.run.seed: state.score.mean
        for state in runs
        if state.outcome is Outcome.FINISHED and state.score is not None
    }
