"""Hyperopt's tree-structured Parzen estimator, with its own defaults: twenty random trials first.

Bergstra et al. 2011. Hyperopt itself counts trials that failed or still run among the bad ones.
"""

import math
from types import ModuleType
from typing import Any

import numpy as np

from leverl.plugins import HYPEROPT
from leverl.tune.model import History, Params, ParamValue, Sampler
from leverl.tune.samplers._resolve import one_by_one
from leverl.tune.samplers._told import Told, told
from leverl.tune.space.axis import Axis, same
from leverl.tune.space.space import SWITCH, Space


class HyperoptTPE:
    """Pure: Hyperopt's function for one suggestion, seeded by the study and the number of configurations so far."""

    name = "hyperopt TPE"

    def __init__(self, seed: int) -> None:
        self._hyperopt = HYPEROPT.require("for strategy hyperopt:tpe")
        self._seed = seed

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` new configurations; fewer when a finite space is used up.

        Raises:
            ConfigError: nothing in the space can run.
        """

        def wanted(number: int, pending: list[Params]) -> Params:
            results = told(space, history, pending)
            return self._ask(space, results, maximize=history.maximize, number=number)

        return one_by_one(space, history, n, self._seed, wanted)

    def _ask(self, space: Space, results: list[Told], *, maximize: bool, number: int) -> Params:
        tree = {axis.name: _node(self._hyperopt.hp, axis) for axis in space.axes}
        domain = self._hyperopt.base.Domain(None, tree)
        documents = [
            _document(self._hyperopt, space, result, place, maximize=maximize)
            for place, result in enumerate(results)
        ]
        trials = self._hyperopt.trials_from_docs(documents)
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        (found,) = self._hyperopt.tpe.suggest([len(documents)], domain, trials, seed)
        labels: dict[str, list[Any]] = found["misc"]["vals"]
        return {axis.name: _value(axis, labels) for axis in space.axes}


def _node(hp: Any, axis: Axis) -> Any:
    """The axis in Hyperopt's words."""
    if axis.kind == "categorical":
        return hp.choice(axis.name, list(axis.values))
    if axis.scale == "log" and axis.kind == "int":
        node = hp.qloguniform(axis.name, math.log(axis.low), math.log(axis.high), 1)
    elif axis.finite:
        node = hp.uniformint(axis.name, 0, len(_levels(axis)) - 1)
    else:
        node = hp.uniform(axis.name, 0, 1)  # of the position: linear in the axis's scale
    return node if axis.other is None else hp.choice(axis.name + SWITCH, [axis.other, node])


def _labels(axis: Axis, value: ParamValue) -> dict[str, float]:
    """A value in Hyperopt's words."""
    if axis.kind == "categorical":
        return {axis.name: next(n for n, choice in enumerate(axis.values) if same(choice, value))}
    if axis.other is not None and same(value, axis.other):
        return {axis.name + SWITCH: 0}
    switch = {} if axis.other is None else {axis.name + SWITCH: 1}
    if axis.scale == "log" and axis.kind == "int":
        return {**switch, axis.name: float(value)}
    if axis.finite:
        return {
            **switch,
            axis.name: float(np.argmin([axis.distance(value, level) for level in _levels(axis)])),
        }
    return {**switch, axis.name: axis.position(value)}


def _value(axis: Axis, labels: dict[str, list[Any]]) -> ParamValue:
    """The other way round; without its label a lever takes the value beside its range."""
    if axis.other is not None and not labels[axis.name + SWITCH][0]:
        return axis.other
    found = float(labels[axis.name][0])
    if axis.kind == "categorical":
        return axis.values[int(found)]
    if axis.scale == "log" and axis.kind == "int":
        return min(max(round(found), int(axis.low)), int(axis.high))
    return _levels(axis)[int(found)] if axis.finite else axis.value(found)


def _levels(axis: Axis) -> tuple[ParamValue, ...]:
    """The values of a countable range, in order."""
    return axis.choices() if axis.other is None else axis.choices()[1:]


def _document(
    hyperopt: ModuleType, space: Space, result: Told, place: int, *, maximize: bool
) -> dict[str, Any]:
    """A trial as Hyperopt stores it."""
    labels: dict[str, float] = {}
    for axis in space.axes:
        if axis.name in result.params:
            labels |= _labels(axis, result.params[axis.name])
    every = [name for axis in space.axes for name in (axis.name, axis.name + SWITCH)]
    misc = {
        "tid": place,
        "cmd": ("domain_attachment", "FMinIter_Domain"),
        "workdir": None,
        "idxs": {name: [place] if name in labels else [] for name in every},
        "vals": {name: [labels[name]] if name in labels else [] for name in every},
    }
    outcome: dict[str, Any] = {"status": hyperopt.STATUS_FAIL if result.infeasible else hyperopt.STATUS_NEW}
    if result.value is not None and not result.infeasible:
        loss = -result.value if maximize else result.value
        outcome = {"status": hyperopt.STATUS_OK, "loss": loss}
    (document,) = hyperopt.Trials().new_trial_docs([place], [None], [outcome], [misc])
    document["state"] = hyperopt.JOB_STATE_RUNNING if result.running else hyperopt.JOB_STATE_DONE
    found: dict[str, Any] = document
    return found


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed.

    Raises:
        EnvironmentProblem: the package hyperopt is not installed.
    """
    return HyperoptTPE(seed)
