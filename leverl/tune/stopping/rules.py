"""Which running runs of the search are ended early, and why."""

import math
from dataclasses import dataclass
from statistics import median
from typing import Final

from leverl.errors import ConfigError
from leverl.record.run_record import Outcome
from leverl.record.series import EMPTY, Series, score_of
from leverl.tune.model import BASE, GRID, SEARCH, History, RunState, Stop
from leverl.tune.stopping.curve import forecast
from leverl.tune.stopping.guards import Range, broken

FEWEST_REFERENCES: Final = 4

_ALIKE: Final = 0.05  # in units of the study's range: two scores that differ by less stood about as low
_WELL: Final = 0.5  # of the way from where a run stands to the leader: a run that came further ended well


@dataclass(frozen=True)
class Incumbent:
    """The leader's true mean score, as far as it is known. Unit and sign are those of the objective."""

    mean: float
    standard_error: float
    seed_sd: float = 0.0  # spread of a configuration's scores between seeds


@dataclass(frozen=True)
class Standing:
    """A curve against the start-up curves at the same share of their steps."""

    step: int
    score: float  # mean of the last evaluations
    start_up: float  # median of theirs
    behind: bool  # no better than that


@dataclass(frozen=True)
class StopRules:
    """Guards, and curves that are out of the race.

    A curve is judged once `after` of the run's steps are done. The run is stopped when three things agree:
    - its score is no better than the median of the start-up runs at the same share of their steps,
    - P(the true mean of its configuration beats the leader's) < `probability` by its own curve,
    - no run of the search that ended well stood about as low at that share: where good runs begin late, a low score
      early on says nothing yet.

    The start-up runs are the first `reference` configurations of the search that ran to their end, by order of start.
    They never change: the peers of a search that has converged are all good, so that a median of theirs stops good
    runs. Later runs can only save a run. `benchmarks/stopping.py` measures what each condition does.

    Raises:
        ConfigError: a number out of its range.
    """

    after: float = 0.2
    probability: float = 0.05
    maximize: bool = True
    last_k: int = 3
    guards: bool = True
    curves: bool = True
    reference: int = FEWEST_REFERENCES
    objective: str = "eval/score"  # its name, for people

    def __post_init__(self) -> None:
        if not 0 < self.after < 1 or not 0 < self.probability < 0.5:
            raise ConfigError(
                f"stopping: after={self.after:g} has to be between 0 and 1, and probability={self.probability:g} "
                "between 0 and 0.5"
            )
        if self.reference < FEWEST_REFERENCES:
            raise ConfigError(
                f"stopping: reference={self.reference}, but fewer than {FEWEST_REFERENCES} curves are no reference"
            )

    def decide(self, history: History, incumbent: Incumbent | None) -> list[Stop]:
        """Runs to stop now: of the search and the local grid, never the base, the race or the confirmation."""
        running = [
            state for state in _searched(history) if state.outcome is None and state.run.config_id != BASE
        ]
        seen = scores_seen(history, maximize=self.maximize) if running else None
        if seen is None:
            return []
        stops = []
        for state in running:
            reason = self._broken(state, seen) or self._beaten(state, history, seen, incumbent)
            if reason is not None:
                stops.append(Stop(state.run.id, reason))
        return stops

    def _broken(self, state: RunState, seen: Range) -> str | None:
        if not self.guards:
            return None
        return broken(state, seen, maximize=self.maximize, objective=self.objective)

    def _beaten(
        self, state: RunState, history: History, seen: Range, incumbent: Incumbent | None
    ) -> str | None:
        """Why the run's curve is out of the race; None while it is not."""
        if not self.curves or incumbent is None or _share(state) < self.after:
            return None
        reference = start_up(history, self.reference)
        if any(state.run.config_id == other.run.config_id for other in reference):
            return None  # replicates of start-up configurations are there to learn the noise from
        found = self.standing(state, reference) if reference else None
        if found is None or not found.behind:
            return None
        chance = self.chance(state, seen, incumbent)
        if chance is None or chance >= self.probability:
            return None
        if self.precedent(state, found.score, history, seen, incumbent):
            return None
        worse = "below" if self.maximize else "above"
        position = worse if found.score != found.start_up else "no better than"
        return (
            f"stopped at {found.step}/{state.run.until}: {found.score:.3g} is {position} "
            f"the start-up median {found.start_up:.3g}; P(beats the leader) {_percent(chance)}"
        )

    def standing(self, state: RunState, reference: tuple[RunState, ...]) -> Standing | None:
        """The run's curve against those of the start-up; None while one of them says nothing yet."""
        share = _share(state)
        score, middle = self._level(state, share), self._median(reference, share)
        if score is None or middle is None:
            return None
        behind = score <= middle if self.maximize else score >= middle
        return Standing(state.evaluations.steps[-1], score, middle, behind)

    def chance(self, state: RunState, seen: Range, incumbent: Incumbent) -> float | None:
        """P(the true mean of the run's configuration is better than the leader's); None as in `forecast`."""
        final = forecast(
            state.evaluations,
            state.evaluation_errors,
            state.run.until,
            self.last_k,
            scale=seen.width,
            maximize=self.maximize,
        )
        if final is None:
            return None
        doubt = math.hypot(incumbent.standard_error, incumbent.seed_sd)
        above = final.probability_above(incumbent.mean, doubt)
        return above if self.maximize else 1.0 - above

    def precedent(
        self, state: RunState, score: float, history: History, seen: Range, incumbent: Incumbent
    ) -> bool:
        """Whether a run of the search that ended well stood about as low as `score` at the same share of its steps."""
        sign = 1.0 if self.maximize else -1.0
        low = sign * score + _ALIKE * seen.width
        well = sign * (score + _WELL * (incumbent.mean - score))
        for other in _searched(history):
            if other.scored and other.score is not None and sign * other.score.mean >= well:
                level = self._level(other, _share(state))
                if level is not None and sign * level <= low:
                    return True
        return False

    def _median(self, reference: tuple[RunState, ...], share: float) -> float | None:
        """The median of the start-up curves at a share of their steps; None while one of them says nothing there."""
        levels = [self._level(state, share) for state in reference]
        known = [level for level in levels if level is not None]
        return median(known) if len(known) == len(levels) else None

    def _level(self, state: RunState, share: float) -> float | None:
        """Mean of the last evaluations up to a share of the run's steps, as the score is one of the last of all."""
        trained, limit = _trained(state.evaluations), share * state.run.until + 1e-9
        count = sum(step <= limit for step in trained.steps)
        found = score_of(Series(trained.steps[:count], trained.values[:count]), EMPTY, self.last_k)
        return found.mean if found is not None else None


def scores_seen(history: History, *, maximize: bool = True) -> Range | None:
    """Lowest and highest evaluation of all runs, with the sign turned where less is better; None without any.

    Its width is the `scale` of `leverl.tune.stopping.curve.predict_final`.
    """
    sign = 1.0 if maximize else -1.0
    values = [v for state in history.runs for v in state.evaluations.values if math.isfinite(v)]
    ends = sorted((sign * min(values), sign * max(values))) if values else None
    return Range(*ends) if ends is not None else None


def start_up(history: History, count: int = FEWEST_REFERENCES) -> tuple[RunState, ...]:
    """The first `count` configurations of the search that ran to their end, the base included: one run of each.

    By order of start, and empty until they are fixed: a run that may still finish holds its place, so that later
    and better runs never change the reference.
    """
    found: dict[str, RunState] = {}
    for state in history.in_phase(SEARCH):
        if state.run.config_id in found:
            continue
        if state.outcome is None:
            return ()
        if state.outcome is Outcome.FINISHED and state.scored:
            found[state.run.config_id] = state
        if len(found) == count:
            return tuple(found.values())
    return ()


def _searched(history: History) -> list[RunState]:
    return [state for state in history.runs if state.run.phase in (SEARCH, GRID)]


def _share(state: RunState) -> float:
    """Share of its steps at which the run was last evaluated."""
    steps = state.evaluations.steps
    return steps[-1] / state.run.until if steps else 0.0


def _trained(evaluations: Series) -> Series:
    """Evaluations after the first step of training."""
    begin = next((i for i, step in enumerate(evaluations.steps) if step > 0), len(evaluations))
    return Series(evaluations.steps[begin:], evaluations.values[begin:])


def _percent(share: float) -> str:
    return "< 1 %" if share < 0.005 else f"{100 * share:.0f} %"
