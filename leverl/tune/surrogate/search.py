"""Where a score over configurations is highest: a wide look, then climbing from the best places.

Climbing goes from neighbour to neighbour (one lever at a time or all a little, steps halved when none is better), so
constraints, countable values and levers without effect need no rounding. Whether a configuration can run is asked
only of those that score well, because the answer may take a whole configuration to be resolved.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Key, key
from leverl.tune.surrogate.kernel import Floats
from leverl.tune.surrogate.moves import jump, steps

Admit = Callable[[Params], Params | None]
Score = Callable[[Sequence[Params]], Floats]

_Head = tuple[Params, float]

_STARTS: Final = 4
_ROUNDS: Final = 12
_FIRST_STEP: Final = 0.1
_JUMPS: Final = 4  # per start and round
_LEAST_RISE: Final = 1e-6
_NEAR: Final = 16  # jumps from each promising configuration into the pool


@dataclass(frozen=True)
class Climb:
    """One search; `taken` configurations are never the answer."""

    axes: Sequence[Axis]
    score: Score
    admit: Admit
    taken: set[Key]
    generator: np.random.Generator

    def best(self, pool: Sequence[Params], promising: Sequence[Params]) -> Params | None:
        """The best configuration found from `pool` and around the `promising`; None where none can run."""
        sizes = np.geomspace(0.02, 0.3, _NEAR)
        near = [jump(self.axes, one, float(size), self.generator) for one in promising for size in sizes]
        heads = self._rescored(self._admitted([*pool, *near], -np.inf, _STARTS))
        if not heads:
            return None
        size = _FIRST_STEP
        for _ in range(_ROUNDS):
            heads, moved = self._round(heads, size)
            size = size if moved else size / 2
        return heads[int(np.argmax([value for _, value in heads]))][0]

    def best_of(self, cells: Sequence[Params]) -> Params | None:
        """The best of all cells, each of which can run; None where all are taken."""
        new = [cell for cell in cells if key(cell) not in self.taken]
        return new[int(self.score(new).argmax())] if new else None

    def _round(self, heads: list[_Head], size: float) -> tuple[list[_Head], bool]:
        """Every head goes to its best neighbour, if that is better."""
        groups = [self._around(params, size) for params, _ in heads]
        scores = self.score([params for group in groups for params in group])
        ends = np.cumsum([len(group) for group in groups])[:-1]
        best: list[Params] = []
        for head, group, own in zip(heads, groups, np.split(scores, ends), strict=True):
            better = self._first_admitted(group, own, head[1] + _LEAST_RISE, 1)
            best.append(better[0] if better else head[0])
        values = self.score(best)
        moved = False
        found: list[_Head] = []
        for head, params, value in zip(heads, best, values, strict=True):
            rises = float(value) > head[1] + _LEAST_RISE
            found.append((params, float(value)) if rises else head)
            moved = moved or rises
        return found, moved

    def _around(self, params: Params, size: float) -> list[Params]:
        jumps = [jump(self.axes, params, size, self.generator) for _ in range(_JUMPS)]
        return [*steps(self.axes, params, size, self.generator), *jumps]

    def _admitted(self, wanted: Sequence[Params], above: float, count: int) -> list[Params]:
        return self._first_admitted(wanted, self.score(wanted), above, count) if wanted else []

    def _first_admitted(
        self, wanted: Sequence[Params], scores: Floats, above: float, count: int
    ) -> list[Params]:
        """Those `count` with the highest scores that can run and are not taken, as far as they score `above`."""
        found: dict[Key, Params] = {}
        for place in np.argsort(-scores, kind="stable"):
            if scores[place] <= above or len(found) == count:
                break
            params = self.admit(wanted[place])
            if params is not None and key(params) not in self.taken:
                found[key(params)] = params
        return list(found.values())

    def _rescored(self, found: Sequence[Params]) -> list[_Head]:
        """With the scores they have without levers that have no effect."""
        return [(params, float(value)) for params, value in zip(found, self.score(found), strict=True)]
