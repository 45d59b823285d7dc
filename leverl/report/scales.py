"""Where a lever's value lies on its axis, in the scale it is searched in, and what is written there."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from leverl.report import numbers
from leverl.tune.model import LeverAxis, ParamValue

ABSENT: Final = -0.22
"""Place of a lever that does not apply."""

BESIDE: Final = -0.11
"""Place of a value beside the range (`or: 0`), or outside what the scale can show."""

_APART: Final = 0.07  # two ticks that are closer would overlap
_ODDS: Final = (0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999)

_SCALES: Final[dict[str, Callable[[float], float]]] = {
    "log": math.log,
    "pow2": math.log2,
    "logit": lambda x: math.log(x / (1 - x)),
}
Tick = tuple[float, str]


@dataclass(frozen=True)
class LeverScale:
    """An axis from 0 to 1; ABSENT and BESIDE lie below it."""

    title: str
    low: float
    high: float
    kind: str = "linear"  # linear, int, log, pow2 or logit
    choices: tuple[str, ...] = ()
    beside: tuple[ParamValue, ...] = ()

    @property
    def name(self) -> str:
        """The title, with the scale where it is not linear."""
        return f"{self.title} ({self.kind})" if self.kind in ("log", "logit") else self.title

    def place(self, value: ParamValue | None) -> float:
        if value is None:
            return ABSENT
        if self.choices:
            word = numbers.exact(value)
            if word not in self.choices:
                return BESIDE
            return (self.choices.index(word) + 0.5) / len(self.choices)
        if self.aside(value):
            return BESIDE
        low, high, at = (self._on_scale(float(x)) for x in (self.low, self.high, value))
        return 0.5 if high == low else (at - low) / (high - low)

    def aside(self, value: ParamValue) -> bool:
        """Whether the value lies beside the range."""
        if self.choices:
            return False
        if isinstance(value, str | bool) or value in self.beside:
            return True
        if self.kind in ("log", "pow2"):
            return value <= 0
        return self.kind == "logit" and not 0 < value < 1

    def ticks(self, used: Iterable[ParamValue | None] = (), apart: float = _APART) -> list[Tick]:
        """Place and words, at least `apart`; with those below the axis that `used` values need."""
        values = list(used)
        found = self._inside(apart)
        if any(value is None for value in values):
            found.append((ABSENT, numbers.UNKNOWN))
        aside = dict.fromkeys(numbers.exact(v) for v in values if v is not None and self.aside(v))
        if aside:
            found = [tick for tick in found if abs(tick[0] - BESIDE) > apart or tick[0] == ABSENT] + [
                (BESIDE, " ".join(aside))
            ]
        return found

    def _inside(self, apart: float) -> list[Tick]:
        if self.choices:
            return [((index + 0.5) / len(self.choices), choice) for index, choice in enumerate(self.choices)]
        ends = (self.low, self.high)
        kept: list[float] = []
        for value in sorted({*ends, *self._between()}, key=lambda v: (v not in ends, v)):
            if all(abs(self.place(value) - self.place(other)) > apart for other in kept):
                kept.append(value)
        return [(self.place(value), numbers.short(value)) for value in kept]

    def _between(self) -> list[float]:
        """Values worth a tick between the ends."""
        if self.kind == "log":
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            decades = [10.0**power for power in range(first, last + 1)]
            return decades if len(decades) <= 5 else decades[:: math.ceil(len(decades) / 4)]
        if self.kind == "pow2":
            first, last = math.ceil(math.log2(self.low)), math.floor(math.log2(self.high))
            return [2.0**power for power in range(first, last + 1)]
        if self.kind == "logit":
            return [value for value in _ODDS if self.low < value < self.high]
        if self.kind == "int":
            return [float(value) for value in range(math.ceil(self.low), math.floor(self.high) + 1)]
        return [(self.low + self.high) / 2]

    def _on_scale(self, value: float) -> float:
        transform = _SCALES.get(self.kind)
        return value if transform is None else transform(value)


def lever_scale(lever: LeverAxis, used: Iterable[ParamValue | None] = ()) -> LeverScale:
    """The scale of a lever, wide enough for the values `used` (the base may lie outside the range)."""
    values = [value for value in used if value is not None]
    known = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if lever.low is None or lever.high is None or len(known) < len(values):
        choices = dict.fromkeys(numbers.exact(value) for value in (*lever.values, *values))
        return LeverScale(lever.name, 0, 1, choices=tuple(choices))
    kind = lever.scale if lever.scale in ("int", *_SCALES) else "linear"
    if kind in ("log", "pow2") and lever.low <= 0:
        kind = "linear"
    narrow = LeverScale(lever.name, lever.low, lever.high, kind, beside=lever.values)
    inside = [value for value in known if not narrow.aside(value)]
    low, high = min(lever.low, *inside, lever.high), max(lever.high, *inside, lever.low)
    return LeverScale(lever.name, low, high, kind, beside=lever.values)


def range_words(lever: LeverAxis) -> str:
    """What was searched: `1e-6 … 0.01 (log), or 0`."""
    if lever.low is None or lever.high is None:
        return ", ".join(numbers.exact(value) for value in lever.values)
    scale = f" ({_KINDS[lever.scale]})" if lever.scale in _KINDS else ""
    beside = "".join(f", or {numbers.exact(value)}" for value in lever.values)
    return f"{numbers.exact(lever.low)} … {numbers.exact(lever.high)}{scale}{beside}"


_KINDS: Final = {"log": "log", "logit": "logit", "pow2": "powers of two"}


def edge(lever: LeverAxis, value: ParamValue | None, share: float) -> str:
    """`lower` or `upper` where the value lies within `share` of an end of the range searched, else empty.

    Whole numbers count where they are an end of three or more; a list of words has no ends.
    """
    if lever.low is None or lever.high is None or value is None or isinstance(value, str | bool):
        return ""
    scale = lever_scale(lever)
    if lever.high <= lever.low or scale.aside(value):
        return ""
    if lever.scale in ("int", "pow2"):
        few = lever.high - lever.low < 2 if lever.scale == "int" else lever.high < 4 * lever.low
        if few:
            return ""
    place = scale.place(value)
    return "lower" if place <= share else "upper" if place >= 1 - share else ""
