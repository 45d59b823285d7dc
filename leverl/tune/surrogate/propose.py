"""What to run next, from measurements alone: no study, no history, no global state.

    log noisy expected improvement + log P(feasible) + prior weight * log prior - cost weight * log cost

Prior and cost fade as the budget is spent (piBO, Hvarfner et al. 2022, arXiv:2204.11051; cost cooling, Lee et al.
2020, arXiv:2003.10870); one proposal in seven does without the prior, should it be wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Key, key
from leverl.tune.surrogate.design import At, each_axis_alone, spread_out
from leverl.tune.surrogate.kernel import Floats
from leverl.tune.surrogate.measurement import Measurement
from leverl.tune.surrogate.model import Surrogate, fit
from leverl.tune.surrogate.replicate import MOST_RUNS, Gain, continued
from leverl.tune.surrogate.search import Admit, Climb

Candidates = Callable[[np.random.Generator, int], list[Params]]

POOL: Final = 512
"""Random candidates of a space that is not gone through."""

_PROMISING: Final = 5
_PRIOR_RUNS: Final = 6.0  # the prior's weight is 1 after so many runs, and falls like 1/runs
_WITHOUT_PRIOR: Final = 0.15
_STARTUP_SHARE: Final = 0.3  # of the budget, at most
_LEAST_CHANCE: Final = (0.5, 0.9)  # of a score: below, a run is proposed only if there is nothing else
_CAUTION: Final = 1.0  # how fast the least chance rises with the share of runs that failed
_VETO: Final = 1e3
_LEAST_GAIN: Final = 1e-3  # standard deviations of the scores: below, no replicate is worth a run


def propose(
    axes: Sequence[Axis],
    found: Sequence[Measurement],
    *,
    admit: Admit,
    candidates: Candidates,
    seed: int,
    n: int,
    spent: float = 0.0,
    counts_time: bool = False,
    replicates: bool = True,
    cells: Sequence[Params] | None = None,
    startup: int | None = None,
    at: At | None = None,
) -> list[Params]:
    """Up to `n` configurations to run now; fewer when a finite space is used up.

    Args:
        axes: the levers; any `Axis`, also one without a lever behind it.
        found: every run so far, the pending ones included (they are never proposed again).
        admit: the configuration without levers that have no effect; None where it cannot run.
        candidates: up to so many random configurations; only those that score well are asked whether they can run.
        seed: together with the number of runs in `found` it decides all chance.
        spent: share of the budget that is used up, between 0 and 1.
        counts_time: whether the budget counts what runs cost; then cheap ones are preferred, less as it is spent.
        replicates: whether a configuration that has a value may be proposed again (for another seed, or for the
            rest of a run that was stopped early).
        cells: all admissible configurations of a small finite space, scored instead of random candidates.
        startup: configurations of a space-filling design before the model decides; None: max(4, levers + 1).
        at: the configuration at a point of the unit cube, for that design; None: each axis by itself.
    """
    place = each_axis_alone(axes) if at is None else at
    asked = _Asked(
        tuple(axes), admit, candidates, seed, spent, counts_time, replicates, cells, startup, place
    )
    runs, proposals = list(found), []
    for _ in range(n):
        params = _next(asked, runs)
        if params is None:
            break
        proposals.append(params)
        runs.append(Measurement(params, None, 0.0, "pending"))
    return proposals


@dataclass(frozen=True)
class _Asked:
    axes: tuple[Axis, ...]
    admit: Admit
    candidates: Candidates
    seed: int
    spent: float
    counts_time: bool
    replicates: bool
    cells: Sequence[Params] | None
    startup: int | None
    at: At


def _next(asked: _Asked, runs: Sequence[Measurement]) -> Params | None:
    taken = {key(one.params) for one in runs}
    generator = np.random.default_rng([asked.seed, len(runs)])
    surrogate = None
    if not _starting(asked, len(taken)):
        surrogate = fit(asked.axes, runs, seed=asked.seed)
    if surrogate is None:
        design = spread_out(len(asked.axes), asked.at, asked.admit, taken, asked.seed)
        return design or _any(asked, taken, generator)
    return _modelled(asked, runs, surrogate, taken, generator)


def _starting(asked: _Asked, configurations: int) -> bool:
    size = max(4, len(asked.axes) + 1) if asked.startup is None else asked.startup
    return configurations < size and asked.spent < _STARTUP_SHARE


def _any(asked: _Asked, taken: set[Key], generator: np.random.Generator) -> Params | None:
    pool = asked.candidates(generator, POOL) if asked.cells is None else _shuffled(asked.cells, generator)
    admitted = (params for one in pool if (params := asked.admit(one)) is not None)
    return next((params for params in admitted if key(params) not in taken), None)


def _shuffled(cells: Sequence[Params], generator: np.random.Generator) -> list[Params]:
    return [cells[int(place)] for place in generator.permutation(len(cells))]


def _modelled(
    asked: _Asked,
    runs: Sequence[Measurement],
    surrogate: Surrogate,
    taken: set[Key],
    generator: np.random.Generator,
) -> Params | None:
    from leverl.tune.surrogate.acquisition import Improvement

    flying = {key(one.params): one.params for one in runs if one.state == "pending"}
    inside = [params for params in flying.values() if surrogate.encoding.contains(params)]
    improvement = Improvement(
        surrogate.process,
        surrogate.encoding.encode(inside),
        [group.allowed for group in surrogate.groups],
        int(generator.integers(2**31)),
    )
    prior_weight = 0.0 if generator.random() < _WITHOUT_PRIOR else min(1.0, _PRIOR_RUNS / len(runs))
    merit = _Merit(asked, surrogate, prior_weight, _least_chance(runs))

    def score(params: Sequence[Params]) -> Floats:
        x = surrogate.encoding.encode(params)
        return improvement(x) + merit.log(params, x)

    climb = Climb(asked.axes, score, asked.admit, taken, generator)
    if asked.cells is not None:
        new = climb.best_of(asked.cells)
    else:
        order = np.argsort(-surrogate.process.mean(surrogate.process.data.x), kind="stable")[:_PROMISING]
        promising = [surrogate.groups[int(place)].params for place in order]
        new = climb.best(asked.candidates(generator, POOL), promising)
    if not asked.replicates:
        return new
    return _again(surrogate, runs, set(flying), new, merit)


def _least_chance(runs: Sequence[Measurement]) -> float:
    """At a wall, a fair chance means that every other run fails: the more did, the less is dared."""
    failed = sum(one.state == "failed" for one in runs)
    low, high = _LEAST_CHANCE
    return min(low + _CAUTION * failed / len(runs), high)


@dataclass(frozen=True)
class _Merit:
    """What speaks for a configuration besides its expected improvement."""

    asked: _Asked
    surrogate: Surrogate
    prior_weight: float
    least_chance: float

    def log(self, params: Sequence[Params], x: Floats) -> Floats:
        chance = self.surrogate.feasibility.probability(x)
        feasible = np.log(np.maximum(chance, 1e-12)) - _VETO * np.maximum(self.least_chance - chance, 0.0)
        merit = feasible + self.prior_weight * self._log_prior(params)
        if self.asked.counts_time:
            merit -= (1.0 - min(max(self.asked.spent, 0.0), 1.0)) * self.surrogate.cost.log_cost(x)
        return np.asarray(merit)

    def _log_prior(self, params: Sequence[Params]) -> Floats:
        axes = [(axis, axis.prior) for axis in self.asked.axes if axis.prior is not None]
        return np.array(
            [
                sum(p.log_density(a.unit(one[a.name])) for a, p in axes if a.name in one) if axes else 0.0
                for one in params
            ]
        )


def _again(
    surrogate: Surrogate, runs: Sequence[Measurement], flying: set[Key], new: Params | None, merit: _Merit
) -> Params | None:
    """A known configuration if one more run of it is worth more than a run of `new`."""
    known = [group.params for group in surrogate.groups]
    params = known if new is None else [*known, new]
    x = surrogate.encoding.encode(params)
    gain = Gain(surrogate.process.mean(x), surrogate.process.covariance(x))
    noise = surrogate.standard_run_variance(params)
    weight = np.exp(merit.log(params, x))
    best, most = new, _LEAST_GAIN
    if new is not None:
        most = max(most, gain.of(len(params) - 1, float(noise[-1])) * float(weight[-1]))
    for place, group in enumerate(surrogate.groups):
        count = sum(key(one.params) == group.key for one in runs)
        if group.key in flying or count >= MOST_RUNS:
            continue
        variance = float(noise[place])
        if not any(group.finished):
            variance = continued(variance, float(group.variances.min()) / surrogate.outputs.scale**2)
        value = gain.of(place, variance) * float(weight[place])
        if value > most:
            best, most = group.params, value
    return best
