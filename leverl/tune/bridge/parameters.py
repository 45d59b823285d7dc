"""A parameter of an Optuna study as an axis."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leverl.errors import ConfigError
from leverl.tune.model import ParamValue
from leverl.tune.space.axis import Axis, Scale

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution


@dataclass(frozen=True)
class Parameter:
    """One parameter. `axis` spans all ranges it ever had, `allowed` the range asked for now.

    Choices that are numbers keep their order; any others are known by their place in the list, as text.
    """

    axis: Axis
    allowed: Axis
    distribution: "BaseDistribution"

    @property
    def name(self) -> str:
        return self.axis.name

    def encode(self, value: Any) -> ParamValue | None:
        """The axis's value for a parameter's value; None outside the axis."""
        from optuna.distributions import CategoricalDistribution

        if isinstance(self.distribution, CategoricalDistribution):
            try:
                return self.axis.values[int(self.distribution.to_internal_repr(value))]
            except ValueError:  # the choice was not always in the list
                return None
        found: ParamValue = value
        return found if self.axis.contains(found) else None

    def decode(self, value: ParamValue) -> Any:
        """The parameter's value for an axis's value."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        if isinstance(self.distribution, CategoricalDistribution):
            return self.distribution.choices[self.axis.values.index(value)]
        if isinstance(self.distribution, FloatDistribution):
            return _on_step(self.distribution, float(value))
        return int(value)


def parameters(
    seen: Mapping[str, Sequence["BaseDistribution"]], wanted: Mapping[str, "BaseDistribution"]
) -> dict[str, Parameter]:
    """The parameters `wanted` now, whose distributions in earlier trials were those `seen`."""
    found: dict[str, Parameter] = {}
    for name, distribution in wanted.items():
        axis = _axis(name, distribution)
        found[name] = Parameter(_spanning(name, distribution, seen.get(name, ())) or axis, axis, distribution)
    return found


def _axis(name: str, distribution: "BaseDistribution") -> Axis:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return Axis(name, kind="categorical", values=_values(distribution.choices))
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return _range(name, distribution, distribution.low, distribution.high)
    raise ConfigError(f"parameter '{name}' has a distribution that is not known here: {distribution!r}.")


def _range(name: str, distribution: "FloatDistribution | IntDistribution", low: float, high: float) -> Axis:
    from optuna.distributions import IntDistribution

    whole = isinstance(distribution, IntDistribution)
    step = None if distribution.log or (whole and distribution.step == 1) else distribution.step
    scale: Scale = "log" if distribution.log else "linear"
    return Axis(name, "", "int" if whole else "float", low, high, scale, step)


def _spanning(name: str, now: "BaseDistribution", seen: Sequence["BaseDistribution"]) -> Axis | None:
    """The axis over all ranges where they differ in nothing but their ends; None where they do not differ."""
    from optuna.distributions import FloatDistribution, IntDistribution

    if not isinstance(now, FloatDistribution | IntDistribution) or all(one == now for one in seen):
        return None
    if now.step not in (None, 1):
        return None
    alike = [
        one
        for one in seen
        if isinstance(one, FloatDistribution | IntDistribution) and (one.step, one.log) == (now.step, now.log)
    ]
    ranges = [now, *alike]
    return _range(name, now, min(one.low for one in ranges), max(one.high for one in ranges))


def _values(choices: Sequence[Any]) -> tuple[ParamValue, ...]:
    numbers = all(
        isinstance(choice, int | float) and not isinstance(choice, bool) and math.isfinite(choice)
        for choice in choices
    )
    if numbers and len({float(choice) for choice in choices}) == len(choices):
        return tuple(choices)
    return tuple(str(place) for place in range(len(choices)))


def _on_step(distribution: "FloatDistribution", value: float) -> float:
    """`value` exactly as Optuna counts steps from the lower end."""
    if distribution.step is None:
        return min(max(value, distribution.low), distribution.high)
    steps = round((value - distribution.low) / distribution.step)
    return min(distribution.low + steps * distribution.step, distribution.high)
