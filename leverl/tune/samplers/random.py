"""Random search: independent draws, on the log scale where the lever has one."""

import numpy as np

from leverl.tune.model import History, Params, Sampler
from leverl.tune.samplers._draw import random_new
from leverl.tune.space.space import Space, key


class RandomSampler:
    """The n-th suggestion depends on the study's seed and on n alone."""

    name = "random search"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` new configurations; fewer when a finite space is used up."""
        tried = space.tried(history)
        started = max(len(history.config_ids), 1)  # the base is number 0
        suggestions: list[Params] = []
        for number in range(started, started + n):
            found = random_new(space, np.random.default_rng([self._seed, number]), tried)
            if found is None:
                break
            suggestions.append(found)
            tried.add(key(found))
        return suggestions


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed."""
    return RandomSampler(seed)
