"""Optuna's trials as measurements: replicates, failures, pruned and running trials included."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leverl.tune.bridge.parameters import Parameter
from leverl.tune.model import Params, ParamValue
from leverl.tune.statistics import mean, sample_variance
from leverl.tune.surrogate.measurement import Measurement

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

PROPOSED: Final = "leverl:proposed"
"""System attribute of a trial: the parameters proposed for it, of which it may not have asked for all yet."""

STANDARD_ERROR: Final = "standard_error"
"""User attribute of a trial: the standard error of its value, where the objective knows it."""

_ENQUEUED: Final = "fixed_params"  # Optuna's name
_LEAST_CURVES: Final = 3


@dataclass(frozen=True)
class Curves:
    """How far final values lie from intermediate ones, learnt from complete trials that reported both."""

    complete: tuple["FrozenTrial", ...]

    @property
    def _finals(self) -> list[tuple["FrozenTrial", float]]:
        return [
            (trial, trial.value)
            for trial in self.complete
            if trial.value is not None and math.isfinite(trial.value)
        ]

    def final(self, step: int, value: float) -> tuple[float, float] | None:
        """Mean and variance of the final value of a trial with `value` at `step`; None where nothing is known.

        With less than three curves to learn from: the value itself, with the variance of all final values.
        """
        rises = [final - at for trial, final in self._finals if (at := _at(trial, step)) is not None]
        if len(rises) >= _LEAST_CURVES:
            return value + mean(rises), sample_variance(rises) * (1 + 1 / len(rises))
        finals = [final for _, final in self._finals]
        return (value, sample_variance(finals)) if len(finals) > 1 else None


def measurements(
    trials: Sequence["FrozenTrial"], parameters: Mapping[str, Parameter], *, maximize: bool
) -> list[Measurement]:
    """What is known. Trials outside the present ranges, and such that say nothing, are left out.

    A trial that failed, or whose value is infinite, says that its parameters do not work.
    """
    from optuna.trial import TrialState

    curves = Curves(tuple(trial for trial in trials if trial.state == TrialState.COMPLETE))
    found: list[Measurement] = []
    for trial in trials:
        params = encoded(trial, parameters)
        one = _measurement(trial, params, curves, 1.0 if maximize else -1.0) if params else None
        if one is not None:
            found.append(one)
    return found


def encoded(trial: "FrozenTrial", parameters: Mapping[str, Parameter]) -> Params | None:
    """The trial's parameters as values of their axes; None where one lies outside.

    A trial that runs, or failed, may not have asked for all of its parameters: what was planned for it counts.
    """
    from optuna.trial import TrialState

    planned: dict[str, ParamValue] = {}
    known: dict[str, Any] = dict(trial.params)
    if trial.state in (TrialState.RUNNING, TrialState.FAIL):
        planned = json.loads(trial.system_attrs.get(PROPOSED, "{}"))
        known = {**trial.system_attrs.get(_ENQUEUED, {}), **known}
    found = {name: planned[name] for name in parameters if name in planned}
    for name in parameters.keys() & known.keys():
        inside = parameters[name].encode(known[name])
        if inside is None:
            return None
        found[name] = inside
    return found if all(parameters[name].axis.contains(value) for name, value in found.items()) else None


def _measurement(trial: "FrozenTrial", params: Params, curves: Curves, sign: float) -> Measurement | None:
    from optuna.trial import TrialState

    if trial.state == TrialState.RUNNING:
        return Measurement(params, None, 0.0, "pending")
    allowed = all(value <= 0 for value in trial.constraints.values())
    if trial.state == TrialState.COMPLETE and trial.value is not None and math.isfinite(trial.value):
        variance = _known_variance(trial)
        return Measurement(params, sign * trial.value, variance, "finished", allowed=allowed)
    if trial.state == TrialState.PRUNED:
        step = trial.last_step
        if step is None:
            return None
        last = trial.intermediate_values[step]
        if math.isfinite(last):
            predicted = curves.final(step, last)
            return predicted and Measurement(
                params, sign * predicted[0], predicted[1], "predicted", allowed=allowed
            )
    if trial.state == TrialState.WAITING:
        return None
    return Measurement(params, None, 0.0, "failed")


def _known_variance(trial: "FrozenTrial") -> float:
    error = trial.user_attrs.get(STANDARD_ERROR)
    return error**2 if isinstance(error, int | float) and math.isfinite(error) else 0.0


def _at(trial: "FrozenTrial", step: int) -> float | None:
    """The last finite value that the trial reported up to `step`."""
    steps = [one for one, value in trial.intermediate_values.items() if one <= step and math.isfinite(value)]
    return trial.intermediate_values[max(steps)] if steps else None
