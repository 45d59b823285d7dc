"""Random choices of the benchmark tasks: generators that depend on words, and grids as people lay them out."""

import hashlib
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from leverl.tune.model import Params, ParamValue


def generator(*words: object) -> np.random.Generator:
    """The same generator for the same words, on every machine."""
    digest = hashlib.blake2b(repr(words).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def spread(values: Sequence[ParamValue], count: int, random: np.random.Generator) -> list[ParamValue]:
    """`count` of the values in their order, one at random from each of `count` equal parts of the list."""
    ends = [round(part * len(values) / count) for part in range(count + 1)]
    return [values[int(random.integers(low, high))] for low, high in itertools.pairwise(ends)]


def subset(values: Sequence[ParamValue], count: int, random: np.random.Generator) -> list[ParamValue]:
    """`count` of the values in their order, every subset equally likely."""
    return [values[place] for place in sorted(random.permutation(len(values))[:count])]


def factorial(levels: Mapping[str, Sequence[ParamValue]], base: Params) -> list[Params]:
    """All combinations of the levels; levers without levels stay at the base."""
    return [
        {**base, **dict(zip(levels, combination, strict=True))}
        for combination in itertools.product(*levels.values())
    ]
