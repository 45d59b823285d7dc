"""Evaluations that claim to know a score exactly."""

import numpy as np

from leverl.tune.space.axis import Axis
from leverl.tune.surrogate.groups import floored
from leverl.tune.surrogate.measurement import Measurement
from leverl.tune.surrogate.model import fit


def run(x: float, value: float, variance: float) -> Measurement:
    return Measurement({"x": x}, value, variance, "finished")


def test_an_error_of_zero_is_a_share_of_the_usual_one() -> None:
    found = floored([run(0.1, 0.0, 0.0), run(0.2, 0.3, 0.02), run(0.3, 0.4, 0.04)])
    assert [one.variance for one in found] == [0.1 * 0.03, 0.02, 0.04]
    assert floored([run(0.1, 0.0, 0.0)])[0].variance == 0.0  # nothing says what is usual


def test_many_exact_zeros_do_not_outweigh_a_run_that_scored() -> None:
    """Dead runs report 0 ± 0; the one that learnt must stay the best, and not be taken for noise."""
    points = [run(x, 0.0, 0.0) for x in np.linspace(0.05, 0.6, 8)]
    points += [run(0.9, 0.5, 0.05**2), run(0.8, 0.25, 0.045**2)]
    fitted = fit([Axis("x", "", "float", 0.0, 1.0)], points, seed=0)
    assert fitted is not None
    best, dead = fitted.posterior([{"x": 0.9}, {"x": 0.3}]).mean
    assert best > 0.3
    assert abs(dead) < 0.1
