"""Where a score over configurations is highest: a wide look, then climbing from the best places.

Climbing goes from neighbour to neighbour (one lever at a time, steps halved when none is better), so every point
looked at is a configuration that can run: constraints, countable values and levers without effect need no rounding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from leverl.tune.axis import Axis
from leverl.tune.model import Params
from leverl.tune.space import Key, key
from leverl.tune.surrogate.kernel import Floats
from leverl.tune.surrogate.moves import jump, steps

Admit = Callable[[Params], Params | None]
Score = Callable[[Sequence[Params]], Floats]

_STARTS: Final = 4
_ROUNDS: Final = 12
_FIRST_STEP: Final = 0.1
_JUMPS: Final = 4  # per start and round
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
        """The best configuration found from `pool` and around the `promising`; None where all are taken."""
        near = [
            jump(self.axes, one, size, self.generator)
            for one in promising
            for size in np.geomspace(0.02, 0.3, _NEAR)
        ]
        start = self._new([*pool, *self._admitted(near)])
        if not start:
            return None
        scores = self.score(start)
        order = np.argsort(-scores, kind="stable")[:_STARTS]
        heads = [(start[place], float(scores[place])) for place in order]
        size = _FIRST_STEP
        for _ in range(_ROUNDS):
            heads, moved = self._round(heads, size)
            size = size if moved else size / 2
        return heads[int(np.argmax([value for _, value in heads]))][0]

    def best_of(self, cells: Sequence[Params]) -> Params | None:
        """The best of all cells."""
        new = self._new(cells)
        return new[int(self.score(new).argmax())] if new else None

    def _round(
        self, heads: list[tuple[Params, float]], size: float
    ) -> tuple[list[tuple[Params, float]], bool]:
        """Every head goes to its best neighbour, if that is better."""
        groups = [self._new(self._admitted(self._around(params, size))) for params, _ in heads]
        scores = self.score([params for group in groups for params in group])
        found, first, moved = [], 0, False
        for head, group in zip(heads, groups, strict=True):
            own = scores[first : first + len(group)]
            first += len(group)
            if len(group) and float(own.max()) > head[1] + 1e-6:
                head, moved = (group[int(own.argmax())], float(own.max())), True
            found.append(head)
        return found, moved

    def _around(self, params: Params, size: float) -> list[Params]:
        jumps = [jump(self.axes, params, size, self.generator) for _ in range(_JUMPS)]
        return [*steps(self.axes, params, size, self.generator), *jumps]

    def _admitted(self, wanted: Sequence[Params]) -> list[Params]:
        return [found for one in wanted if (found := self.admit(one)) is not None]

    def _new(self, pool: Sequence[Params]) -> list[Params]:
        """Without those taken, each once."""
        unique = {key(params): params for params in pool}
        return [params for name, params in unique.items() if name not in self.taken]
