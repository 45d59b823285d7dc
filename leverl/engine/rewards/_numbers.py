"""Numbers as people write them in answers, compared exactly."""

import re
from fractions import Fraction
from math import gcd

_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)\s*(?:(?P<decimal>{_DECIMAL})"
    r"(?:[eE](?P<exponent>[+-]?\d{1,3})|\s*(?:\\times|\\cdot|×|\*)\s*10\s*(?:\^|\*\*)\s*\{?(?P<power>[+-]?\d{1,3})\}?)?"
    r"|(?P<whole>\d+)?\s*\\[dt]?frac\s*(?:\{\s*(?P<top>\d+)\s*\}\s*\{\s*(?P<bottom>\d+)\s*\}|(?P<digits>\d\d))"
    r"|(?:(?P<and>\d+)\s+)?(?P<over>\d+)\s*/\s*(?P<under>\d+))\s*(?P<percent>\\?%)?",
    re.ASCII,
)
_UNIT = re.compile(
    r"(?P<number>.*?[\d}%])\s+(?P<unit>[A-Za-z°]{2,}(?:/[A-Za-z]+)?(?:\^?\{?\d\}?)?)", re.DOTALL
)
_NO_UNITS = frozenset(("or", "and", "not", "no", "if", "to", "by", "mod", "wrong", "false"))
_DIGITS_AT_MOST = 1000  # int() refuses much longer ones


def same_number(given: str, wanted: str) -> bool | None:
    """Whether `given` states the number `wanted`; None if `wanted` is no number.

    "x = 5", "5 cm" and "2 + 3 = 5" state 5, but "2 + 3" does not, nor "10/2": a fraction must be in lowest
    terms, or repeating the question would be an answer. Units and variables must agree where both have one.
    x % is equal to x and to x / 100.
    """
    truth = _Statement(wanted)
    if truth.value is None or len(truth.sides) > 2 or (truth.sides[:-1] and truth.variable is None):
        return None
    answer = _Statement(given)
    if answer.value is None or not (answer.lowest_terms and answer.consistent):
        return False
    if answer.unit and truth.unit and answer.unit.casefold() != truth.unit.casefold():
        return False
    if answer.variable and truth.variable and answer.variable != truth.variable:
        return False
    if answer.percent == truth.percent:
        return answer.value == truth.value
    percent, other = (answer, truth) if answer.percent else (truth, answer)
    return percent.value == other.value or percent.value == 100 * (other.value or 0)


class _Statement:
    """`[side =] … number [unit]`; `value` is None if the last side is no number."""

    def __init__(self, text: str) -> None:
        self.sides = [side.strip() for side in text.split("=")]
        number, self.unit = _split_unit(self.sides[-1])
        match = _NUMBER.fullmatch(number) if len(number) <= _DIGITS_AT_MOST else None
        self.value = _value(match) if match else None
        self.percent = bool(match and match["percent"])
        self.lowest_terms = match is None or _in_lowest_terms(match)
        self.variable = (
            self.sides[0] if len(self.sides) > 1 and re.fullmatch(r"[A-Za-z]", self.sides[0]) else None
        )

    @property
    def consistent(self) -> bool:
        """False for "5 = 15": another side is a number, and another one."""
        matches = [_NUMBER.fullmatch(side) for side in self.sides[:-1] if len(side) <= _DIGITS_AT_MOST]
        return all(_value(match) == self.value for match in matches if match)


def _split_unit(text: str) -> tuple[str, str]:
    match = _UNIT.fullmatch(text)
    if match is None or match["unit"].lower() in _NO_UNITS:
        return text, ""
    return match["number"].strip(), match["unit"]


def _value(match: re.Match[str]) -> Fraction | None:
    sign = -1 if match["sign"] == "-" else 1
    if match["decimal"]:
        scale = Fraction(10) ** int(match["exponent"] or match["power"] or 0)
        return sign * Fraction(match["decimal"].replace(",", "")) * scale
    top, bottom = _fraction(match)
    return sign * (int(match["whole"] or match["and"] or 0) + Fraction(top, bottom)) if bottom else None


def _in_lowest_terms(match: re.Match[str]) -> bool:
    if match["decimal"]:
        return True
    top, bottom = _fraction(match)
    return bottom > 1 and gcd(top, bottom) == 1


def _fraction(match: re.Match[str]) -> tuple[int, int]:
    if match["digits"]:
        return int(match["digits"][0]), int(match["digits"][1])
    return int(match["top"] or match["over"]), int(match["bottom"] or match["under"])
