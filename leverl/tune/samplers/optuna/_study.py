"""A study of Optuna made from a history, for its samplers to be asked.

Runs that failed are told with the worst value seen and a violated constraint: Optuna's samplers ignore trials in state
FAIL, and would propose failing regions again and again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from leverl.tune.model import History, Params, ParamValue
from leverl.tune.optuna_log import quiet_optuna
from leverl.tune.samplers._told import Told, told, worst
from leverl.tune.space.space import SWITCH, Space

_CONSTRAINT: Final = "can run and keeps the bounds"


@contextmanager
def silent() -> Iterator[None]:
    """Only Optuna's errors are logged inside: TPE warns wherever a trial lacks a parameter, which is meant here."""
    with quiet_optuna():
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        yield


def seed_of(seed: int, number: int) -> int:
    """The seed for suggestion `number` of a study with this seed."""
    return (seed * 1_000_003 + number) % 2**31


def trials(
    space: Space, history: History, pending: Sequence[Params], *, every_parameter: bool
) -> list[FrozenTrial]:
    """One trial per configuration inside the space: COMPLETE, or RUNNING.

    Args:
        every_parameter: whether a lever without effect gets a value nevertheless, for samplers that leave
            parameters to chance once a trial is without them.
    """
    results = told(space, history, pending)
    lowest = worst(results, maximize=history.maximize)
    found: list[FrozenTrial] = []
    for result in results:
        params = _full(space, result.params) if every_parameter else space.encode(result.params)
        found.append(_trial(space, params, result, lowest))
    return found


def _full(space: Space, params: Params) -> dict[str, ParamValue]:
    """A value for every parameter: a lever without effect is filled in, one switched off sits at its low end."""
    found = space.encode(space.fill(params) or {})
    for axis in space.axes:
        if found.get(axis.name + SWITCH) is False:
            found[axis.name] = axis.low
    return found


def _trial(space: Space, params: dict[str, ParamValue], result: Told, lowest: float) -> FrozenTrial:
    distributions = space.distributions()
    value = lowest if result.value is None else result.value
    trial = create_trial(
        state=TrialState.RUNNING if result.running else TrialState.COMPLETE,
        value=None if result.running else value,
        params=params,
        distributions={name: distributions[name] for name in params},
    )
    if not result.running:
        trial.set_constraint(_CONSTRAINT, 1.0 if result.infeasible else -1.0)
    return trial


def create_study(history: History, sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    """A new study in memory with the goal of `history`."""
    return optuna.create_study(direction="maximize" if history.maximize else "minimize", sampler=sampler)


def ask(
    space: Space,
    history: History,
    pending: Sequence[Params],
    sampler: optuna.samplers.BaseSampler,
    *,
    every_parameter: bool,
) -> Params:
    """What `sampler` suggests after all that is known; see `trials`."""
    study = create_study(history, sampler)
    study.add_trials(trials(space, history, pending, every_parameter=every_parameter))
    return space.decode(study.ask(space.distributions()).params)
