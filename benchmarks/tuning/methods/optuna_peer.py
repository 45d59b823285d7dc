"""Optuna's samplers with their defaults, and what `study.best_trial` says: the highest single score."""

from typing import Literal

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import Trial, TrialState
from tasks.task import Task

from leverl.tune.model import Params

from .dimensions import Dimension, dimensions

SamplerName = Literal["random", "tpe", "gp"]


class OptunaPeer:
    """A study in memory. A failed run is told as FAIL, which is how Optuna records one."""

    def __init__(self, task: Task, seed: int, sampler: SamplerName) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._dimensions = dimensions(task)
        self._distributions = {one.name: _distribution(one) for one in self._dimensions}
        self._study = optuna.create_study(direction="maximize", sampler=_sampler(sampler, seed))
        self._study.enqueue_trial(
            {
                one.name: one.place(task.base[one.name]) if _indexed(one) else task.base[one.name]
                for one in self._dimensions
            }
        )
        self._trial: Trial | None = None

    def ask(self) -> Params | None:
        self._trial = self._study.ask(self._distributions)
        return self._params(self._trial.params)

    def tell(self, score: float | None) -> None:
        if self._trial is None:
            raise RuntimeError("nothing was asked for.")
        state = TrialState.COMPLETE if score is not None else TrialState.FAIL
        self._study.tell(self._trial, score, state)

    def recommend(self) -> Params | None:
        complete = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return self._params(self._study.best_trial.params) if complete else None

    def _params(self, found: Params) -> Params:
        return {
            one.name: one.levels[int(found[one.name])] if _indexed(one) else found[one.name]
            for one in self._dimensions
        }


def create(task: Task, seed: int, sampler: SamplerName) -> OptunaPeer:
    return OptunaPeer(task, seed, sampler)


def _sampler(name: SamplerName, seed: int) -> optuna.samplers.BaseSampler:
    if name == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.GPSampler(seed=seed)


def _indexed(one: Dimension) -> bool:
    """Whether Optuna knows the place of a level in place of its value."""
    return bool(one.levels) and one.ordered


def _distribution(one: Dimension) -> BaseDistribution:
    if _indexed(one):
        return IntDistribution(0, len(one.levels) - 1)
    if one.levels:
        return CategoricalDistribution(list(one.levels))
    return FloatDistribution(one.low, one.high, log=one.log)
