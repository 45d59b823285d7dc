"""The levers of a task in words that every tuner of another package has."""

from dataclasses import dataclass

from tasks.task import Task

from leverl.tune.model import ParamValue
from leverl.tune.space.axis import Axis


@dataclass(frozen=True)
class Dimension:
    """An axis in words that every peer has: a range of floats, or countable `levels`, in order where they have one.

    Ordered levels are given to peers as whole numbers (their place in the list), so that peers know which are
    neighbours and a list of powers is what a logarithmic range would be. Ax takes the values themselves, as an
    ordered choice, which it treats the same way.
    """

    name: str
    levels: tuple[ParamValue, ...] = ()
    ordered: bool = True
    low: float = 0.0
    high: float = 1.0
    log: bool = False

    def place(self, value: ParamValue) -> int:
        return self.levels.index(value)


def dimensions(task: Task) -> list[Dimension]:
    """The axes of a task for peers.

    Raises:
        ValueError: an axis that not all peers have words for: a value beside its range, a logit scale, or whole
            numbers on a log scale.
    """
    return [_dimension(axis) for axis in task.axes]


def _dimension(axis: Axis) -> Dimension:
    whole_log = axis.kind == "int" and axis.scale == "log"
    if axis.other is not None or axis.scale == "logit" or whole_log:
        raise ValueError(f"{axis.name}: no peer has words for this axis, so it cannot be compared on.")
    if axis.finite:
        levels = axis.choices()
        return Dimension(
            axis.name, tuple(sorted(levels, key=float)) if axis.ordered else levels, axis.ordered
        )
    return Dimension(axis.name, low=axis.low, high=axis.high, log=axis.log)
