"""An axis in the words of a study file, read and written."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from leverl.config import tree
from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.model import ParamValue
from leverl.tune.space.axis import Axis, Kind, Scale, same
from leverl.tune.space.priors import Prior
from leverl.vocabulary import catalog
from leverl.vocabulary.lever import Lever

_SCALES: Final[tuple[Scale, ...]] = ("log", "logit", "pow2")
_KEYS: Final = ("min", "max", *_SCALES, "step", "or", "prior", "values", "distribution")
_NO_PRIOR: Final = "none"
_WANDB_DISTRIBUTIONS: Final = ("uniform", "int_uniform", "log_uniform_values", "categorical")


def parse_axis(word: str, content: Any, base: Any = None) -> Axis:
    """The axis that a study writes as `word: content`; `base` is the base configuration's value of the lever.

    `{min, max}` is a range, with `log`, `logit` or `pow2: true`, or with `step`; `or: 0` adds a value beside it.
    `{values: […]}` or a plain list is a choice. `prior: 3e-4` says where good values are expected, `prior: none`
    that nothing is known; without it the base's value is expected to be good, as far as it lies in the range, or
    else the value that the lever's description recommends.

    Raises:
        ConfigError: unknown lever or key, words that exclude each other, text instead of a number, or a value
            the lever cannot take.
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
        return _choice(where, lever, content)
    return _with_prior(where, _range(where, lever, content), content, (base, _recommended(lever)))


def axis_in_words(axis: Axis) -> Any:
    """What a study file says for `axis`; `parse_axis` reads it back, prior included."""
    if axis.kind == "categorical":
        return list(axis.values)
    words: dict[str, Any] = {"min": axis.low, "max": axis.high}
    if axis.scale != "linear":
        words[axis.scale] = True
    if axis.step is not None:
        words["step"] = axis.step
    if axis.other is not None:
        words["or"] = axis.other
    return words | {"prior": _NO_PRIOR if axis.prior is None else _short(axis.at(axis.prior.center))}


def _short(value: ParamValue) -> ParamValue:
    return float(f"{value:.12g}") if isinstance(value, float) else value


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


def _choice(where: str, lever: Lever, content: Mapping[str, Any]) -> Axis:
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
        _check(where, lever.path, value)
        if any(same(value, earlier) for earlier in values[:number]):
            raise ConfigError(f"{where}: {value!r} is listed twice.")
    if _is_float(lever.path):
        values = [float(value) for value in values]
    return Axis(lever.name, lever.path, "categorical", values=tuple(values))


def _range(where: str, lever: Lever, content: Mapping[str, Any]) -> Axis:
    if "min" not in content or "max" not in content:
        raise ConfigError(
            f"{where}: a range needs min and max; a choice needs values. Found: {dict(content)}."
        )
    scale = _scale(where, content)
    low, high, step = (_number(where, lever.path, content, key) for key in ("min", "max", "step"))
    other = _number(where, lever.path, content, "or")
    if not low < high:
        raise ConfigError(f"{where}: min = {low!r} must be below max = {high!r}.")
    kind: Kind = "float" if _is_float(lever.path) else "int"
    if kind == "float":
        low, high, step, other = (None if x is None else float(x) for x in (low, high, step, other))
    try:
        return Axis(lever.name, lever.path, kind, low, high, scale, step, other=other)
    except ConfigError as error:
        raise ConfigError(f"space: {error}") from error


def _scale(where: str, content: Mapping[str, Any]) -> Scale:
    for key in _SCALES:
        if not isinstance(content.get(key, False), bool):
            raise ConfigError(f"{where}: {key} = {content[key]!r} must be true or false.")
    chosen = [key for key in _SCALES if content.get(key)]
    if len(chosen) > 1:
        raise ConfigError(f"{where}: {' and '.join(chosen)} exclude each other: a range has one scale.")
    return chosen[0] if chosen else "linear"


def _number(where: str, path: str, content: Mapping[str, Any], key: str) -> Any:
    """The number that stands under `key`; None where there is none."""
    value = content.get(key)
    if value is None and key not in ("min", "max"):
        return None
    if key != "step":  # a step is a distance: no value of the lever
        _check(where, path, value, key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where}: {key} = {value!r} must be a number; for choices write values: […].")
    return value


def _with_prior(where: str, axis: Axis, content: Mapping[str, Any], fallbacks: Sequence[Any]) -> Axis:
    """`axis` with a prior around the value that the study names, or the first fallback inside the range."""
    if "prior" in content:
        word = content["prior"]
        if word is None or word is False or word == _NO_PRIOR:
            return axis
        if not _inside(axis, word):
            raise ConfigError(
                f"{where}: prior = {word!r} must be a number in the range, where good values are expected, or none."
            )
        fallbacks = (word,)
    for value in fallbacks:
        if _inside(axis, value):
            return replace(axis, prior=Prior(axis.unit(axis.snap(value) or 0)))
    return axis


def _inside(axis: Axis, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return axis.low <= value <= axis.high or axis.contains(value)


def _recommended(lever: Lever) -> float | None:
    return None if lever.search is None else lever.search.recommended


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
        hint = " It is text here; write the number without quotes." if _is_number_as_text(value) else ""
        label = f"{key} = {value!r}" if key else f"{value!r}"
        raise ConfigError(f"{where}: {label} must be {tree.allowed(path)}.{hint}") from error


def is_accepted(path: str, value: Any) -> bool:
    """Whether the schema lets the lever at `path` have `value`."""
    try:
        _check("", path, value)
    except ConfigError:
        return False
    return True


def _is_number_as_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True
