"""What a lever is: one hyperparameter, described once for cards, search spaces, checks and patches."""

from dataclasses import dataclass, field
from typing import Literal

Effect = Literal["learning", "cost", "logging"]
Scale = Literal["linear", "log", "logit", "pow2", "int", "categorical"]


@dataclass(frozen=True)
class SearchRange:
    """Where a search looks by default: bounds for numbers, `values` for categories.

    `other` is a value of its own beside the range: 0 beside a log range (KL coefficients), 1 beside a logit one.
    `recommended` is the value that the articles or the frameworks advise, for a base that has none in the range.
    """

    scale: Scale
    low: float | None = None
    high: float | None = None
    values: tuple[str | float | int | bool, ...] = ()
    other: float | None = None
    recommended: float | None = None

    @property
    def zero(self) -> bool:
        return self.other == 0


@dataclass(frozen=True)
class Lever:
    """One hyperparameter. `path` is its place in the configuration, `name` the short form users type."""

    name: str
    path: str
    effect: Effect
    text: str
    zh: str
    too_low: str = ""
    too_high: str = ""
    advice: str = ""
    search: SearchRange | None = None
    verl: tuple[str, ...] = ()
    trl: tuple[str, ...] = ()
    aliases: tuple[str, ...] = field(default=())
