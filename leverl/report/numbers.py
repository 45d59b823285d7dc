"""How numbers are written for people: never rounded to 0, never longer than what is known."""

import math
from collections.abc import Sequence
from itertools import pairwise

from leverl.tune.statistics import interval_places, mean_or_none

UNKNOWN = "–"
"""Stands where nothing was measured; never 0."""


def exact(value: float | int | str | bool | None) -> str:
    """The shortest text that reads back as the same value: `1e-6`, `0.001`, `256`, `true`; for settings."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    return _special(value) or _tidy(repr(float(value)))


def short(value: float | int | str | bool | None, digits: int = 3) -> str:
    """`digits` significant digits: 3.08e-6 stays 3.08e-6; whole numbers keep all theirs."""
    if not isinstance(value, float):
        return exact(value)
    if special := _special(value):
        return special
    if value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    if 10**digits <= abs(value) < 1e6:
        return f"{value:.0f}"
    return _tidy(f"{value:.{digits}g}")


def setting(value: float | int | str | bool | None) -> str:
    """A lever's value in a table: exact where that is short, three digits where a sampler drew seventeen."""
    text = exact(value)
    return text if len(text) <= 8 or not isinstance(value, float) else short(value)


def with_error(mean: float | None, error: float | None) -> str:
    """`0.61 ± 0.03`: as many places as the error has; without an error (n < 2) the bare mean."""
    if mean is None:
        return UNKNOWN
    if error is None or not math.isfinite(error) or not math.isfinite(mean):
        return short(mean)
    if error == 0:
        return f"{short(mean)} ± 0"
    places = _places(error)
    if places > 6 or abs(mean) >= 1e6:
        return f"{short(mean)} ± {short(error, 2)}"
    return f"{_minus(f'{mean:.{places}f}')} ± {error:.{places}f}"


def signed(value: float | None, error: float | None = None) -> str:
    """`+0.19`; with an error as many places as it has."""
    if value is None:
        return UNKNOWN
    return _plus(_minus(short(value) if error is None else with_error(value, error)), value)


def interval(low: float, high: float) -> str:
    """`+0.113 … +0.271`: as many places as the interval deserves."""
    return f"{signed_within(low, (low, high))} … {signed_within(high, (low, high))}"


def within(value: float, ends: tuple[float, float] | None) -> str:
    """`0.190`: a value with the places of its interval, where it has one."""
    places = interval_places(*ends) if ends is not None else None
    return _minus(short(value) if places is None else f"{value:.{places}f}")


def signed_within(value: float, ends: tuple[float, float] | None) -> str:
    """`+0.190`: the same of a difference."""
    return _plus(within(value, ends), value)


def _plus(text: str, value: float) -> str:
    return text if text.startswith("−") or value == 0 or math.isnan(value) else f"+{text}"


def percent(share: float | None) -> str:
    """`12 %`; below one percent with two digits, so that little never looks like none."""
    if share is None:
        return UNKNOWN
    if special := _special(share):
        return special
    value = 100 * share
    if 99.5 <= value < 100:
        return f"{min(value, 99.9):.1f} %"
    return f"{_minus(f'{value:.0f}') if abs(value) >= 9.5 else short(value, 2)} %"


def probability(chance: float | None) -> str:
    """`0.64`; never 0 or 1, which draws cannot show."""
    if chance is None:
        return UNKNOWN
    return "< 0.01" if chance < 0.005 else "> 0.99" if chance > 0.995 else f"{chance:.2f}"


def amount(count: float | None) -> str:
    """`950`, `3.1k`, `12M`: a count at a glance."""
    if count is None:
        return UNKNOWN
    if special := _special(float(count)):
        return special
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(count) >= 0.9995 * size:
            return f"{short(count / size, 2 if abs(count) < 99.5 * size else 3)}{unit}"
    return short(float(count))


def plural(count: int, word: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def clock(seconds: float | None) -> str:
    """`0:52`, `4:10`, `1:02:03`."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def duration(seconds: float | None) -> str:
    """`8.2 s`, `12 min`, `5.8 h`, `3.1 d`."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    for unit, size, until in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 48 * 3600)):
        if seconds < until:
            return f"{short(float(seconds) / size, 2)} {unit}"
    return f"{short(seconds / 86400, 2)} d"


def seeds_text(mean: float | None, error: float | None, seeds: int) -> str:
    """A configuration's score: `0.71 (1 seed)`, `0.71 ± 0.03 (3 seeds)`."""
    return UNKNOWN if mean is None else f"{with_error(mean, error)} ({plural(seeds, 'seed')})"


def sparkline(values: Sequence[float], width: int = 12) -> str:
    """The values as `▁▂▅█`, thinned to `width` by taking means; a gap where nothing finite is."""
    if not values:
        return ""
    columns = min(width, len(values))
    edges = [round(index * len(values) / columns) for index in range(columns + 1)]
    means = [_finite_mean(values[low:high]) for low, high in pairwise(edges)]
    known = [value for value in means if value is not None]
    if not known:
        return " " * columns
    low, span = min(known), max(known) - min(known)
    return "".join(" " if v is None else _BARS[_bar(v, low, span)] for v in means)


_BARS = "▁▂▃▄▅▆▇█"


def _bar(value: float, low: float, span: float) -> int:
    return 0 if span == 0 else min(7, int(8 * (value - low) / span))


def _finite_mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if math.isfinite(value)]
    return mean_or_none(known)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return ""


def _places(error: float) -> int:
    """Decimal places that show one digit of `error`, or two when the first is a 1."""
    exponent = math.floor(math.log10(error))
    first = error / 10**exponent
    return max(0, (1 if first < 1.95 else 0) - exponent)


def _tidy(text: str) -> str:
    """`1e-06` → `1e-6`, `1.0` → `1`, and a real minus sign is left to `_minus` (settings are copied)."""
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _minus(text: str) -> str:
    return text.replace("-", "−", 1) if text.startswith("-") else text
