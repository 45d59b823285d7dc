"""One searched lever: its values, and where they lie between 0 and 1."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from leverl.config import tree
from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.model import LeverAxis, ParamValue
from leverl.vocabulary import catalog

OTHER_SHARE: Final = 0.25
"""How often random sampling takes the value beside a range (`or: 0`)."""

Kind = Literal["float", "int", "categorical"]

_KEYS: Final = ("min", "max", "log", "or", "values", "distribution")
_WANDB_DISTRIBUTIONS: Final = ("uniform", "int_uniform", "log_uniform_values", "categorical")


@dataclass(frozen=True)
class Axis:
    """A lever with a range [low, high], or with `values`. `other` is a value of its own beside the range."""

    name: str
    path: str
    kind: Kind
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    values: tuple[ParamValue, ...] = ()
    other: ParamValue | None = None

    @property
    def finite(self) -> bool:
        return self.kind != "float"

    def choices(self) -> tuple[ParamValue, ...]:
        """All values of a finite axis, in order; `other` comes first."""
        if self.kind == "categorical":
            return self.values
        inside = tuple(range(int(self.low), int(self.high) + 1))
        return inside if self.other is None else (self.other, *inside)

    def contains(self, value: Any) -> bool:
        if self.kind == "categorical":
            return any(same(value, choice) for choice in self.values)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return same(value, self.other) or self.low <= value <= self.high

    def at(self, unit: float) -> ParamValue:
        """The value at `unit` in [0, 1]; equal lengths are equally likely under random sampling."""
        if self.kind == "categorical":
            return self.values[min(int(unit * len(self.values)), len(self.values) - 1)]
        if self.other is not None:
            if unit < OTHER_SHARE:
                return self.other
            unit = (unit - OTHER_SHARE) / (1 - OTHER_SHARE)
        margin = 0.5 if self.kind == "int" else 0.0  # so that both ends are as likely as the others
        value = _between(self.low - margin, self.high + margin, unit, self.log)
        value = min(max(value, self.low), self.high)
        return min(max(round(value), int(self.low)), int(self.high)) if self.kind == "int" else value

    def middle(self) -> ParamValue:
        """The value in the middle of the range, or of the list."""
        return self.at(0.5 if self.other is None else OTHER_SHARE + 0.5 * (1 - OTHER_SHARE))

    def distance(self, one: ParamValue, two: ParamValue) -> float:
        """How far two values lie apart: 1 for different categories, a share of the range for numbers."""
        if same(one, two):
            return 0.0
        if self.kind == "categorical" or same(one, self.other) or same(two, self.other):
            return 1.0
        a, b, low, high = (float(x) for x in (one, two, self.low, self.high))
        if self.log:
            a, b, low, high = (math.log(x) for x in (a, b, low, high))
        return abs(a - b) / (high - low) if high > low else 0.0

    def view(self, base: ParamValue | None) -> LeverAxis:
        """The axis for plots and tables."""
        if self.kind == "categorical":
            return LeverAxis(self.name, "categorical", None, None, self.values, base)
        scale = "log" if self.log else "int" if self.kind == "int" else "linear"
        beside = () if self.other is None else (self.other,)
        return LeverAxis(self.name, scale, self.low, self.high, beside, base)


def same(one: Any, two: Any) -> bool:
    """Equality that keeps True apart from 1 (both are lever values)."""
    return one == two and isinstance(one, bool) == isinstance(two, bool)


def parse_axis(word: str, content: Any) -> Axis:
    """The axis that a study writes as `word: content`.

    `{min, max, log, or}` is a range, `{values: […]}` or a plain list is a choice.

    Raises:
        ConfigError: unknown lever or key, text instead of a number, or a value the lever cannot take.
    """
    lever = catalog.by_name(word)
    where = f"space: {word}"
    if isinstance(content, list):
        content = {"values": content}
    if not isinstance(content, Mapping):
        raise ConfigError(f"{where} = {content!r} must be a range {{min: …, max: …}} or a list of values.")
    for key in content:
        if key not in _KEYS:
            raise ConfigError(
                f"{where}: unknown key '{key}'.{nearest(str(key), _KEYS)} Known: {', '.join(_KEYS)}."
            )
    content = _from_wandb(where, content)
    if "values" in content:
        return _choice(where, lever.name, lever.path, content)
    return _range(where, lever.name, lever.path, content)


def _from_wandb(where: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Without `distribution`, a word of W&B sweeps."""
    rest = {key: value for key, value in content.items() if key != "distribution"}
    word = content.get("distribution")
    if word is None:
        return rest
    if word not in _WANDB_DISTRIBUTIONS:
        hint = " Its bounds are exponents; did you mean log_uniform_values?" if word == "log_uniform" else ""
        raise ConfigError(
            f"{where}: distribution = {word!r} is not understood.{hint} "
            f"Known: {', '.join(_WANDB_DISTRIBUTIONS)}."
        )
    return rest | ({"log": True} if word == "log_uniform_values" else {})


def _choice(where: str, name: str, path: str, content: Mapping[str, Any]) -> Axis:
    values = content["values"]
    if set(content) != {"values"}:
        extra = ", ".join(sorted(set(content) - {"values"}))
        raise ConfigError(
            f"{where}: 'values' stands alone; leave out {extra} (add such a value to the list)."
        )
    if not isinstance(values, list) or not values:
        raise ConfigError(f"{where}: values = {values!r} must be a list with at least one value.")
    for number, value in enumerate(values):
        if isinstance(value, list | Mapping) or value is None:
            raise ConfigError(
                f"{where}: {value!r} cannot be searched; values are numbers, text, true or false."
            )
        _check(where, path, value)
        if any(same(value, earlier) for earlier in values[:number]):
            raise ConfigError(f"{where}: {value!r} is listed twice.")
    if _is_float(path):
        values = [float(value) for value in values]
    return Axis(name, path, "categorical", values=tuple(values))


def _range(where: str, name: str, path: str, content: Mapping[str, Any]) -> Axis:
    if "min" not in content or "max" not in content:
        raise ConfigError(
            f"{where}: a range needs min and max; a choice needs values. Found: {dict(content)}."
        )
    low, high, log = content["min"], content["max"], content.get("log", False)
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: log = {log!r} must be true or false.")
    for key in ("min", "max"):
        _check(where, path, content[key], key)
        if isinstance(content[key], bool) or not isinstance(content[key], int | float):
            raise ConfigError(
                f"{where}: {key} = {content[key]!r} must be a number; for choices write values: […]."
            )
    if not low < high:
        raise ConfigError(f"{where}: min = {low!r} must be below max = {high!r}.")
    if log and low <= 0:
        raise ConfigError(
            f"{where}: min = {low!r} has no logarithm. Give min > 0; to try 0 as well, write {{…, or: 0}}."
        )
    other = content.get("or")
    if other is not None:
        _check(where, path, other, "or")
        if isinstance(other, bool) or not isinstance(other, int | float) or low <= other <= high:
            raise ConfigError(f"{where}: or = {other!r} must be a number outside [{low!r}, {high!r}].")
    if _is_float(path):
        low, high, other = float(low), float(high), None if other is None else float(other)
        return Axis(name, path, "float", low, high, log, other=other)
    return Axis(name, path, "int", low, high, log, other=other)


def _is_float(path: str) -> bool:
    annotation = tree.leaves()[path].annotation
    return float in (annotation, *getattr(annotation, "__args__", ()))


def _check(where: str, path: str, value: Any, key: str = "") -> None:
    """Refuse what the schema would refuse."""
    from pydantic import TypeAdapter, ValidationError

    field = tree.leaves()[path]
    kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    adapter = TypeAdapter(kind)
    try:
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{where}: {key or 'value'} = {value!r} is not finite.")
        adapter.validate_python(value, strict=True)
    except ValidationError as error:
        hint = " It is text here; write the number without quotes." if _is_number(value) else ""
        label = f"{key} = {value!r}" if key else f"{value!r}"
        raise ConfigError(f"{where}: {label} must be {tree.allowed(path)}.{hint}") from error


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def _between(low: float, high: float, share: float, log: bool) -> float:
    return (
        math.exp(_between(math.log(low), math.log(high), share, False)) if log else low + (high - low) * share
    )
