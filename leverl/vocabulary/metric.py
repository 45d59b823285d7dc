"""What a metric is: one series of a run, described once for tables, charts, readers and detectors."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["up", "down", "none"]


@dataclass(frozen=True)
class Metric:
    """One series. `direction` is where better lies; `none` where neither end is.

    A name or alias that ends in `*` stands for a family: every name that starts with the part before it.
    """

    name: str
    unit: str
    direction: Direction
    text: str
    zh: str
    aliases: tuple[str, ...] = ()
