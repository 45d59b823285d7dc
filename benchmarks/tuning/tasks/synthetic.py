"""The synthetic family: Hartmann's function of six levers, two more that do nothing, noise, and runs that fail.

Score of a run = truth + Gaussian noise. The truth is Hartmann-6 (Dixon and Szegő 1978), upside down and scaled, so that
the best is 1. Noise grows with the truth, as in recorded reinforcement learning; over uniform configurations the
intraclass correlation of one run is .8. Scores are not cut to [0, 1], so that the truth is exact.

Two levers that are both near the end away from the optimum give no score, for about 5 % of the space: a size and a rate
that are too large together. It is there because real runs fail, and tuners differ in what they make of that. The truth
of such a configuration is 0.

Every repeat permutes the eight levers anew and mirrors each with probability ½; nothing wraps around. The base is the
middle of the space.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis

from .drawing import factorial, generator, spread
from .task import Result, Task

NAMES: tuple[str, ...] = ("hartmann",)

LEVERS = 8
LIVE = 6
NOISE = 0.0537
"""Standard deviation at truth 0; twice that at truth 1. Chosen for an intraclass correlation of .8."""
FAILS_ABOVE = 0.775
"""Runs fail where the first two coordinates are both above; the optimum has .20 and .15 there."""

_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_WIDTHS = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_CENTRES = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
OPTIMUM = np.array([0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053])
_HIGHEST = 3.322368011415515


def missing() -> dict[str, str]:
    """Tasks that cannot be drawn here, with the reason: none."""
    return {}


def draw(name: str, repeat: int) -> Task:
    random = generator("synthetic", name, repeat)
    return Synthetic(
        name=name,
        repeat=repeat,
        order=tuple(int(place) for place in random.permutation(LEVERS)),
        mirrored=tuple(bool(flag) for flag in random.random(LEVERS) < 0.5),
    )


@dataclass(eq=False)
class Synthetic:
    """Lever `order[i]` is the i-th argument of the function; those from the LIVE-th on have no effect."""

    name: str
    repeat: int
    order: tuple[int, ...]
    mirrored: tuple[bool, ...]
    family: str = "synthetic"
    axes: tuple[Axis, ...] = tuple(Axis(f"x{number}") for number in range(1, LEVERS + 1))
    search_seeds: int = 1_000_000  # every seed is a draw of its own
    best: float = 1.0

    def __post_init__(self) -> None:
        self.base: Params = {axis.name: 0.5 for axis in self.axes}

    def run(self, params: Params, seed: int) -> Result:
        arguments = self.arguments(params)
        if fails(arguments):
            return Result(None)
        truth = scaled_hartmann(arguments)
        values = [float(params[axis.name]) for axis in self.axes]
        random = generator("noise", self.name, self.repeat, values, seed)
        return Result(truth + deviation(truth) * float(random.standard_normal()))

    def truth(self, params: Params) -> float:
        arguments = self.arguments(params)
        return 0.0 if fails(arguments) else scaled_hartmann(arguments)

    def grid(self, random: np.random.Generator) -> Sequence[Params]:
        """3 × 3 × 3 × 2 levels of four levers that matter, one level from each third (half) of the range.

        Whoever lays out a grid is taken to know which levers do nothing.
        """
        chosen = [self.axes[self.order[place]].name for place in random.permutation(LIVE)[:4]]
        fine = [round(0.01 * step, 2) for step in range(101)]
        levels = {name: spread(fine, count, random) for name, count in zip(chosen, (3, 3, 3, 2), strict=True)}
        return factorial(levels, self.base)

    def arguments(self, params: Params) -> NDArray[np.float64]:
        """The arguments of the function [LIVE]."""
        values = [float(params[self.axes[place].name]) for place in self.order[:LIVE]]
        return np.array(
            [1 - value if flip else value for value, flip in zip(values, self.mirrored, strict=False)]
        )


def scaled_hartmann(arguments: NDArray[np.float64]) -> float:
    """Hartmann-6 upside down, in [0, 1]."""
    distances = (_WIDTHS * (arguments - _CENTRES) ** 2).sum(axis=1)
    return float(_HEIGHTS @ np.exp(-distances)) / _HIGHEST


def deviation(truth: float) -> float:
    """Standard deviation of a run's score around the truth."""
    return NOISE * (1 + truth)


def fails(arguments: NDArray[np.float64]) -> bool:
    return bool((arguments[:2] > FAILS_ABOVE).all())
