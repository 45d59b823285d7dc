"""Ax, with its own defaults: the centre and a Sobol sequence, then BoTorch's noisy expected improvement.

A failure is told with the worst value so far: what Ax calls a failed trial tells its model nothing.
"""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from leverl.plugins import AX
from leverl.tune.model import History, Params, ParamValue, Sampler
from leverl.tune.samplers._resolve import one_by_one
from leverl.tune.samplers._told import Told, told, worst
from leverl.tune.space.axis import Axis, same
from leverl.tune.space.space import SWITCH, Space

_OBJECTIVE: Final = "score"
_INITIAL: Final = 5
"""Trials before Ax's model, the base among them."""

_PAIR: Final = 2  # values, in whichever order


class AxSampler:
    """Pure: a new Client for each suggestion, seeded by the study and the number of configurations so far."""

    name = "Ax"

    def __init__(self, seed: int) -> None:
        with _quiet():
            AX.require("for strategy ax")
        self._seed = seed

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` new configurations; fewer when a finite space is used up.

        Raises:
            ConfigError: nothing in the space can run.
        """

        def wanted(number: int, pending: list[Params]) -> Params:
            if number < _INITIAL:
                client = self._client(space, history, self._seed, with_model=False)
                proposed = client.get_next_trials(max_trials=number)
                return _decode(space, proposed[max(proposed)])
            client = self._client(space, history, self._seed * 1_000_003 + number, with_model=True)
            results = told(space, history, pending)
            for result in results:
                _tell(client, space, result, worst(results, maximize=history.maximize))
            (found,) = client.get_next_trials(max_trials=1).values()
            return _decode(space, found)

        with _quiet():
            return one_by_one(space, history, n, self._seed, wanted)

    def _client(self, space: Space, history: History, seed: int, *, with_model: bool) -> Any:
        client: Any = import_module("ax.api.client").Client(random_seed=seed % 2**31)
        client.configure_experiment(parameters=[part for axis in space.axes for part in _parameters(axis)])
        client.configure_optimization(objective=_OBJECTIVE if history.maximize else f"-{_OBJECTIVE}")
        client.configure_generation_strategy(
            initialization_budget=_INITIAL,
            initialization_random_seed=seed % 2**31,
            initialize_with_center=not with_model,
            allow_exceeding_initialization_budget=True,  # runs go side by side
        )
        return client


def _parameters(axis: Axis) -> Iterator[Any]:
    """The axis in Ax's words; the value beside a range becomes a switch."""
    words: Any = import_module("ax.api.configs")
    if axis.other is not None:
        yield words.ChoiceParameterConfig(axis.name + SWITCH, [False, True], "bool", is_ordered=True)
    if axis.kind == "categorical":
        ordered = axis.ordered or len(axis.values) == _PAIR
        yield words.ChoiceParameterConfig(axis.name, list(axis.values), _type(axis.values), ordered)
    elif axis.scale == "logit":
        yield words.RangeParameterConfig(axis.name, (0.0, 1.0), "float")  # of the position
    elif axis.scale == "pow2":
        yield words.ChoiceParameterConfig(axis.name, list(_levels(axis)), "int", is_ordered=True)
    else:
        yield words.RangeParameterConfig(
            axis.name,
            (axis.low, axis.high),
            "int" if axis.kind == "int" else "float",
            step_size=axis.step,
            scaling="log" if axis.scale == "log" else None,
        )


def _encode(space: Space, params: Params) -> dict[str, ParamValue]:
    """A value for every parameter: Ax knows none without effect. One switched off sits at the low end."""
    full = space.fill(params) or {}
    found: dict[str, ParamValue] = {}
    for axis in space.axes:
        value = full[axis.name]
        if axis.other is not None:
            on = not same(value, axis.other)
            found[axis.name + SWITCH] = on
            value = value if on else axis.low
        found[axis.name] = axis.position(value) if axis.scale == "logit" else value
    return found


def _decode(space: Space, found: Any) -> Params:
    return {axis.name: _value(axis, found) for axis in space.axes}


def _value(axis: Axis, found: Any) -> ParamValue:
    if axis.other is not None and not found[axis.name + SWITCH]:
        return axis.other
    value: ParamValue = found[axis.name]
    if axis.scale == "logit":
        return axis.value(float(value))
    snapped = axis.snap(value)
    return value if snapped is None else snapped


def _tell(client: Any, space: Space, result: Told, lowest: float) -> None:
    index = client.attach_trial(_encode(space, result.params))
    if not result.running:
        value = lowest if result.infeasible else result.value
        client.complete_trial(index, raw_data={_OBJECTIVE: value})  # no error: Ax estimates the noise


def _levels(axis: Axis) -> tuple[ParamValue, ...]:
    """The values of a countable range, in order."""
    return axis.choices() if axis.other is None else axis.choices()[1:]


def _type(values: tuple[ParamValue, ...]) -> str:
    kinds = {type(value).__name__ for value in values}
    return kinds.pop() if len(kinds) == 1 else "str"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Neither Ax's line for every trial (its loggers have levels of their own) nor its numerical warnings."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.INFO))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"(ax|botorch|gpytorch|linear_operator)\b")
            yield
    finally:
        logging.disable(before)


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed.

    Raises:
        EnvironmentProblem: the package ax-platform is not installed.
    """
    return AxSampler(seed)
