"""Optuna's CMA-ES, with its own defaults (Hansen 2016). It moves numbers; choices are drawn at random.

CMA-ES has a state, the distribution that it samples from. It is rebuilt by replaying the history: the sampler is asked
for every configuration in order and told what was run in its place.
"""

import optuna
from optuna.distributions import CategoricalDistribution

from leverl.errors import ConfigError
from leverl.plugins import CMAES
from leverl.tune.model import History, Params, Sampler
from leverl.tune.samplers._resolve import one_by_one
from leverl.tune.samplers._told import told, worst
from leverl.tune.samplers.optuna._study import create_study, silent, trials
from leverl.tune.space.space import Space


class OptunaCmaEs:
    """Pure: the state follows from the study's seed and the history."""

    name = "optuna CmaEsSampler"

    def __init__(self, seed: int) -> None:
        CMAES.require("for strategy optuna:cmaes")
        self._seed = seed

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` new configurations; fewer when a finite space is used up.

        Raises:
            ConfigError: no lever has a range, or nothing in it can run.
        """
        _check(space)

        def wanted(number: int, pending: list[Params]) -> Params:  # noqa: ARG001 - the replay counts anyway
            sampler = optuna.samplers.CmaEsSampler(seed=self._seed % 2**31, warn_independent_sampling=False)
            return _replay(space, history, pending, sampler)

        with silent():
            return one_by_one(space, history, n, self._seed, wanted)


def _replay(
    space: Space, history: History, pending: list[Params], sampler: optuna.samplers.BaseSampler
) -> Params:
    """The next suggestion after those for all configurations. CMA-ES knows no constraints: failures get the worst."""
    study = create_study(history, sampler)
    results = told(space, history, pending)
    lowest = worst(results, maximize=history.maximize)
    known = trials(space, history, pending, every_parameter=True)
    for result, trial in zip(results, known, strict=True):
        study.enqueue_trial(trial.params)
        asked = study.ask(space.distributions())
        if not result.running:
            study.tell(asked, lowest if result.infeasible else result.value)
    return space.decode(study.ask(space.distributions()).params)


def _check(space: Space) -> None:
    if all(isinstance(found, CategoricalDistribution) for found in space.distributions().values()):
        raise ConfigError(
            f"strategy optuna:cmaes moves numbers in a range {{min, max}}, and {', '.join(a.name for a in space.axes)} "
            "have lists of values. Give at least one a range, or choose strategy: optuna:tpe."
        )


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed.

    Raises:
        EnvironmentProblem: the package cmaes is not installed.
    """
    return OptunaCmaEs(seed)
