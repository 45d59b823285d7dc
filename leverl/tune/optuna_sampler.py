"""leverl's sampler for anybody's Optuna study: `optuna.create_study(sampler=LeverlSampler())`."""

import itertools
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.samplers._base import _process_constraints_after_trial
from optuna.trial import FrozenTrial, TrialState

from leverl.errors import ConfigError
from leverl.tune.bridge.conditions import Condition, active, learn_conditions
from leverl.tune.bridge.parameters import Parameter, parameters
from leverl.tune.bridge.trials import PROPOSED, encoded, measurements
from leverl.tune.model import Params
from leverl.tune.space.space import key
from leverl.tune.statistics import mean
from leverl.tune.surrogate.measurement import Measurement

_ENUMERABLE: Final = 1024
"""Finite spaces up to this size are gone through instead of drawn from."""

_MOST_DRAWS: Final = 4
"""Draws per candidate, of which some lie outside the present ranges."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Threads of one study must see each other's proposals."""


class LeverlSampler(BaseSampler):
    """Bayesian optimisation that knows noise, replicates and failures, for one objective.

    A Gaussian process over all parameters seen so far, conditional ones included, whose noise is estimated from
    repeated trials; noisy expected improvement, times the probability that a trial works at all. Trials in state
    FAIL, and those that broke a constraint, teach it where trials do not work. Pruned trials count with what their
    last intermediate value predicts, running ones as pending.

    Args:
        seed: of all chance; the same seed and the same trials give the same proposal. None: a new one.
        n_startup_trials: different configurations of a space-filling design before the model proposes; None: one
            more than there are parameters, at least 4.
        replicates: whether a configuration may be proposed again, to learn more about it. Switch it off for an
            objective without noise.
        independent_sampler: for parameters that no earlier trial has had; None: random.
        constraints_func: as for Optuna's own samplers; `trial.set_constraint` needs none.

    Raises:
        ConfigError: (a ValueError) when asked in a study with several objectives.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int | None = None,
        replicates: bool = True,
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        self._seed = _entropy() if seed is None else seed
        self._startup = n_startup_trials
        self._replicates = replicates
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._constraints_func = constraints_func

    def reseed_rng(self) -> None:
        """Called by Optuna in each of several workers."""
        self._seed = _entropy()
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters that earlier trials asked for, with their latest ranges."""
        return _latest(_others(study, trial))

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for those parameters of `search_space` that the trial is expected to ask for."""
        _refuse_several_objectives(study)
        if not search_space:
            return {}
        with _ONE_AT_A_TIME:
            others = _others(study, trial)
            known = parameters(_seen(others), search_space)
            params = self._propose(study, trial, others, known)
            study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, json.dumps(dict(params)))
        return {name: known[name].decode(value) for name, value in params.items()}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a parameter that was not foreseen."""
        _refuse_several_objectives(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Writes down what `constraints_func` says."""
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        self._independent.after_trial(study, trial, state, values)

    def recommend(self, study: optuna.Study) -> FrozenTrial:
        """A complete trial with the parameters to use: those with the best posterior mean.

        `study.best_trial` is the luckiest value of a noisy objective; this is not misled by a single one.

        Raises:
            ConfigError: no trial is complete and keeps the constraints, or there are several objectives.
        """
        from leverl.tune.surrogate.model import fit

        _refuse_several_objectives(study)
        trials = study.get_trials(deepcopy=False)
        known = parameters(_seen(trials), _latest(trials))
        found = measurements(trials, known, maximize=_maximizes(study))
        good = {key(one.params): one.params for one in found if one.state == "finished" and one.allowed}
        if not good:
            raise ConfigError(f"study '{study.study_name}' has no complete trial that keeps its constraints.")
        surrogate = fit([parameter.axis for parameter in known.values()], found, seed=self._seed)
        if surrogate is None:
            means = [_mean(found, params) for params in good.values()]
        else:
            means = [float(value) for value in surrogate.posterior(list(good.values())).mean]
        best = list(good)[means.index(max(means))]
        complete = (trial for trial in trials if trial.state == TrialState.COMPLETE)
        return next(trial for trial in complete if key(encoded(trial, known) or {}) == best)

    def _propose(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        others: Sequence[FrozenTrial],
        known: Mapping[str, Parameter],
    ) -> Params:
        from leverl.tune.surrogate.propose import propose

        space = _Space(known, _conditions(others, known))
        proposals = propose(
            [parameter.axis for parameter in known.values()],
            measurements(others, known, maximize=_maximizes(study)),
            admit=space.admit,
            candidates=space.candidates,
            cells=space.cells(),
            seed=self._seed,
            n=1,
            replicates=self._replicates,
            startup=self._startup,
        )
        if proposals:
            return proposals[0]
        return space.any(np.random.default_rng([self._seed, trial.number]))  # all have run, or are running


class _Space:
    """What may be proposed now."""

    def __init__(self, known: Mapping[str, Parameter], conditions: Mapping[str, Condition]) -> None:
        self._known = known
        self._conditions = conditions

    def admit(self, params: Params) -> Params | None:
        """`params` as far as they will be asked for; None outside the present ranges."""
        if not all(self._known[name].allowed.contains(value) for name, value in params.items()):
            return None
        return active(params, self._conditions)

    def any(self, generator: np.random.Generator) -> Params:
        """A random configuration, whether it has run or not."""
        drawn = {p.name: p.allowed.at(generator.random()) for p in self._known.values()}
        return active(drawn, self._conditions)

    def candidates(self, generator: np.random.Generator, n: int) -> list[Params]:
        axes = [parameter.allowed for parameter in self._known.values()]
        draws = ({axis.name: axis.at(generator.random()) for axis in axes} for _ in range(_MOST_DRAWS * n))
        admitted = (found for params in draws if (found := self.admit(params)) is not None)
        return list(itertools.islice(admitted, n))

    def cells(self) -> list[Params] | None:
        """All configurations of a small finite space."""
        axes = [parameter.allowed for parameter in self._known.values()]
        counts = [axis.count for axis in axes]
        if None in counts or math.prod(count or 0 for count in counts) > _ENUMERABLE:
            return None
        found: dict[Any, Params] = {}
        for values in itertools.product(*(axis.choices() for axis in axes)):
            params = self.admit({axis.name: value for axis, value in zip(axes, values, strict=True)})
            if params is not None:
                found.setdefault(key(params), params)
        return list(found.values())


def _others(study: optuna.Study, trial: FrozenTrial) -> list[FrozenTrial]:
    """The trials of the study but this one, in order of start."""
    return [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]


def _latest(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The latest range of every parameter that has more than one value."""
    found: dict[str, BaseDistribution] = {}
    for trial in trials:
        found |= trial.distributions
    return {name: found[name] for name in sorted(found) if not found[name].single()}


def _seen(trials: Sequence[FrozenTrial]) -> dict[str, list[BaseDistribution]]:
    """All ranges that each parameter has had."""
    found: dict[str, list[BaseDistribution]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            ranges = found.setdefault(name, [])
            if distribution not in ranges:
                ranges.append(distribution)
    return found


def _conditions(trials: Sequence[FrozenTrial], known: Mapping[str, Parameter]) -> dict[str, Condition]:
    """From trials that ran to their end: others may have stopped before they asked for everything."""
    over = (TrialState.COMPLETE, TrialState.PRUNED)
    asked = [encoded(trial, known) for trial in trials if trial.state in over]
    counts = {name: parameter.axis.count for name, parameter in known.items()}
    return learn_conditions(
        [params for params in asked if params],
        {name: count for name, count in counts.items() if count is not None},
    )


def _mean(found: Sequence[Measurement], params: Params) -> float:
    return mean([one.value for one in found if one.value is not None and key(one.params) == key(params)])


def _maximizes(study: optuna.Study) -> bool:
    return study.direction == optuna.study.StudyDirection.MAXIMIZE


def _refuse_several_objectives(study: optuna.Study) -> None:
    if len(study.directions) > 1:
        raise ConfigError(
            f"LeverlSampler optimises one objective, and study '{study.study_name}' has {len(study.directions)}. Make "
            "all but one a constraint (trial.set_constraint), or use optuna.samplers.TPESampler or NSGAIISampler."
        )


def _entropy() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])
