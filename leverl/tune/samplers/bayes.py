"""Bayesian optimisation for few, noisy runs that sometimes fail: the surrogate of `leverl.tune.surrogate`."""

import numpy as np

from leverl.tune.model import History, Params, Sampler
from leverl.tune.samplers._draw import ENUMERABLE
from leverl.tune.space.space import Key, Space, key, nothing_fits


class BayesSampler:
    """Pure: what it proposes follows from the study's seed and the history.

    It starts with a space-filling design and then goes where the surrogate expects to gain most. It may propose a
    configuration that has run before, when another seed of it, or the rest of a run that was stopped early, tells
    more than any new one.
    """

    name = "Matérn GP, qLogNEI"

    def __init__(self, seed: int, startup: int | None = None) -> None:
        self._seed = seed
        self._startup = startup
        self._listed: tuple[Space, list[Params]] | None = None

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """Up to `n` configurations; fewer when a finite space is used up.

        Raises:
            ConfigError: nothing in the space can run.
        """
        from leverl.tune.surrogate.from_history import measurements  # scipy takes a moment to import
        from leverl.tune.surrogate.propose import propose

        def candidates(generator: np.random.Generator, count: int) -> list[Params]:
            return [space.draw(generator) for _ in range(count)]

        found = propose(
            space.axes,
            measurements(space, history),
            admit=lambda params: space.admit(params).params,
            candidates=candidates,
            seed=self._seed,
            n=n,
            spent=history.spent,
            counts_time=history.counts_time,
            cells=self._cells(space),
            startup=self._startup,
            at=space.at,
        )
        if not found and space.size is None:
            space.sample(np.random.default_rng(self._seed), 1)  # says why nothing can run
        return found

    def _cells(self, space: Space) -> list[Params] | None:
        """All configurations of a small finite space that can run, each once."""
        if space.size is None or space.size > ENUMERABLE:
            return None
        if self._listed is None or self._listed[0] is not space:
            self._listed = (space, _runnable(space))
        return self._listed[1]


def create(seed: int) -> Sampler:
    """A sampler for a study with this seed."""
    return BayesSampler(seed)


def _runnable(space: Space) -> list[Params]:
    found: dict[Key, Params] = {}
    reason = ""
    for cell in space.cells():
        admission = space.admit(cell)
        if admission.params is None:
            reason = admission.reason
        else:
            found.setdefault(key(admission.params), admission.params)
    if not found:
        raise nothing_fits(reason)
    return list(found.values())
