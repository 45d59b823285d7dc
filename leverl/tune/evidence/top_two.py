"""Where the next run of a race tells most: top-two allocation without draws, so that a race can be resumed."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from leverl.tune.evidence.posterior import Belief, Observation
from leverl.tune.evidence.seed_noise import SeedNoise


def allocate(
    prior: Belief,
    runs: Sequence[Observation],
    noise: SeedNoise,
    unused: Mapping[str, Sequence[int]],
    count: int,
) -> list[tuple[str, int]]:
    """The next `count` runs (configuration, seed), fewer when no seed is left that could tell something.

    Leader is the highest posterior mean, challenger the one most likely to be better (the transport cost of
    top-two sampling, Jourdan et al. 2022). Of the two, that one runs whose next seed narrows their difference
    more, as in OCBA (Chen et al. 2000). Runs that are pending or were just allocated count as if done.

    Args:
        prior: belief before the race.
        runs: the race's runs so far, pending ones with value None.
        unused: seeds that each configuration has not run on, in order.
    """
    known = list(runs)
    left = {config_id: list(seeds) for config_id, seeds in unused.items()}
    found: list[tuple[str, int]] = []
    while len(found) < count:
        config_id = _most_telling(prior, known, noise, left)
        if config_id is None:
            break
        seed = left[config_id].pop(0)
        known.append(Observation(config_id, seed, None, noise.residual))
        found.append((config_id, seed))
    return found


def _most_telling(
    prior: Belief, known: Sequence[Observation], noise: SeedNoise, left: Mapping[str, Sequence[int]]
) -> str | None:
    now = prior.after(known, noise.common)
    leader = int(np.argmax(now.mean))
    rivals = [place for place in range(len(now.ids)) if place != leader]
    rivals.sort(key=lambda place: _cost(*now.difference(leader, place)))
    for rival in rivals:
        ready = [place for place in (leader, rival) if left[now.ids[place]]]
        if ready:
            return now.ids[
                min(ready, key=lambda place: _width(prior, known, noise, left, place, (leader, rival)))
            ]
    return None


def _cost(gap: float, sd: float) -> float:
    """How many standard deviations the leader is ahead."""
    return gap / sd if sd > 0 else math.inf


def _width(
    prior: Belief,
    known: Sequence[Observation],
    noise: SeedNoise,
    left: Mapping[str, Sequence[int]],
    place: int,
    pair: tuple[int, int],
) -> float:
    """Standard deviation of the pair's difference once the configuration at `place` has run on its next seed."""
    config_id = prior.ids[place]
    run = Observation(config_id, left[config_id][0], None, noise.residual)
    _, sd = prior.after([*known, run], noise.common).difference(*pair)
    return round(sd, 12)
