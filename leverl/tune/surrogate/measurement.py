"""A run as the surrogate sees it."""

from dataclasses import dataclass
from typing import Literal

from leverl.tune.model import Params

State = Literal["finished", "predicted", "pending", "failed"]


@dataclass(frozen=True)
class Measurement:
    """One run of a configuration.

    `finished` and `predicted` (stopped early, judged by its curve) runs have a value; `pending` and `failed` ones
    have none. Losses of the infrastructure are no measurements at all.
    """

    params: Params  # active levers only
    value: float | None  # larger is better; None when pending or failed
    variance: float  # known error variance of `value` itself, without the spread between seeds; 0 if unknown
    state: State
    cost: float | None = None  # seconds at full length
    allowed: bool = True  # keeps the bounds that the study sets on other metrics
