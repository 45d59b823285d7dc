"""Optuna's tree-structured Parzen estimator, with its own defaults: ten random trials first (Watanabe 2023)."""

import optuna

from leverl.tune.model import History, Params, Sampler
from leverl.tune.samplers._resolve import one_by_one
from leverl.tune.samplers.optuna._study import ask, seed_of, silent
from leverl.tune.space.space import Space


class OptunaTPE:
    """Pure: a new TPESampler for each suggestion, seeded by the study and the number of configurations so far."""

    name = "optuna TPESampler"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` new configurations; fewer when a finite space is used up.

        Raises:
            ConfigError: nothing in the space can run.
        """

        def wanted(number: int, pending: list[Params]) -> Params:
            sampler = optuna.samplers.TPESampler(seed=seed_of(self._seed, number))
            return ask(space, history, pending, sampler, every_parameter=False)

        with silent():
            return one_by_one(space, history, n, self._seed, wanted)


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed."""
    return OptunaTPE(seed)
