"""SMAC's HyperparameterOptimizationFacade: the one that its documentation names for stochastic objectives.

(Its BlackBoxFacade is documented for deterministic ones.) With deterministic=False its intensifier gives the best few
configurations further seeds, at most three by default; with deterministic=True, every configuration has one run.
It is told its budget, by which it sizes its initial design: a path for each.
"""

import tempfile
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, Configuration, ConfigurationSpace, Float, Integer
from smac import HyperparameterOptimizationFacade, Scenario
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from tasks.task import Task

from leverl.tune.model import Params

from .dimensions import Dimension, dimensions
from .method import TOLD, Reading, follow

_FAILED = 1.0  # what a failed run costs, `crash_cost`: as much as the lowest score

_RETRIES = 1000
"""By default it gives up after 16 proposals that it knows already, in small spaces long before it has seen them all."""


class SmacPeer:
    """Costs are 1 - score. A failed run is told as crashed; its recommendation is the incumbent."""

    def __init__(self, task: Task, seed: int, budget: int, *, deterministic: bool) -> None:
        self._dimensions = dimensions(task)
        space = ConfigurationSpace(seed=seed)
        space.add([_parameter(one) for one in self._dimensions])
        with tempfile.TemporaryDirectory() as folder:  # it writes its settings when it begins
            self._smac = _facade(
                space,
                self._encode(task.base),
                folder,
                n_trials=budget,
                seed=seed,
                deterministic=deterministic,
            )
        self._trial: TrialInfo | None = None

    def ask(self) -> Params | None:
        try:
            self._trial = self._smac.ask()
        except (StopIteration, ConfigurationSpaceExhaustedException):
            return None
        return self._decode(self._trial.config)

    def tell(self, score: float | None) -> None:
        if self._trial is None:
            raise RuntimeError("nothing was asked for.")
        status = StatusType.SUCCESS if score is not None else StatusType.CRASHED
        cost = _FAILED if score is None else 1.0 - score
        self._smac.tell(self._trial, TrialValue(cost=cost, status=status), save=False)

    def recommend(self) -> Params | None:
        found = self._smac.intensifier.get_incumbent()
        return None if found is None else self._decode(found)

    def _encode(self, params: Params) -> dict[str, Any]:
        return {
            one.name: one.place(params[one.name]) if _indexed(one) else params[one.name]
            for one in self._dimensions
        }

    def _decode(self, found: Configuration) -> Params:
        return {
            one.name: one.levels[int(found[one.name])] if _indexed(one) else _plain(found[one.name])
            for one in self._dimensions
        }


def read(task: Task, seed: int, *, deterministic: bool = False) -> list[Reading]:
    """A path for each budget."""

    def path(budget: int) -> list[Reading]:
        return follow(lambda: SmacPeer(task, seed, budget, deterministic=deterministic), task, (budget,))

    return [reading for budget in TOLD for reading in path(budget)]


def _facade(
    space: ConfigurationSpace, base: dict[str, Any], folder: str, **settings: Any
) -> HyperparameterOptimizationFacade:
    scenario = Scenario(
        space,
        crash_cost=_FAILED,
        output_directory=Path(folder),
        **settings,
    )
    first = HyperparameterOptimizationFacade.get_initial_design(
        scenario, additional_configs=[Configuration(space, values=base)]
    )

    def unused(config: Configuration, seed: int = 0) -> float:
        raise RuntimeError(f"{config}, seed {seed}: runs are asked for and told.")

    return HyperparameterOptimizationFacade(
        scenario,
        unused,
        initial_design=first,
        config_selector=HyperparameterOptimizationFacade.get_config_selector(scenario, retries=_RETRIES),
        overwrite=True,
        logging_level=False,
    )


def _indexed(one: Dimension) -> bool:
    return bool(one.levels) and one.ordered


def _parameter(one: Dimension) -> Any:
    if _indexed(one):
        return Integer(one.name, (0, len(one.levels) - 1))
    if one.levels:
        return Categorical(one.name, list(one.levels))
    return Float(one.name, (one.low, one.high), log=one.log)


def _plain(value: Any) -> Any:
    """A number or word of Python's own in place of NumPy's."""
    return value.item() if hasattr(value, "item") else value
