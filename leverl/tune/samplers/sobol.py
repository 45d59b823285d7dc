"""Sobol search: a scrambled Sobol sequence (Owen 1998), which covers the space more evenly than random draws."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.stats import qmc

from leverl.tune.model import History, Params, Sampler
from leverl.tune.samplers._draw import first_new, random_new
from leverl.tune.space.space import Key, Space, key

_FIRST_POINTS: Final = 8  # as a power of two, in which the sequence is balanced
_MOST_POINTS: Final = 12


class SobolSampler:
    """Goes through one sequence per study seed and skips what cannot run or was tried."""

    name = "Sobol sequence"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` new configurations; fewer when a finite space is used up.

        Raises:
            ConfigError: nothing in the space can run.
        """
        tried = space.tried(history)
        first = max(len(history.config_ids), 1)
        suggestions: list[Params] = []
        for number in range(first, first + n):
            found = self._next(space, tried, number)
            if found is None:
                break
            suggestions.append(found)
            tried.add(key(found))
        return suggestions

    def _next(self, space: Space, tried: set[Key], number: int) -> Params | None:
        """The next of the sequence; a random one where the sequence, cut off at some length, has none."""
        found = first_new(space, self._sequence(space), tried, must_fit=False)
        return found or random_new(space, np.random.default_rng([self._seed, number]), tried)

    def _sequence(self, space: Space) -> Iterator[Params]:
        engine = qmc.Sobol(d=len(space.axes), scramble=True, rng=np.random.default_rng(self._seed))
        yield from map(space.at, engine.random_base2(_FIRST_POINTS))
        for power in range(_FIRST_POINTS, _MOST_POINTS):
            yield from map(space.at, engine.random_base2(power))


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed."""
    return SobolSampler(seed)
