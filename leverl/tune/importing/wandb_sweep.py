"""A W&B sweep file in the words of a study file. Words of ours beside W&B's stay as they are."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.importing.words import lever_called

SWEEP_WORDS: Final = (
    "method", "metric", "parameters", "early_terminate", "run_cap", "program", "command", "entity", "project",
    "description", "controller", "job", "image_uri",
)  # fmt: skip

DEFAULT_TARGET: Final = "grpo"

_METHODS: Final = {"grid": "grid", "random": "random", "bayes": "bayes"}
_OURS: Final = {"method": "strategy", "metric": "objective", "parameters": "space"}
_SERVICE: Final = ("entity", "project", "controller", "job", "image_uri")
_MOST_LISTED: Final = 32
"""Values up to which quantised logarithmic ranges become lists."""

Content = Mapping[str, Any]


@dataclass(frozen=True)
class Translation:
    """What a sweep file says as a study, what of it was left out, and what is to know about the rest."""

    study: dict[str, Any]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def is_sweep(content: Content) -> bool:
    """Whether the file has words that only sweeps have."""
    return any(word in content for word in SWEEP_WORDS)


def translate(content: Content) -> Translation:
    """A sweep as a study: `method`, `metric`, `parameters`, `early_terminate`, `run_cap`, and the program.

    Raises:
        ConfigError: no goal, an unknown method, a word of ours beside W&B's for the same, exponents that cannot be
            meant, or no parameter that fits.
    """
    for theirs, ours in _OURS.items():
        if theirs in content and ours in content:
            raise ConfigError(f"'{theirs}' and '{ours}' mean the same, and both are given. Keep one.")
    left_out: list[str] = []
    notes: list[str] = []
    study = {word: value for word, value in content.items() if word not in SWEEP_WORDS}
    study |= _method(content) | _objective(content, left_out)
    if "parameters" in content:
        fixed, study["space"] = _parameters(content["parameters"], left_out, notes)
    else:
        fixed = {}
    study["target"] = _target(content, fixed, left_out, notes)
    if "run_cap" in content:
        study["budget"] = {**(content.get("budget") or {}), "trials": content["run_cap"]}
    _stopping(content, left_out, notes)
    left_out += [f"{word}: belongs to W&B's service." for word in _SERVICE if word in content]
    if "description" in content:
        left_out.append("description: studies have none; write a comment.")
    return Translation(study, tuple(left_out), tuple(notes))


def _method(content: Content) -> dict[str, Any]:
    if "method" not in content:
        return {}
    method = content["method"]
    if method not in _METHODS:
        raise ConfigError(
            f"method = {method!r} is not known.{nearest(str(method), _METHODS)} Known: {', '.join(_METHODS)}."
        )
    return {"strategy": _METHODS[method]}


def _objective(content: Content, left_out: list[str]) -> dict[str, Any]:
    if "metric" not in content:
        return {}
    metric = content["metric"]
    if not isinstance(metric, Mapping) or "name" not in metric:
        raise ConfigError(f"metric = {metric!r} must hold name and goal.")
    if metric.get("goal") not in ("maximize", "minimize"):
        raise ConfigError(
            f"metric: goal = {metric.get('goal')!r}: write goal: maximize or goal: minimize. A sweep without it "
            "minimises, a study maximises, so nothing is assumed."
        )
    others = sorted(metric.keys() - {"name", "goal"})
    left_out += [f"metric.{word}: a study ends with its budget, not at a value." for word in others]
    return {"objective": {"name": metric["name"], "goal": metric["goal"]}}


def _target(content: Content, fixed: dict[str, Any], left_out: list[str], notes: list[str]) -> dict[str, Any]:
    """What is trained, with the parameters that have one value."""
    left_out += [
        f"{word}: a study does not run other programs; it trains a target, so far only target: leverl."
        for word in ("program", "command")
        if word in content
    ]
    given = content.get("target")
    if given is None:
        notes.append(
            f"no target: the recipe {DEFAULT_TARGET} is trained. Write target: {{leverl: RECIPE or FILE}}."
        )
        given = {"leverl": DEFAULT_TARGET}
    if not isinstance(given, Mapping):
        raise ConfigError(f"target = {given!r} must be {{leverl: RECIPE or FILE}}.")
    settings = {**fixed, **(given.get("set") or {})}
    return {**given, "set": settings} if settings else dict(given)


def _stopping(content: Content, left_out: list[str], notes: list[str]) -> None:
    rule = content.get("early_terminate")
    if rule is None:
        return
    notes.append(
        "early_terminate: runs end early by leverl's own rules, which are on unless stopping: says otherwise."
    )
    if isinstance(rule, Mapping):
        numbers = ", ".join(f"{word} = {value}" for word, value in rule.items())
        left_out.append(f"early_terminate ({numbers}): the rules have no such numbers.")


def _parameters(content: Any, left_out: list[str], notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Levers with one value, and the space of the others."""
    if not isinstance(content, Mapping) or not content:
        raise ConfigError(f"parameters = {content!r} must name at least one parameter.")
    fixed: dict[str, Any] = {}
    space: dict[str, Any] = {}
    for word, said in content.items():
        try:
            lever = lever_called(str(word)).name
        except ConfigError as error:
            left_out.append(f"parameter {word}: {error}")
            continue
        if lever in fixed or lever in space:
            raise ConfigError(f"parameters: {word} is {lever}, which is there already.")
        if lever != word:
            notes.append(f"parameter {word} is {lever}.")
        found = _parameter(str(word), said, left_out, notes)
        if found is not None:
            if set(found) == {"value"}:
                fixed[lever] = found["value"]
            else:
                space[lever] = found
    if not space:
        reasons = "\n".join(left_out) or "All have a single value."
        raise ConfigError(f"parameters: none can be searched here.\n{reasons}")
    return fixed, space


def _parameter(word: str, said: Any, left_out: list[str], notes: list[str]) -> dict[str, Any] | None:
    """One parameter in a study's words; `value` alone for a constant; None where it cannot be said."""
    if not isinstance(said, Mapping):
        raise ConfigError(f"parameters: {word} = {said!r} must hold value, values, or min and max.")
    if "parameters" in said:
        left_out.append(f"parameter {word}: nested parameters have no counterpart; name each by itself.")
        return None
    if "value" in said:
        return {"value": said["value"]}
    if "values" in said:
        if "probabilities" in said:
            left_out.append(f"parameter {word}: probabilities; all values are searched alike.")
        values = list(said["values"])
        return {"value": values[0]} if len(values) == 1 else {"values": values}
    kind = said.get("distribution", "uniform")
    if kind not in _DISTRIBUTIONS:
        left_out.append(
            f"parameter {word}: distribution {kind} has no bounds or is not known."
            f"{nearest(str(kind), _DISTRIBUTIONS)} Write min and max with uniform, "
            "int_uniform or log_uniform_values; prior: VALUE says where good values are expected."
        )
        return None
    for bound in ("min", "max"):
        if isinstance(said.get(bound), bool) or not isinstance(said.get(bound), int | float):
            raise ConfigError(f"parameters: {word}: {bound} = {said.get(bound)!r} must be a number.")
    return _DISTRIBUTIONS[kind](word, said, notes)


def _uniform(word: str, said: Content, notes: list[str]) -> dict[str, Any]:  # noqa: ARG001 - one of several
    return {"min": said["min"], "max": said["max"]}


def _log_values(word: str, said: Content, notes: list[str]) -> dict[str, Any]:  # noqa: ARG001
    return {"min": said["min"], "max": said["max"], "log": True}


def _q_uniform(word: str, said: Content, notes: list[str]) -> dict[str, Any]:
    """W&B rounds to multiples of q; steps here begin at min, so that the ends are rounded first."""
    step = said.get("q", 1)
    low, high = (_plain(round(said[bound] / step) * step) for bound in ("min", "max"))
    if (low, high) != (said["min"], said["max"]):
        notes.append(f"parameter {word}: its ends are multiples of q = {step}: {low!r} and {high!r}.")
    return {"min": low, "max": high, "step": _plain(step)}


def _q_log_values(word: str, said: Content, notes: list[str]) -> dict[str, Any]:
    step, low, high = said.get("q", 1), said["min"], said["max"]
    if step == 1 and isinstance(low, int) and isinstance(high, int):
        return {"min": low, "max": high, "log": True}
    first, last = round(low / step), round(high / step)
    if last - first < _MOST_LISTED:
        notes.append(f"parameter {word}: a logarithmic range in steps is searched as a list of values.")
        return {"values": [_plain(place * step) for place in range(first, last + 1)]}
    notes.append(
        f"parameter {word}: steps of {step} in a logarithmic range are too many; searched without steps."
    )
    return {"min": low, "max": high, "log": True}


def _log_exponents(word: str, said: Content, notes: list[str]) -> dict[str, Any]:
    """Bounds are natural exponents: log_uniform from 1e-6 to 1e-4 searches 1.000001 … 1.0001."""
    low, high = math.exp(said["min"]), math.exp(said["max"])
    if said["min"] > 0:
        raise ConfigError(
            f"parameters: {word}: log_uniform takes exponents, so min = {said['min']!r} and max = {said['max']!r} mean "
            f"{low:.7g} … {high:.7g}. Write log_uniform_values for the values themselves."
        )
    content = {"min": float(f"{low:.6g}"), "max": float(f"{high:.6g}"), "log": True}
    notes.append(
        f"parameter {word}: exponents {said['min']!r} … {said['max']!r} are {content['min']} … {content['max']}."
    )
    return content


def _plain(number: float) -> float:
    """Whole numbers without a point, others without the dust of binary fractions."""
    return int(number) if number == int(number) else float(f"{number:.12g}")


_DISTRIBUTIONS: Final[dict[str, Callable[[str, Content, list[str]], dict[str, Any]]]] = {
    "uniform": _uniform,
    "int_uniform": _uniform,
    "q_uniform": _q_uniform,
    "log_uniform_values": _log_values,
    "inv_log_uniform_values": _log_values,  # the logarithm of 1/x is uniform where that of x is
    "q_log_uniform_values": _q_log_values,
    "log_uniform": _log_exponents,
}
