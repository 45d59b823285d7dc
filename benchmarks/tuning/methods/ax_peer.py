"""Ax with its defaults: a Sobol start, then BoTorch's models with the noise left to them."""

import logging
import warnings
from typing import Any

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from tasks.task import Task

from leverl.tune.model import Params

from .dimensions import Dimension, dimensions

_OBJECTIVE = "score"


class AxPeer:
    """An Ax client. The base is attached as a trial of its own; a failed run is marked as failed.

    Its recommendation is `get_best_parameterization`, by its model where it has one yet.
    """

    def __init__(self, task: Task, seed: int) -> None:
        _quiet()
        self._client = Client(random_seed=seed)
        self._client.configure_experiment(parameters=[_parameter(one) for one in dimensions(task)])
        self._client.configure_optimization(objective=_OBJECTIVE)
        self._base: Params | None = task.base
        self._asked = -1
        self._scored = False

    def ask(self) -> Params | None:
        if self._base is not None:
            params, self._base = dict(self._base), None
            self._asked = self._client.attach_trial(params)
            return params
        found: dict[int, Any] = self._client.get_next_trials(max_trials=1)
        for self._asked, params in found.items():
            return dict(params)
        return None

    def tell(self, score: float | None) -> None:
        if score is None:
            self._client.mark_trial_failed(self._asked)
            return
        self._client.complete_trial(self._asked, raw_data={_OBJECTIVE: score})  # no error given: inferred
        self._scored = True

    def recommend(self) -> Params | None:
        if not self._scored:
            return None
        params: dict[str, Any] = self._client.get_best_parameterization()[0]
        return params


def create(task: Task, seed: int) -> AxPeer:
    return AxPeer(task, seed)


def _parameter(one: Dimension) -> RangeParameterConfig | ChoiceParameterConfig:
    if not one.levels:
        scaling: Any = "log" if one.log else None
        return RangeParameterConfig(one.name, (one.low, one.high), "float", scaling=scaling)
    kinds = {type(level).__name__ for level in one.levels}
    kind: Any = kinds.pop() if len(kinds) == 1 else "float"
    return ChoiceParameterConfig(one.name, list(one.levels), kind, is_ordered=one.ordered)


def _quiet() -> None:
    """Neither a line for every trial nor numerical warnings."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"(ax|botorch|gpytorch|linear_operator)\b")
