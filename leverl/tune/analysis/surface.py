"""The surrogate's opinion of levers: importance, slices, the map of the top pair, and how far to believe it."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from leverl.tune.analysis.result import (
    Importance,
    Model,
    Noise,
    Prediction,
    Slice,
    SlicePoint,
    Surface,
)
from leverl.tune.evidence.belief import inside_params, surrogate_of
from leverl.tune.model import CONFIRM, History, Params, ParamValue
from leverl.tune.space.axis import Axis, same
from leverl.tune.space.space import Space, key

if TYPE_CHECKING:
    from leverl.tune.surrogate.model import Surrogate

_DRAWS: Final = 64  # of the surrogate, for the importance
_LINE: Final = 33  # points of a slice
_SIDE: Final = 17  # points along a side of the map


def model_of(space: Space, history: History, leader: str) -> Model | None:
    """What all runs before the confirmation say; None where they are too few, or none lies inside the space.

    Slices and map go through `leader`, or through the best configuration inside the space.
    """
    before = History(tuple(s for s in history.runs if s.run.phase != CONFIRM), history.maximize)
    surrogate = surrogate_of(space, before)
    inside = {c: p for c in before.config_ids if (p := inside_params(space, before, c)) is not None}
    if surrogate is None or not inside:
        return None
    means = surrogate.posterior(list(inside.values())).mean
    best = max(zip(inside, means, strict=True), key=lambda pair: pair[1])[0]
    centre = leader if leader in inside else best
    used = {name for params in inside.values() for name in params}
    importance = _importance(surrogate, used)
    look = _Look(space, surrogate, inside[centre], 1.0 if history.maximize else -1.0)
    order = [one.lever for one in importance]
    axes = {axis.name: axis for axis in space.axes}
    return Model(
        noise=_noise(surrogate),
        importance=importance,
        centre=centre,
        slices=tuple(look.slice(axes[name]) for name in order),
        surface=look.surface(order),
        left_out=_left_out(surrogate, inside, look.sign),
    )


class _Look:
    """The posterior at and around one configuration."""

    def __init__(self, space: Space, surrogate: "Surrogate", centre: Params, sign: float) -> None:
        self.sign = sign
        self._space, self._surrogate, self._centre = space, surrogate, centre
        self._full = space.fill(centre) or dict(centre)

    def slice(self, axis: Axis) -> Slice:
        found = self._at([{axis.name: value} for value in values_along(axis, _LINE)])
        points = tuple(
            SlicePoint(moved[axis.name], *opinion) for moved, opinion in found if opinion is not None
        )
        return Slice(axis.name, points, self._centre.get(axis.name))

    def surface(self, order: Sequence[str]) -> Surface | None:
        """Of the two most important levers that the centre uses."""
        axes = {axis.name: axis for axis in self._space.axes}
        pair = [name for name in order if name in self._centre][:2]
        if len(pair) < 2:
            return None
        across, up = (values_along(axes[name], _SIDE) for name in pair)
        moved = [{pair[0]: x, pair[1]: y} for y, x in itertools.product(up, across)]
        opinions = iter([opinion for _, opinion in self._at(moved)])
        rows = [[next(opinions) for _ in across] for _ in up]
        means = tuple(tuple(None if cell is None else cell[0] for cell in row) for row in rows)
        sds = tuple(tuple(None if cell is None else cell[1] for cell in row) for row in rows)
        return Surface(pair[0], pair[1], tuple(across), tuple(up), means, sds)

    def _at(
        self, changes: Sequence[Mapping[str, ParamValue]]
    ) -> list[tuple[Mapping[str, ParamValue], tuple[float, float] | None]]:
        """Mean and sd after each change; None where it cannot run, or has no effect there."""
        admitted = [self._space.admit({**self._full, **change}).params for change in changes]
        live = [
            params if params is not None and params.keys() >= change.keys() else None
            for params, change in zip(admitted, changes, strict=True)
        ]
        asked = [params for params in live if params is not None]
        if not asked:
            return [(change, None) for change in changes]
        posterior = self._surrogate.posterior(asked)
        pairs = iter(zip(posterior.mean, posterior.covariance.diagonal(), strict=True))
        found: list[tuple[Mapping[str, ParamValue], tuple[float, float] | None]] = []
        for change, params in zip(changes, live, strict=True):
            if params is None:
                found.append((change, None))
            else:
                mean, variance = next(pairs)
                found.append((change, (self.sign * float(mean), max(float(variance), 0.0) ** 0.5)))
        return found


def values_along(axis: Axis, most: int) -> list[ParamValue]:
    """Values to look at, the one beside the range first: all of a short list, else evenly spread."""
    if axis.count is not None and axis.count <= most:
        return list(axis.choices())
    inside: list[ParamValue] = []
    for place in range(most):
        value = axis.value(place / (most - 1))
        if not inside or not same(inside[-1], value):
            inside.append(value)
    return inside if axis.other is None else [axis.other, *inside]


def _importance(surrogate: "Surrogate", used: set[str]) -> tuple[Importance, ...]:
    """Of the levers that had an effect in at least one configuration; of others nothing is known."""
    found = surrogate.importance(draws=_DRAWS, seed=0)
    levers = [Importance(name, one.median, one.low, one.high) for name, one in found.items() if name in used]
    return tuple(sorted(levers, key=lambda one: -one.median))


def _noise(surrogate: "Surrogate") -> Noise:
    noise = surrogate.noise
    return Noise(
        seed_sd=max(noise.seed_variance, 0.0) ** 0.5,
        evaluation_sd=max(noise.evaluation_variance, 0.0) ** 0.5,
        share=noise.share,
        degrees=noise.degrees,
    )


def _left_out(surrogate: "Surrogate", inside: Mapping[str, Params], sign: float) -> tuple[Prediction, ...]:
    names = {key(params): config_id for config_id, params in reversed(list(inside.items()))}
    return tuple(
        Prediction(names[key(one.params)], sign * one.observed, sign * one.predicted, one.sd)
        for one in surrogate.leave_one_out()
    )
