"""Draws of admissible, new configurations, shared by the samplers."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from leverl.tune.model import Params
from leverl.tune.space.space import TRIES, Key, Space, key, nothing_fits

ENUMERABLE: Final = 4096
"""Finite spaces up to this size are gone through instead of drawn from."""


def first_new(
    space: Space, candidates: Iterable[Params], tried: set[Key], *, must_fit: bool = True
) -> Params | None:
    """The first candidate that can run and was not tried; None when there is none.

    Raises:
        ConfigError: none of the candidates can run at all, and one of them `must_fit`.
    """
    reason, runnable = "", False
    for candidate in candidates:
        admission = space.admit(candidate)
        if admission.params is None:
            reason = admission.reason
            continue
        runnable = True
        if key(admission.params) not in tried:
            return admission.params
    if must_fit and not runnable and reason:
        raise nothing_fits(reason)
    return None


def random_new(space: Space, generator: np.random.Generator, tried: set[Key]) -> Params | None:
    """A random new configuration; None when a finite space is used up.

    Raises:
        ConfigError: nothing in the space can run.
    """
    if space.size is not None and space.size <= ENUMERABLE:
        cells = list(space.cells())
        return first_new(space, (cells[i] for i in generator.permutation(len(cells))), tried)
    return first_new(space, (space.draw(generator) for _ in range(TRIES)), tried)
