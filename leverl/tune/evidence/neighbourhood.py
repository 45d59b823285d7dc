"""The cells around the best of the search: a small grid over the levers that matter most."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from leverl.tune.evidence.belief import Searched, inside_params, search_knowledge, surrogate_of
from leverl.tune.evidence.recommendation import Allowed, steadiest
from leverl.tune.model import SEARCH, History, Params, ParamValue
from leverl.tune.space.axis import Axis, same
from leverl.tune.space.space import Space, key

if TYPE_CHECKING:
    from leverl.tune.surrogate.model import Surrogate

_FACTOR: Final = 1.8
"""Step of a range on a log scale, unless it is more than a quarter of the range."""

_STEP: Final = 0.125
"""Step of other ranges, as a share of the range."""

_FEW: Final = 9
"""Values that can be counted, up to which a step goes to the next one."""

_WORDS: Final = 3
"""Values without an order, up to which all are tried."""

_DRAWS: Final = 16  # of the surrogate, for the importance of levers


@dataclass(frozen=True)
class Neighbourhood:
    """`cells` differ from configuration `centre` in `levers` only; the most promising first."""

    centre: str
    levers: tuple[str, ...]
    cells: tuple[Params, ...]


def neighbourhood(
    space: Space, history: History, most: int, *, allowed: Allowed | None = None
) -> Neighbourhood | None:
    """The grid around the highest posterior mean of the search, of at most `most` cells, without known ones.

    Its levers are the most important by the surrogate, as many as fit into `most` cells with a step to both
    sides: two as a rule, three where one of them is at an end of its range. The local grid's own runs and those
    of later phases change nothing. None without a surrogate, or a centre inside the space.
    """
    before = History(history.in_phase(SEARCH), history.maximize)
    permitted = frozenset(c for c in before.config_ids if allowed is None or allowed(before, c))
    return _neighbourhood(Searched(space, before, True, permitted), most)


@lru_cache(maxsize=8)
def _neighbourhood(asked: Searched, most: int) -> Neighbourhood | None:
    space, history = asked.space, asked.history
    surrogate, centre = surrogate_of(space, history), _centre(asked)
    params = inside_params(space, history, centre) if centre is not None else None
    if surrogate is None or centre is None or params is None:
        return None
    chosen = _chosen(space, surrogate, params, most)
    known = space.tried(history)
    cells: dict[object, Params] = {}
    for values in itertools.product(*chosen.values()):
        cell = space.admit({**params, **dict(zip(chosen, values, strict=True))}).params
        if cell is not None and key(cell) not in known:
            cells[key(cell)] = cell
    found = list(cells.values())
    if found:
        order = np.argsort(-surrogate.posterior(found).mean, kind="stable")
        found = [found[int(place)] for place in order]
    return Neighbourhood(centre, tuple(chosen), tuple(found))


def levels(axis: Axis, value: ParamValue) -> tuple[ParamValue, ...]:
    """`value` between its neighbours a step away, in order; fewer at an end of the range.

    The value beside a range (`or: 0`) has the near end of the range as its neighbour.
    """
    if axis.other is not None and same(value, axis.other):
        return (value, axis.low if float(axis.other) < axis.low else axis.high)
    if not axis.ordered:
        return axis.values if len(axis.values) <= _WORDS else (value,)
    inside = [choice for choice in axis.choices() if not same(choice, axis.other)] if _countable(axis) else []
    if inside:
        inside.sort(key=float)
        place = next(number for number, choice in enumerate(inside) if same(choice, value))
        return tuple(inside[max(place - 1, 0) : place + 2])
    position, step = axis.position(value), _step(axis)
    around = (axis.value(max(position - step, 0.0)), value, axis.value(min(position + step, 1.0)))
    return tuple(dict.fromkeys(around))


def _countable(axis: Axis) -> bool:
    return axis.count is not None and axis.count <= _FEW


def _step(axis: Axis) -> float:
    if axis.scale != "log" or axis.high <= axis.low:
        return _STEP
    return min(0.25, math.log(_FACTOR) / math.log(axis.high / axis.low))


def _centre(asked: Searched) -> str | None:
    """The configuration inside the space with the highest posterior mean, of those that failed least."""
    knowledge = search_knowledge(asked.space, asked.history)
    if knowledge is None:
        return None
    names = [
        name
        for name in knowledge.belief.ids
        if (asked.allowed is None or name in asked.allowed)
        and inside_params(asked.space, asked.history, name) is not None
    ]
    steady = steadiest(asked.history, names)
    return steady[int(np.argmax(knowledge.belief.of(steady).mean))] if steady else None


def _chosen(
    space: Space, surrogate: "Surrogate", centre: Params, most: int
) -> dict[str, Sequence[ParamValue]]:
    """The levers to vary, the most important first, with their levels."""
    importance = surrogate.importance(draws=_DRAWS, seed=0)
    active = [axis for axis in space.axes if axis.name in centre]
    active.sort(key=lambda axis: -importance[axis.name].median if axis.name in importance else 0.0)
    found: dict[str, Sequence[ParamValue]] = {}
    count = 1
    for axis in active:
        choices = levels(axis, centre[axis.name])
        if 1 < len(choices) <= most // count:
            found[axis.name] = choices
            count *= len(choices)
    return found
