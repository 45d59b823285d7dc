"""A condition that a study must meet, for pipelines: `gain > 0 at 95%`, `score >= 0.6`, `kl <= 0.05`."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.evidence.verdict import compare
from leverl.tune.model import BASE, CONFIRM, RunState, StudyView, Winner
from leverl.tune.statistics import interval_format, mean

LEVEL: Final = 95.0
"""Per cent; the level of a study's own verdict, and of a gain without `at`."""

QUANTITIES: Final = ("gain", "score", "kl")
EXAMPLES: Final = (
    '"gain > 0 at 95%", "gain > 0.02", "score >= 0.6", "kl <= 0.05", "gain > 0 at 95% and kl <= 0.05"'
)

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_NUMBER: Final = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_CONDITION: Final = re.compile(
    rf"(?P<quantity>\w+)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>{_NUMBER})(?:\s+at\s+(?P<level>{_NUMBER})\s*%)?"
)


@dataclass(frozen=True)
class Condition:
    """`quantity sign limit`; for a gain, the lower end of its interval at `level` per cent is what counts."""

    quantity: str
    sign: str
    limit: float
    level: float = LEVEL

    def __str__(self) -> str:
        at = f" at {self.level:g}%" if self.quantity == "gain" else ""
        return f"{self.quantity} {self.sign} {self.limit:g}{at}"

    def holds(self, value: float) -> bool:
        return _COMPARE[self.sign](value, self.limit)


@dataclass(frozen=True)
class GateResult:
    """Whether the conditions are met, and why in one line."""

    passed: bool
    text: str


@dataclass(frozen=True)
class Gate:
    """Conditions on the winner of a study, of which all must hold."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    def check(self, view: StudyView) -> GateResult:
        """Judge a study. What is not known is not met: no winner, no confirmation, nothing measured."""
        found = [_check(condition, view) for condition in self.conditions]
        return GateResult(all(part.passed for part in found), "; ".join(part.text for part in found))


def parse_gate(text: str) -> Gate:
    """The gate that `text` describes; see EXAMPLES.

    Raises:
        ConfigError: not understood; says which part, and shows what is.
    """
    parts = re.split(r"\s+and\s+", text.strip())
    return Gate(tuple(_parse(part, text) for part in parts))


def _parse(part: str, text: str) -> Condition:
    match = _CONDITION.fullmatch(part.strip())
    if match is None:
        raise ConfigError(
            f"--fail-unless {text!r}: {part.strip()!r} is not understood. Examples: {EXAMPLES}."
        )
    quantity, sign, level = match["quantity"], match["sign"], match["level"]
    if quantity not in QUANTITIES:
        raise ConfigError(
            f"--fail-unless {text!r}: unknown quantity {quantity!r}.{nearest(quantity, QUANTITIES)} "
            f"Known: {', '.join(QUANTITIES)}. Examples: {EXAMPLES}."
        )
    if level is not None and quantity != "gain":
        raise ConfigError(f"--fail-unless {text!r}: only a gain has a level. Leave out 'at {level}%'.")
    if quantity == "gain" and "<" in sign:
        raise ConfigError(f"--fail-unless {text!r}: a gain must be above something. Examples: {EXAMPLES}.")
    percent = LEVEL if level is None else float(level)
    if not 50 <= percent < 100:
        raise ConfigError(f"--fail-unless {text!r}: the level {level}% must be at least 50% and below 100%.")
    return Condition(quantity, sign, float(match["limit"]), percent)


def _check(condition: Condition, view: StudyView) -> GateResult:
    winner = view.winner
    if winner is None:
        return _unmet(condition, "the study has no winner yet")
    if condition.quantity == "gain":
        return _check_gain(condition, view, winner)
    runs = _fresh(view, winner)
    values = [value for state in runs if (value := _value(condition.quantity, state)) is not None]
    if not values:
        return _unmet(condition, f"no {condition.quantity} of {winner.config_id} on fresh seeds")
    value = mean(values)
    words = f"{condition.quantity} of {winner.config_id} {value:.4g}, {_seeds(len(values))}"
    return (
        GateResult(True, f"{condition}: met ({words})")
        if condition.holds(value)
        else _unmet(condition, words)
    )


def _check_gain(condition: Condition, view: StudyView, winner: Winner) -> GateResult:
    """By the paired interval on fresh seeds; nothing is a gain that the study's own verdict does not call one."""
    if winner.config_id == BASE:
        return _unmet(condition, winner.verdict)
    if not _confirmed(view):
        return _unmet(condition, "the budget ended before the confirmation was over")
    found = winner.comparison
    if condition.level != LEVEL:
        found = compare(view.history, winner.config_id, condition.level / 100)
    if found is None or found.interval is None:
        return _unmet(condition, "winner and base have too few scores on the same fresh seeds")
    low, high = found.interval
    number = interval_format(found.interval)
    words = f"{found.difference:+{number}}, interval {low:+{number}} … {high:+{number}}, {_seeds(len(found.seeds))}"
    passed = found.gain and condition.holds(low)
    return GateResult(True, f"{condition}: met ({words})") if passed else _unmet(condition, words)


def _confirmed(view: StudyView) -> bool:
    """Whether all runs of the confirmation are over."""
    over = [state for state in view.history.in_phase(CONFIRM) if state.outcome is not None]
    return len(over) >= view.planned.get(CONFIRM, 0)


def _fresh(view: StudyView, winner: Winner) -> tuple[RunState, ...]:
    """The winner's runs on seeds that did not choose it. The base was not chosen, so all of its runs count."""
    return view.history.of(winner.config_id, None if winner.config_id == BASE else CONFIRM)


def _value(quantity: str, state: RunState) -> float | None:
    if not state.scored:
        return None
    return state.kl if quantity == "kl" else state.score.mean if state.score else None


def _unmet(condition: Condition, why: str) -> GateResult:
    return GateResult(False, f"{condition}: not met ({why})")


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"
