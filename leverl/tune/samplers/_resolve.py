"""From what another package's sampler wants to what can run and was not tried."""

from collections.abc import Callable, Iterator

import numpy as np

from leverl.tune.model import History, Params
from leverl.tune.samplers._draw import ENUMERABLE, first_new
from leverl.tune.space.space import Key, Space, key

_DRAWS = 512
_REDRAWN = 1 / 3

Wanted = Callable[[int, list[Params]], Params]
"""What a sampler wants as configuration `number`, after the new ones that are going to run before it."""


def one_by_one(space: Space, history: History, n: int, seed: int, wanted: Wanted) -> list[Params]:
    """Up to `n` new configurations, each the nearest to what is wanted; fewer when a finite space is used up.

    Raises:
        ConfigError: nothing in the space can run.
    """
    tried = space.tried(history)
    first = max(len(history.config_ids), 1)  # the base is number 0
    suggestions: list[Params] = []
    for number in range(first, first + n):
        found = nearest_new(space, wanted(number, suggestions), tried, np.random.default_rng([seed, number]))
        if found is None:
            break
        suggestions.append(found)
        tried.add(key(found))
    return suggestions


def nearest_new(
    space: Space, wanted: Params, tried: set[Key], generator: np.random.Generator
) -> Params | None:
    """`wanted` where it can run and is new, else the closest that can and is; None when all were tried.

    In an endless space, or one too large to go through, the closest of a sample.

    Raises:
        ConfigError: nothing in the space can run.
    """
    repaired = space.repair(wanted)
    if repaired is not None and key(repaired) not in tried:
        return repaired
    if space.size is not None and space.size <= ENUMERABLE:
        candidates = list(space.cells())
    else:
        candidates = [*_drawn(space, generator), *_mixed(space, wanted, generator)]
    candidates.sort(key=lambda candidate: space.distance(candidate, wanted))
    return first_new(space, candidates, tried)


def _drawn(space: Space, generator: np.random.Generator) -> Iterator[Params]:
    for _ in range(_DRAWS):
        yield space.draw(generator)


def _mixed(space: Space, wanted: Params, generator: np.random.Generator) -> Iterator[Params]:
    """`wanted` with some of its levers drawn anew."""
    for drawn in _drawn(space, generator):
        mixed = {
            name: drawn[name] if generator.random() < _REDRAWN else value for name, value in wanted.items()
        }
        if space.keeps_constraints(mixed):
            yield mixed
