"""What the runs say of the configurations' true means: the search by its surrogate, then the race in closed form."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from leverl.tune.evidence.posterior import Belief, FloatArray, Observation
from leverl.tune.evidence.seed_noise import SeedNoise, seed_noise
from leverl.tune.model import BASE, CONFIRM, GRID, RACE, SEARCH, History, Params, RunState
from leverl.tune.ranking import failed
from leverl.tune.space.space import Space
from leverl.tune.statistics import Spread, mean

if TYPE_CHECKING:
    from leverl.tune.surrogate.model import Surrogate

MODEL_FROM: Final = 4
"""Configurations with a value below which no surrogate is fitted: it could not know more than their means."""

_NOISE_SHARE: Final = 0.35
"""Share of the variance between configurations that is taken for noise where nothing was measured twice."""

_LEAST_BETWEEN: Final = 0.1
"""Share of it that is believed to be real, however much noise there seems to be."""


@dataclass(frozen=True)
class Searched:
    """Runs of the search as a question that is answered once: compared by what decides the answer."""

    space: Space = field(compare=False)
    history: History = field(compare=False)
    model: bool
    allowed: frozenset[str] | None = None
    key: Hashable = None

    def __post_init__(self) -> None:
        base = tuple((name, repr(value)) for name, value in self.space.base.items())
        object.__setattr__(self, "key", (self.space.axes, base, fingerprint(self.history)))


@dataclass(frozen=True)
class Knowledge:
    """What search (and local grid) say. Values are larger-is-better: an objective to minimise has its sign turned."""

    belief: Belief  # of every configuration with a score or a prediction
    run_variance: Mapping[str, float]  # of one run around its configuration's mean
    sign: float

    def noise(self, history: History, ids: Collection[str]) -> SeedNoise:
        """Seed noise of these configurations, as all their runs before the confirmation show it.

        What is believed beforehand is no less than the error of their evaluations: where the search saw dead runs
        only, their scores of 0 ± 0 know nothing of the spread of runs that learn.
        """
        guess = mean([self.run_variance[config_id] for config_id in ids])
        errors = [
            state.score.standard_error**2
            for state in history.runs
            if state.run.phase != CONFIRM and state.run.config_id in ids
            if state.scored and state.score is not None and state.score.standard_error is not None
        ]
        return seed_noise(_replicates(history), max(guess, mean(errors) if errors else 0.0))

    def before_race(self, ids: Sequence[str], noise: SeedNoise) -> Belief:
        """The belief about finalists on fresh seeds.

        They were chosen for high scores, and the search's runs share few seeds: so their common level is taken to
        be known no better than one run tells. What is known of their differences stays.
        """
        return self.belief.of(ids).shifted(noise.common + noise.residual)

    def after_race(self, history: History, ids: Sequence[str], noise: SeedNoise) -> Belief:
        """The belief about `ids` once the race's runs are known; those still running narrow it already."""
        seen = observations(history, noise)
        return self.before_race(ids, noise).after(seen, noise.common) if seen else self.belief.of(ids)


def search_knowledge(space: Space, history: History, *, model: bool = True) -> Knowledge | None:
    """What is known before the race; None without any value. Race and confirmation do not count.

    With `model` the surrogate's joint posterior, where at least MODEL_FROM configurations have a value. Without,
    and for a base outside the space: independent normals, each from its own runs, drawn together (Efron & Morris
    1975) as far as noise explains their spread.
    """
    return _knowledge(Searched(space, searched(history), model))


def searched(history: History) -> History:
    """The history of search and local grid alone."""
    runs = tuple(state for state in history.runs if state.run.phase in (SEARCH, GRID))
    return History(runs, history.maximize)


def failures(history: History, config_id: str) -> float:
    """Share of a configuration's runs before the confirmation that failed by its own fault."""
    states = [
        s for s in history.of(config_id) if s.run.phase in (SEARCH, GRID, RACE) and s.outcome is not None
    ]
    return mean([float(failed(state)) for state in states]) if states else 0.0


def observations(history: History, noise: SeedNoise) -> list[Observation]:
    """The runs of the race: with their value when over, without while they run; failures and losses say nothing."""
    found: list[Observation] = []
    for state in history.in_phase(RACE):
        seen = value_of(state, 1.0 if history.maximize else -1.0)
        if seen is not None or state.outcome is None:
            value, extra = seen or (None, 0.0)
            variance = noise.residual + extra
            found.append(Observation(state.run.config_id, state.run.seed, value, variance))
    return found


def spread_of_differences(history: History) -> Spread | None:
    """Variance of the difference of two configurations on one seed, as replicates before the confirmation show it."""
    noise = seed_noise(_replicates(history), 0.0)
    return None if noise.measured is None else Spread(2 * noise.measured, noise.df)


def value_of(state: RunState, sign: float) -> tuple[float, float] | None:
    """A run's value, larger is better, and its error variance beyond the spread between seeds; None without one."""
    if state.scored and state.score is not None:
        return sign * state.score.mean, 0.0
    if state.outcome is not None and state.prediction is not None:
        return sign * state.prediction.mean, state.prediction.standard_error**2
    return None


def fingerprint(history: History) -> Hashable:
    """What of a history decides: two histories with the same one lead to the same beliefs and recommendations."""
    return history.maximize, tuple(
        (s.run.id, s.run.config_id, s.run.phase, s.outcome, s.score, s.prediction, s.kl, s.cost)
        if s.outcome is not None
        else (s.run.id, s.run.config_id, s.run.phase)
        for s in history.runs
    )


@lru_cache(maxsize=8)
def _knowledge(asked: Searched) -> Knowledge | None:
    history = asked.history
    sign = 1.0 if history.maximize else -1.0
    values: dict[str, list[tuple[float, float]]] = {}
    for state in history.runs:
        found = value_of(state, sign)
        if found is not None:
            values.setdefault(state.run.config_id, []).append(found)
    if not values:
        return None
    alone = _from_own_runs(history, values, sign)
    if not asked.model or len(values) < MODEL_FROM:
        return alone
    return _from_surrogate(asked.space, history, alone)


def _from_own_runs(
    history: History, values: Mapping[str, list[tuple[float, float]]], sign: float
) -> Knowledge:
    """Independent normals: the mean of a configuration's runs, shrunk towards the mean of all."""
    means = np.array([mean([value for value, _ in runs]) for runs in values.values()])
    errors = [s.score.standard_error for s in history.runs if s.scored and s.score and s.score.standard_error]
    guess = max(
        _NOISE_SHARE * float(np.var(means, ddof=1)) if len(means) > 1 else 0.0,
        mean([error**2 for error in errors]) if errors else 0.0,
    )
    noise = seed_noise(_replicates(history), guess)
    one = noise.common + noise.residual
    weights = [np.array([1 / max(one + extra, 1e-300) for _, extra in runs]) for runs in values.values()]
    centres = np.array(
        [
            float(w @ [value for value, _ in runs]) / float(w.sum())
            for w, runs in zip(weights, values.values(), strict=True)
        ]
    )
    variances = np.array([1 / float(w.sum()) for w in weights])
    centres, variances = _shrunk(centres, variances)
    belief = Belief(tuple(values), centres, np.diag(variances))
    return Knowledge(belief, dict.fromkeys(values, one), sign)


def _shrunk(centres: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and variances given that the true means themselves are spread around their average."""
    if len(centres) < 3:
        return centres, variances
    spread = float(np.var(centres, ddof=1))
    between = max(spread - float(variances.mean()), _LEAST_BETWEEN * spread)
    if between == 0.0:
        return centres, variances
    share = between / (between + variances)
    return share * centres + (1 - share) * float(centres.mean()), share * variances


def _from_surrogate(space: Space, history: History, alone: Knowledge) -> Knowledge:
    """The surrogate's joint posterior; a configuration outside the space stays as its own runs have it."""
    fitted = surrogate_of(space, history)
    inside = {
        name: params
        for name in alone.belief.ids
        if (params := inside_params(space, history, name)) is not None
    }
    if fitted is None or not inside:
        return alone
    posterior = fitted.posterior(list(inside.values()))
    places = [alone.belief.ids.index(name) for name in inside]
    means, covariance = alone.belief.mean.copy(), alone.belief.covariance.copy()
    means[places] = posterior.mean
    covariance[np.ix_(places, places)] = posterior.covariance
    runs = zip(inside, map(float, fitted.run_variance(list(inside.values()))), strict=True)
    return Knowledge(
        Belief(alone.belief.ids, means, covariance), {**alone.run_variance, **dict(runs)}, alone.sign
    )


def surrogate_of(space: Space, history: History) -> "Surrogate | None":
    """The surrogate of these runs, all of them of the search; None where they are too few. Fitted once."""
    return _surrogate(Searched(space, history, True))


@lru_cache(maxsize=8)
def _surrogate(asked: Searched) -> "Surrogate | None":
    from leverl.tune.surrogate.from_history import measurements
    from leverl.tune.surrogate.model import fit

    return fit(asked.space.axes, measurements(asked.space, asked.history), seed=0)


def inside_params(space: Space, history: History, config_id: str) -> Params | None:
    """A configuration as a point of the space; None for a base that lies outside."""
    params = space.base_params() if config_id == BASE else history.params(config_id)
    return params if space.fill(params) is not None else None


def _replicates(history: History) -> list[tuple[str, int, float]]:
    """Scored runs before the confirmation. A configuration counts apart in the race, for what came before chose it."""
    return [
        (f"{state.run.config_id} {state.run.phase == RACE}", state.run.seed, state.score.mean)
        for state in history.runs
        if state.run.phase in (SEARCH, GRID, RACE) and state.scored and state.score is not None
    ]
