"""The space of a study: its levers, the constraints between them, and which configurations can run."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from leverl.backends.protocol import Resolved
from leverl.config import tree
from leverl.config.arithmetic import SIZES
from leverl.config.schema import Config
from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.model import History, LeverAxis, Params, ParamValue
from leverl.tune.space import optuna_space
from leverl.tune.space.axis import Axis
from leverl.tune.space.axis_words import axis_in_words, parse_axis
from leverl.tune.space.constraints import MetricConstraint, parse_constraints
from leverl.tune.space.default_space import DEFAULT, default_levers, default_range, without_effect
from leverl.tune.space.expressions import Expression
from leverl.tune.space.feasible import Block, Condition, tied
from leverl.tune.space.optuna_space import SWITCH
from leverl.vocabulary import catalog

if TYPE_CHECKING:
    import numpy as np
    from optuna.distributions import BaseDistribution

__all__ = ["SWITCH", "TRIES", "Admission", "Key", "Space", "build", "free", "key", "nothing_fits"]

TRIES: Final = 1000
"""Draws in a row that cannot run, after which sampling gives up."""

Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Admission:
    """`params` without levers that have no effect; None with the reason where they cannot run."""

    params: Params | None
    reason: str = ""


@dataclass(frozen=True)
class Space:
    """Levers to search. `resolve` is the backend's: it refuses combinations that cannot run.

    Constraints are conditions on levers, which every configuration keeps; `metric_constraints` bound what a run
    measures, so that only runs show whether they are kept. `left_out` says which levers of `space: default` are
    not searched, and why.
    """

    axes: tuple[Axis, ...]
    constraints: tuple[Expression, ...]
    base: Mapping[str, Any]  # the base configuration's value of each searched lever
    resolve: Callable[[Params], Resolved]
    metric_constraints: tuple[MetricConstraint, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    _seen: dict[Key, Admission] = field(default_factory=dict, compare=False, repr=False)

    @property
    def size(self) -> int | None:
        """Number of combinations; None when a range makes them endless."""
        counts = [axis.count for axis in self.axes]
        return None if None in counts else math.prod(count or 0 for count in counts)

    def cells(self) -> Iterator[Params]:
        """Every combination of a finite space, the last lever changing fastest."""
        names = [axis.name for axis in self.axes]
        for values in itertools.product(*(axis.choices() for axis in self.axes)):
            yield dict(zip(names, values, strict=True))

    def at(self, units: Iterable[float]) -> Params:
        """The combination at a point of the unit cube.

        Where constraints tie levers with countable values together, the point is mapped to a combination that
        keeps them; an even spread of points stays even. `axis.at` of each axis leaves the constraints aside.
        """
        places = {axis.name: float(unit) for axis, unit in zip(self.axes, units, strict=True)}
        found = {axis.name: axis.at(places[axis.name]) for axis in self.axes}
        for block in self.blocks:
            if block.countable:
                found |= block.at([places[axis.name] for axis in block.axes]) or {}
        return found

    def draw(self, generator: "np.random.Generator") -> Params:
        """A random combination that keeps the constraints; whether it can run is for `admit` to say.

        Raises:
            ConfigError: no combination keeps them.
        """
        found = {
            axis.name: axis.at(float(unit))
            for axis, unit in zip(self.axes, generator.random(len(self.axes)), strict=True)
        }
        for block in self.blocks:
            drawn = block.draw(generator)
            if drawn is None:
                names = ", ".join(axis.name for axis in block.axes)
                raise nothing_fits(f"no values of {names} keep the constraint {block.words}")
            found |= drawn
        return found

    def sample(self, generator: "np.random.Generator", n: int) -> list[Params]:
        """`n` independent random configurations that can run, without levers that have no effect.

        Raises:
            ConfigError: nothing in the space can run, as far as TRIES draws show.
        """
        return [self._draw_admitted(generator) for _ in range(n)]

    def _draw_admitted(self, generator: "np.random.Generator") -> Params:
        reason = ""
        for _ in range(TRIES):
            admission = self.admit(self.draw(generator))
            if admission.params is not None:
                return admission.params
            reason = admission.reason
        raise nothing_fits(reason)

    def keeps_constraints(self, params: Mapping[str, ParamValue]) -> bool:
        """Whether a full combination keeps the constraints, as far as that shows without resolving it."""
        return all(block.holds(params) for block in self.blocks)

    def repair(self, params: Params) -> Params | None:
        """The configuration nearest to `params` that can run; None when none was found."""
        from leverl.tune.space.repair import nearest_admissible

        return nearest_admissible(self, params)

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
            values = {name: self._value(name, resolved) for name in constraint.names}
            if not constraint.holds(values):
                shown = ", ".join(f"{name} = {value}" for name, value in sorted(values.items()))
                return Admission(None, f"constraint '{constraint.text}' does not hold for {shown}")
        live = resolved.params
        return Admission({axis.name: live[axis.name] for axis in self.axes if axis.name in live})

    def _value(self, name: str, resolved: Resolved) -> Any:
        """What `name` in a constraint stands for; in a space without trainer only its axes have a value."""
        config = cast(Config | None, resolved.config)
        return resolved.params[name] if config is None else tree.get(config, catalog.by_name(name).path)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Levers that constraints tie together."""
        if not self.constraints:
            return ()
        base = self.resolve({})
        sizes_move = any(axis.path in SIZES for axis in self.axes)
        conditions: list[Condition] = []
        for constraint in self.constraints:
            found = {name: self._axis_called(name) for name in constraint.names}
            searched = {name: axis.name for name, axis in found.items() if axis is not None}
            others = constraint.names - searched.keys()
            if not (
                sizes_move and any(_path(name) in SIZES for name in others)
            ):  # those follow the sizes searched
                fixed = {name: self._value(name, base) for name in others}
                conditions.append(Condition(constraint, searched, fixed))
        return tied(self.axes, conditions)

    def _axis_called(self, name: str) -> Axis | None:
        return next(
            (axis for axis in self.axes if axis.name == name or (axis.path and axis.path == _path(name))),
            None,
        )

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

    def log_prior(self, params: Params) -> float:
        """How likely `params` are to be good before any run: the sum of the axes' log densities, 0 for uniform."""
        return sum(
            axis.prior.log_density(axis.unit(params[axis.name]))
            for axis in self.axes
            if axis.prior is not None and axis.name in params
        )

    def view(self) -> tuple[LeverAxis, ...]:
        """The axes for plots and tables."""
        return tuple(axis.view(self.base.get(axis.name)) for axis in self.axes)

    def in_words(self) -> dict[str, Any]:
        """What a study file says for this space: every range and prior written out, none left to defaults."""
        return {axis.name: axis_in_words(axis) for axis in self.axes}

    def distributions(self) -> dict[str, "BaseDistribution"]:
        """The space in Optuna's words, see `optuna_space`."""
        return optuna_space.distributions(self.axes)

    def encode(self, params: Params) -> dict[str, ParamValue]:
        """`params` in Optuna's words; a value outside the space is left out."""
        return optuna_space.encode(self.axes, params)

    def decode(self, found: Mapping[str, Any]) -> Params:
        """The other way round."""
        return optuna_space.decode(self.axes, found)


def key(params: Params) -> Key:
    """What makes two configurations the same."""
    return tuple(sorted((name, repr(value)) for name, value in params.items()))


def build(
    space: Mapping[str, Any] | str,
    constraints: Sequence[str],
    base: Any,
    resolve: Callable[[Params], Resolved],
) -> Space:
    """The space of a study over a base configuration; `default` stands for the levers that matter most.

    Raises:
        ConfigError: a lever, a range or a constraint is wrong; says which.
    """
    if isinstance(space, str):
        axes, left_out = _default_axes(space, base, resolve)
    else:
        axes, left_out = _axes(space, base), {}
    if not axes:
        raise ConfigError(
            "space is empty: name at least one lever, such as actor_learning_rate: [1e-6, 1e-5]."
        )
    conditions, bounds = parse_constraints(constraints)
    values = {axis.name: tree.get(base, axis.path) for axis in axes}
    return Space(axes, conditions, values, resolve, bounds, left_out)


def free(
    axes: Sequence[Axis], constraints: Sequence[Expression] = (), base: Mapping[str, ParamValue] | None = None
) -> Space:
    """A space without a trainer behind it: everything can run that keeps the constraints over its axes.

    Raises:
        ConfigError: a constraint uses a name that no axis has.
    """
    names = {axis.name for axis in axes}
    for constraint in constraints:
        for name in constraint.names - names:
            raise ConfigError(
                f"constraint '{constraint.text}': no axis is called '{name}'.{nearest(name, names)}"
            )
    return Space(tuple(axes), tuple(constraints), dict(base or {}), _as_it_is)


def _as_it_is(params: Params) -> Resolved:
    return Resolved(cast(Config, None), params)


def _axes(space: Mapping[str, Any], base: Any) -> tuple[Axis, ...]:
    axes: list[Axis] = []
    for word, content in space.items():
        value = tree.get(base, catalog.by_name(word).path)
        axis = parse_axis(word, default_range(word, value) if content == DEFAULT else content, value)
        _refuse_incomparable(axis)
        if any(axis.name == other.name for other in axes):
            raise ConfigError(f"space: '{word}' is {axis.name}, which is there already.")
        axes.append(axis)
    return tuple(axes)


def _default_axes(
    word: str, base: Any, resolve: Callable[[Params], Resolved]
) -> tuple[tuple[Axis, ...], dict[str, str]]:
    """The axes of `space: default`, and the levers left out of it with the reason."""
    if word != DEFAULT:
        raise ConfigError(f"space = {word!r} must be '{DEFAULT}', or name levers with their ranges.")
    levers, left_out = default_levers(base)
    axes = _axes(levers, base)
    inert = without_effect(axes, base, resolve)
    return tuple(axis for axis in axes if axis.name not in inert), {**left_out, **inert}


def _path(name: str) -> str:
    return catalog.by_name(name).path if catalog.is_lever(name) else name


def _refuse_incomparable(axis: Axis) -> None:
    """Configurations are compared on the same task, with the same scoring, at the same length."""
    section = axis.path.split(".")[0]
    if section in ("seed", "train", "evaluation", "data", "reward"):
        raise ConfigError(
            f"space: {axis.name} cannot be searched: scores would not be comparable between its values. "
            "Set it for the whole study in target: set, and run another study for another value."
        )


def nothing_fits(reason: str) -> ConfigError:
    """What to say when no combination can run."""
    return ConfigError(f"no configuration of the space can run. The last one tried was refused: {reason}")
