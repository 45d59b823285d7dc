"""The space of a study: its levers, the constraints between them, and which configurations can run."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from leverl.backends.protocol import Resolved
from leverl.config import tree
from leverl.errors import ConfigError
from leverl.tune.axis import Axis, parse_axis, same
from leverl.tune.expressions import Expression, parse
from leverl.tune.model import History, LeverAxis, Params, ParamValue
from leverl.vocabulary import catalog

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

TRIES: Final = 1000
"""Draws after which rejection sampling gives up."""

SWITCH: Final = ".on"
"""Ending of the categorical that says whether a lever is inside its range or takes the value beside it."""

Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Admission:
    """`params` without levers that have no effect; None with the reason where they cannot run."""

    params: Params | None
    reason: str = ""


@dataclass(frozen=True)
class Space:
    """Levers to search. `resolve` is the backend's: it refuses combinations that cannot run."""

    axes: tuple[Axis, ...]
    constraints: tuple[Expression, ...]
    base: Mapping[str, Any]  # the base configuration's value of each searched lever
    resolve: Callable[[Params], Resolved]
    _seen: dict[Key, Admission] = field(default_factory=dict, compare=False, repr=False)

    @property
    def size(self) -> int | None:
        """Number of combinations; None when a range makes them endless."""
        if all(axis.finite for axis in self.axes):
            return math.prod(len(axis.choices()) for axis in self.axes)
        return None

    def cells(self) -> Iterator[Params]:
        """Every combination of a finite space, the last lever changing fastest."""
        names = [axis.name for axis in self.axes]
        for values in itertools.product(*(axis.choices() for axis in self.axes)):
            yield dict(zip(names, values, strict=True))

    def at(self, units: Iterable[float]) -> Params:
        """The combination at a point of the unit cube."""
        return {axis.name: axis.at(float(unit)) for axis, unit in zip(self.axes, units, strict=True)}

    def admit(self, params: Params) -> Admission:
        """Whether the constraints hold and the backend can run it."""
        wanted = key(params)
        if wanted not in self._seen:
            self._seen[wanted] = self._admit(params)
        return self._seen[wanted]

    def _admit(self, params: Params) -> Admission:
        try:
            resolved = self.resolve(params)
        except ConfigError as error:
            return Admission(None, str(error))
        for constraint in self.constraints:
            values = {
                name: tree.get(resolved.config, catalog.by_name(name).path) for name in constraint.names
            }
            if not constraint.holds(values):
                shown = ", ".join(f"{name} = {value}" for name, value in sorted(values.items()))
                return Admission(None, f"constraint '{constraint.text}' does not hold for {shown}")
        live = resolved.params
        return Admission({axis.name: live[axis.name] for axis in self.axes if axis.name in live})

    def base_params(self) -> Params:
        """The base as a point of the space, as far as its levers have an effect; also outside the ranges."""
        known = {name: value for name, value in self.base.items() if value is not None}
        admitted = self.admit(known).params
        return known if admitted is None else admitted

    def tried(self, history: History) -> set[Key]:
        """Keys of the configurations that were started, the base included."""
        started = {key(history.params(config_id)) for config_id in history.config_ids}
        return (started - {()}) | {key(self.base_params())}

    def fill(self, params: Params) -> dict[str, ParamValue] | None:
        """A value for every lever: one without effect takes the base's value, or the middle of its range.

        None when a value lies outside the space (the base may).
        """
        full: dict[str, ParamValue] = {}
        for axis in self.axes:
            if axis.name in params:
                value = params[axis.name]
            else:
                base = self.base.get(axis.name)
                value = base if base is not None and axis.contains(base) else axis.middle()
            if not axis.contains(value):
                return None
            full[axis.name] = value
        return full

    def distance(self, one: Mapping[str, ParamValue], two: Mapping[str, ParamValue]) -> float:
        """Euclidean distance of two full combinations in units of the ranges."""
        return math.sqrt(sum(axis.distance(one[axis.name], two[axis.name]) ** 2 for axis in self.axes))

    def view(self) -> tuple[LeverAxis, ...]:
        """The axes for plots and tables."""
        return tuple(axis.view(self.base.get(axis.name)) for axis in self.axes)

    def distributions(self) -> dict[str, "BaseDistribution"]:
        """The space in Optuna's words; `or: 0` becomes a categorical `NAME.on` beside the range."""
        from optuna.distributions import (
            BaseDistribution,
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        found: dict[str, BaseDistribution] = {}
        for axis in self.axes:
            if axis.kind == "categorical":
                found[axis.name] = CategoricalDistribution(list(axis.values))
                continue
            if axis.other is not None:
                found[axis.name + SWITCH] = CategoricalDistribution([True, False])
            if axis.kind == "int":
                found[axis.name] = IntDistribution(int(axis.low), int(axis.high), log=axis.log)
            else:
                found[axis.name] = FloatDistribution(axis.low, axis.high, log=axis.log)
        return found

    def encode(self, params: Params) -> dict[str, ParamValue]:
        """`params` in Optuna's words; a value outside the space is left out."""
        found: dict[str, ParamValue] = {}
        for axis in self.axes:
            if axis.name not in params or not axis.contains(params[axis.name]):
                continue
            value = params[axis.name]
            if axis.other is not None:
                found[axis.name + SWITCH] = not same(value, axis.other)
            if axis.other is None or not same(value, axis.other):
                found[axis.name] = value
        return found

    def decode(self, found: Mapping[str, Any]) -> Params:
        """The other way round."""
        return {
            axis.name: axis.other
            if axis.other is not None and not found[axis.name + SWITCH]
            else found[axis.name]
            for axis in self.axes
        }


def key(params: Params) -> Key:
    """What makes two configurations the same."""
    return tuple(sorted((name, repr(value)) for name, value in params.items()))


def build(
    space: Mapping[str, Any], constraints: Sequence[str], base: Any, resolve: Callable[[Params], Resolved]
) -> Space:
    """The space of a study over a base configuration.

    Raises:
        ConfigError: a lever, a range or a constraint is wrong; says which.
    """
    axes: list[Axis] = []
    for word, content in space.items():
        axis = parse_axis(word, content)
        _refuse_incomparable(axis)
        if any(axis.name == other.name for other in axes):
            raise ConfigError(f"space: '{word}' is {axis.name}, which is there already.")
        axes.append(axis)
    if not axes:
        raise ConfigError(
            "space is empty: name at least one lever, such as actor_learning_rate: [1e-6, 1e-5]."
        )
    parsed = tuple(parse(text) for text in constraints)
    for constraint in parsed:
        for name in constraint.names:
            try:
                catalog.by_name(name)
            except ConfigError as error:
                raise ConfigError(f"constraint '{constraint.text}': {error}") from error
    values = {axis.name: tree.get(base, axis.path) for axis in axes}
    return Space(tuple(axes), parsed, values, resolve)


def _refuse_incomparable(axis: Axis) -> None:
    """Configurations are compared on the same task, with the same scoring, after the same number of steps."""
    section = axis.path.split(".")[0]
    if section in ("seed", "train", "evaluation", "data", "reward"):
        raise ConfigError(
            f"space: {axis.name} cannot be searched: scores would not be comparable between its values. "
            "Set it for the whole study in target: set, and run another study for another value."
        )


def nothing_fits(reason: str) -> ConfigError:
    """What to say when no combination can run."""
    return ConfigError(f"no configuration of the space can run. The last one tried was refused: {reason}")
