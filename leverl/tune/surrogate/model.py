"""The surrogate: what the runs so far say of every configuration's true mean score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import key
from leverl.tune.surrogate import gp
from leverl.tune.surrogate.cost import CostModel, cost_model
from leverl.tune.surrogate.encoding import Encoding
from leverl.tune.surrogate.feasibility import Feasibility, feasibility
from leverl.tune.surrogate.groups import Group, floored, grouped, has_value
from leverl.tune.surrogate.importance import Interval, total_effects
from leverl.tune.surrogate.kernel import Floats
from leverl.tune.surrogate.measurement import Measurement
from leverl.tune.surrogate.noise import Noise, Scatter, SeedVariance, in_score_units, seed_variance
from leverl.tune.surrogate.outputs import Outputs, outputs

FEWEST: Final = 3
"""Configurations with a value below which there is no surrogate."""

_LEAST_VARIANCE: Final = 1e-6  # of a standardised mean
_FIRST_GUESS: Final = 0.1  # of the standardised noise; only weighs runs of unequal known variance


@dataclass(frozen=True)
class Posterior:
    """Of the true mean scores of `n` configurations, in units of the values."""

    mean: Floats  # [n]
    covariance: Floats  # [n, n]


@dataclass(frozen=True)
class LeftOut:
    """A configuration as predicted by all others."""

    params: Params
    observed: float  # mean over its runs
    predicted: float
    sd: float  # of the observed mean, noise included


@dataclass(frozen=True)
class Surrogate:
    """A Gaussian process over configurations, with its noise, feasibility and cost. Made by `fit`."""

    noise: Noise
    encoding: Encoding = field(repr=False)
    groups: tuple[Group, ...] = field(repr=False)
    process: gp.Process = field(repr=False)  # standardised
    outputs: Outputs = field(repr=False)
    seeds: SeedVariance = field(repr=False)  # standardised
    evaluation: float = field(repr=False)  # usual known variance of a finished run, standardised
    feasibility: Feasibility = field(repr=False)
    cost: CostModel = field(repr=False)

    def posterior(self, params: Sequence[Params]) -> Posterior:
        """Of the true mean scores.

        Raises:
            ConfigError: a value lies outside its axis.
        """
        x = self.encoding.encode(params)
        return Posterior(
            self.outputs.back(self.process.mean(x)), self.process.covariance(x) * self.outputs.scale**2
        )

    def run_variance(self, params: Sequence[Params]) -> Floats:
        """[n]: variance of one run's score around its configuration's true mean."""
        return self.standard_run_variance(params) * self.outputs.scale**2

    def standard_run_variance(self, params: Sequence[Params]) -> Floats:
        """The same, standardised."""
        means = self.process.mean(self.encoding.encode(params))
        return self.seeds.at(means, [key(one) for one in params]) + self.evaluation

    def feasible(self, params: Sequence[Params]) -> Floats:
        """[n]: probability that a run gives a score and keeps the study's bounds; 1.0 while all runs did."""
        return self.feasibility.probability(self.encoding.encode(params))

    def leave_one_out(self) -> tuple[LeftOut, ...]:
        """Every configuration predicted by all others, with the hyperparameters of all."""
        means, variances = self.process.leave_one_out()
        predicted, scale = self.outputs.back(means), self.outputs.scale
        return tuple(
            LeftOut(group.params, float(group.values.mean()), float(mean), float(np.sqrt(variance)) * scale)
            for group, mean, variance in zip(self.groups, predicted, variances, strict=True)
        )

    def importance(self, *, draws: int, seed: int) -> Mapping[str, Interval]:
        """Lever → its total effect: the share of the variance over the space that it takes part in.

        Median and 90 % interval over `draws` functions drawn from the posterior (Sobol' indices, Jansen 1999).
        """
        return total_effects(self.encoding, self.process, draws=draws, seed=seed)


def fit(axes: Sequence[Axis], found: Sequence[Measurement], *, seed: int) -> Surrogate | None:  # noqa: ARG001
    """The surrogate; None below FEWEST configurations with a value. Values outside the axes are left out.

    The fit is deterministic; `seed` is there for fits that are not.
    """
    encoding = Encoding(tuple(axes))
    inside = floored([one for one in found if encoding.contains(one.params)])
    groups = grouped(inside)
    if len(groups) < FEWEST:
        return None
    out = _outputs(groups)
    standard = [_standardised(group, out) for group in groups]
    x = encoding.encode([group.params for group in groups])
    process, seeds = _process(x, standard, len(axes))
    evaluation = _usual_evaluation(standard)
    over = [one for one in inside if one.state != "pending"]
    runs = encoding.encode([one.params for one in over])
    return Surrogate(
        noise=in_score_units(seeds, evaluation, _spread(standard, process.variances), out),
        encoding=encoding,
        groups=tuple(groups),
        process=process,
        outputs=out,
        seeds=seeds,
        evaluation=evaluation,
        feasibility=feasibility(runs, [has_value(one) and one.allowed for one in over], len(axes)),
        cost=cost_model(runs, np.array([np.nan if one.cost is None else one.cost for one in over])),
    )


def _process(x: Floats, groups: Sequence[Group], levers: int) -> tuple[gp.Process, SeedVariance]:
    """First with one noise for all, inferred; where there are replicates, again with the noise they show."""
    pooled = np.array([group.pooled(_FIRST_GUESS) for group in groups])
    squares = [_scatter(group, 0.0) for group in groups]
    replicated = [one for one in squares if one is not None]
    data = gp.Data(
        x=x,
        y=pooled[:, 0],
        fixed=np.maximum(pooled[:, 1], _LEAST_VARIANCE),
        free=pooled[:, 2],
        levers=levers,
        degrees=float(sum(one.degrees for one in replicated)),
        squares=sum(max(one.squares - one.degrees * one.evaluation, 0.0) for one in replicated),
    )
    first = gp.fit(data)
    if not replicated:
        return first, SeedVariance(first.hyper.noise, 0)
    means = first.mean(x)
    known = [_scatter(group, mean) for group, mean in zip(groups, means, strict=True)]
    seeds = seed_variance([one for one in known if one is not None], first.hyper.noise)
    variances = seeds.at(means, [group.key for group in groups])
    seen = np.array([group.pooled(v) for group, v in zip(groups, variances, strict=True)])
    total = np.maximum(seen[:, 1] + seen[:, 2] * variances, _LEAST_VARIANCE)
    again = replace(
        data, y=seen[:, 0], fixed=total, free=np.zeros(len(x)), noise=0.0, degrees=0.0, squares=0.0
    )
    return gp.fit(again, first.hyper), seeds


def _outputs(groups: Sequence[Group]) -> Outputs:
    values = np.concatenate([group.values for group in groups])
    weights = np.concatenate([np.full(len(group.values), 1.0 / len(group.values)) for group in groups])
    return outputs(values, weights)


def _standardised(group: Group, out: Outputs) -> Group:
    return replace(group, values=out.forward(group.values), variances=group.variances / out.scale**2)


def _scatter(group: Group, mean: float) -> Scatter | None:
    """Replicates; runs that were stopped early say little of the seeds."""
    whole = np.array(group.finished)
    if whole.sum() < 2:
        return None
    values = group.values[whole]
    return Scatter(
        group.key,
        float(mean),
        len(values) - 1,
        float(((values - values.mean()) ** 2).sum()),
        float(group.variances[whole].mean()),
    )


def _usual_evaluation(groups: Sequence[Group]) -> float:
    known = [v for group in groups for v, whole in zip(group.variances, group.finished, strict=True) if whole]
    return float(np.mean(known)) if known else 0.0


def _spread(groups: Sequence[Group], variances: Floats) -> float:
    """Variance of the true means, standardised: of the observed ones, less their noise."""
    means = np.array([float(group.values.mean()) for group in groups])
    return max(float(means.var(ddof=1)) - float(variances.mean()), 0.0)
