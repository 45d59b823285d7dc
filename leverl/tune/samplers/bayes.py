"""Bayesian search: a Sobol start-up design, then Optuna's Gaussian process.

The process is fitted anew for each suggestion, from the history alone, so that a study can be resumed
anywhere. Runs that failed are told with the worst value seen and a violated constraint: Optuna's GPSampler
reads only completed and running trials, and would propose failing regions again and again otherwise. Optuna's
default prior underestimates the noise of single-seed runs, which is why the winner is chosen and confirmed on
fresh seeds.
"""

from collections.abc import Iterator

import numpy as np
import optuna
from optuna.trial import TrialState, create_trial
from scipy.stats import qmc

from leverl.tune.model import History, Params, ParamValue, Sampler
from leverl.tune.optuna_log import quiet_optuna
from leverl.tune.ranking import failed, standing
from leverl.tune.samplers._draw import ENUMERABLE, first_new, random_new
from leverl.tune.space import Key, Space, key

STARTUP = 6
"""Configurations of the start-up design (the base comes on top)."""

_FAILED = "run failed"
_SOBOL_POINTS = 8  # as a power of two
_NEIGHBOURS = 512


class BayesSampler:
    """Optuna's GPSampler, pure: seeded by the study and the number of configurations so far."""

    name = "optuna GPSampler"

    def __init__(self, seed: int, startup: int = STARTUP) -> None:
        self._seed = seed
        self._startup = startup

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` new configurations; fewer when a finite space is used up."""
        tried = space.tried(history)
        suggestions: list[Params] = []
        for _ in range(n):
            found = self._next(space, history, suggestions, tried)
            if found is None:
                break
            suggestions.append(found)
            tried.add(key(found))
        return suggestions

    def _next(
        self, space: Space, history: History, suggested: list[Params], tried: set[Key]
    ) -> Params | None:
        number = max(len(history.config_ids), 1) + len(suggested)  # the base is number 0
        scored = sum(standing(history, config_id) is not None for config_id in history.config_ids)
        generator = np.random.default_rng([self._seed, number])
        if number <= self._startup or scored < 2:
            return _sobol(space, self._seed, tried) or random_new(space, generator, tried)
        wanted = self._from_process(space, history, suggested, number)
        admitted = space.admit(wanted).params
        if admitted is not None and key(admitted) not in tried:
            return admitted
        return _nearest(space, wanted, generator, tried)

    def _from_process(self, space: Space, history: History, suggested: list[Params], number: int) -> Params:
        with quiet_optuna():
            study = optuna.create_study(
                direction="maximize" if history.maximize else "minimize",
                sampler=optuna.samplers.GPSampler(
                    seed=(self._seed * 1_000_003 + number) % 2**31,
                    n_startup_trials=1,
                    warn_independent_sampling=False,
                ),
            )
            study.add_trials(list(_trials(space, history, suggested)))
            return space.decode(study.ask(space.distributions()).params)


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed."""
    return BayesSampler(seed)


def _trials(space: Space, history: History, suggested: list[Params]) -> Iterator[optuna.trial.FrozenTrial]:
    """One trial per configuration: the mean of its runs, a failure, or still running."""
    standings = {config_id: standing(history, config_id) for config_id in history.config_ids}
    means = [found.mean for found in standings.values() if found is not None]
    worst = min(means) if history.maximize else max(means)
    for config_id, found in standings.items():
        states = history.of(config_id)
        params = history.params(config_id) or space.base_params()
        has_failed = any(failed(state) for state in states)
        if found is not None or has_failed:
            value = worst if has_failed or found is None else found.mean
            yield from _trial(space, params, value, has_failed)
        elif any(state.outcome is None for state in states):
            yield from _trial(space, params, None, False)
    for params in suggested:
        yield from _trial(space, params, None, False)


def _trial(
    space: Space, params: Params, value: float | None, has_failed: bool
) -> Iterator[optuna.trial.FrozenTrial]:
    full = space.fill(params)
    if full is None:
        return
    trial = create_trial(
        state=TrialState.RUNNING if value is None else TrialState.COMPLETE,
        value=value,
        params=_every_parameter(space, full),
        distributions=space.distributions(),
    )
    if value is not None:
        trial.set_constraint(_FAILED, 1.0 if has_failed else -1.0)
    yield trial


def _every_parameter(space: Space, full: dict[str, ParamValue]) -> dict[str, ParamValue]:
    """Optuna's process needs every parameter: a lever switched off sits at the low end of its range."""
    low: dict[str, ParamValue] = {
        axis.name: int(axis.low) if axis.kind == "int" else axis.low
        for axis in space.axes
        if axis.other is not None
    }
    return low | space.encode(full)


def _sobol(space: Space, seed: int, tried: set[Key]) -> Params | None:
    points = qmc.Sobol(d=len(space.axes), scramble=True, seed=seed).random_base2(_SOBOL_POINTS)
    return first_new(space, (space.at(point) for point in points), tried, must_fit=False)


def _nearest(space: Space, wanted: Params, generator: np.random.Generator, tried: set[Key]) -> Params | None:
    """The new configuration closest to the one wanted, which cannot run or was tried."""
    if space.size is not None and space.size <= ENUMERABLE:
        candidates = list(space.cells())
    else:
        candidates = [space.at(generator.random(len(space.axes))) for _ in range(_NEIGHBOURS)]
        candidates += [_mixed(space, wanted, generator) for _ in range(_NEIGHBOURS)]
    full = space.fill(wanted) or {}
    candidates.sort(key=lambda candidate: space.distance(candidate, full))
    return first_new(space, candidates, tried)


def _mixed(space: Space, wanted: Params, generator: np.random.Generator) -> Params:
    """`wanted` with about a third of its levers drawn anew."""
    drawn = space.at(generator.random(len(space.axes)))
    return {name: drawn[name] if generator.random() < 1 / 3 else value for name, value in wanted.items()}
