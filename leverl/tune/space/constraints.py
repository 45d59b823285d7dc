"""The constraints of a study: conditions on levers, and bounds on what a run measures.

A condition on levers (`batch_size % group_size == 0`) is checked before a run starts. A bound on a metric
(`kl_divergence <= 0.1`) can only be checked afterwards; the metric stands alone on its side of the comparison.
`a/b` without spaces is looked up as a whole first: a known metric (`eval/score`) is that metric, everything else a
quotient, as `a / b` always is. A word without a slash that names a lever and a metric (`lr`, `kl`) is the lever.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.space.expressions import Expression, parse
from leverl.vocabulary import catalog
from leverl.vocabulary.metrics import METRICS, is_metric, metric

_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_MIRRORED: Final = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}
_SPLIT: Final = re.compile(r"(<=|>=|==|!=|<|>)")
_WORD: Final = re.compile(r"[^\W\d][\w.@-]*(?:/[\w.@-]+)*")
_QUOTIENT: Final = re.compile(r"(?<![\w./])[^\W\d][\w.]*(?:/[^\W\d][\w.@]*)+")
_ALONE: Final = "A metric stands alone, as in `kl_divergence <= 0.1`; give each bound a line of its own."


@dataclass(frozen=True)
class MetricConstraint:
    """A bound on a metric of a finished run."""

    metric: str  # canonical name
    operator: str  # <=, >=, < or >
    bound: float
    text: str  # as the study wrote it

    def holds(self, value: float) -> bool:
        """Whether the bound is kept; not for NaN."""
        return _COMPARISONS[self.operator](value, self.bound)


def parse_constraints(
    texts: Iterable[str],
) -> tuple[tuple[Expression, ...], tuple[MetricConstraint, ...]]:
    """Conditions on levers, and bounds on metrics.

    Raises:
        ConfigError: a constraint is no condition, mixes metrics with anything else, or uses an unknown word.
    """
    conditions: list[Expression] = []
    bounds: list[MetricConstraint] = []
    for text in texts:
        found = _bounds(text) if isinstance(text, str) else []
        if found:
            bounds += found
        else:
            conditions.append(_condition(text))
    return tuple(conditions), tuple(bounds)


def _condition(text: str) -> Expression:
    if isinstance(text, str):
        _refuse_metrics_in_quotients(text)
    condition = parse(text)
    for name in condition.names:
        if not catalog.is_lever(name) and is_metric(name):
            raise ConfigError(f"constraint '{text}': {name} is a metric. {_ALONE}")
        try:
            catalog.by_name(name)
        except ConfigError as error:
            raise ConfigError(f"constraint '{text}': {error}") from error
    return condition


def _refuse_metrics_in_quotients(text: str) -> None:
    for word in _QUOTIENT.findall(text):
        if is_metric(word):
            raise ConfigError(f"constraint '{text}': {word} is a metric. {_ALONE}")
        unknown = [part for part in word.split("/") if not catalog.is_lever(part)]
        if unknown:
            raise ConfigError(
                f"constraint '{text}': {word} is no metric, and {unknown[0]} no lever to divide."
                f"{_hint(word, unknown[0])}"
            )


def _hint(word: str, unknown: str) -> str:
    last = word.rsplit("/", 1)[-1]
    if is_metric(last):
        return f" Did you mean '{metric(last).name}'?"
    return nearest(word, [entry.name for entry in METRICS]) or nearest(
        unknown, [lever.name for lever in catalog.LEVERS]
    )


def _bounds(text: str) -> list[MetricConstraint]:
    """The bounds that `text` sets on a metric; none when no side of it is a metric."""
    parts = [part.strip() for part in _SPLIT.split(text)]
    sides, signs = parts[0::2], parts[1::2]
    places = [place for place, side in enumerate(sides) if _is_metric(side)]
    if not places:
        return []
    in_form = len(sides) == 2 or (len(sides) == 3 and places == [1])
    if len(places) > 1 or not in_form:
        raise ConfigError(f"constraint '{text}' compares {sides[places[0]]} with too much. {_ALONE}")
    place = places[0]
    name = metric(sides[place]).name
    left = [_bound(text, name, _MIRRORED.get(signs[0], ""), sides[0])] if place == 1 else []
    right = [_bound(text, name, signs[place], sides[place + 1])] if place < len(signs) else []
    return left + right


def _bound(text: str, name: str, sign: str, side: str) -> MetricConstraint:
    if sign not in _COMPARISONS:
        raise ConfigError(
            f"constraint '{text}': a metric is bounded by <=, >=, < or >, for it never hits a number exactly."
        )
    try:
        bound = float(side)
    except ValueError as error:
        raise ConfigError(
            f"constraint '{text}': '{side}' is no number to bound {name} by. {_ALONE}"
        ) from error
    if not math.isfinite(bound):
        raise ConfigError(f"constraint '{text}': the bound {side} is not finite.")
    return MetricConstraint(name, sign, bound, text)


def _is_metric(side: str) -> bool:
    return bool(_WORD.fullmatch(side)) and not catalog.is_lever(side) and is_metric(side)
