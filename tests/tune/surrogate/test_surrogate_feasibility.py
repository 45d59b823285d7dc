import numpy as np
import pytest
from scipy.optimize import approx_fprime

from leverl.tune.surrogate.cost import cost_model
from leverl.tune.surrogate.feasibility import _evidence, feasibility


def test_nothing_failed_means_certain() -> None:
    assert feasibility(np.zeros((3, 2)), [True] * 3, 2).probability(np.ones((4, 2))).tolist() == [1.0] * 4


def test_the_slope_of_the_evidence() -> None:
    x = np.random.default_rng(0).random((20, 2))
    labels = (x[:, 0] < 0.6).astype(float)
    theta = np.log([0.5, 0.8, 6.0])

    def evidence(logs: np.ndarray) -> float:
        return _evidence(x, labels, np.exp(logs[:2]), float(np.exp(logs[2])))[0]

    slope = _evidence(x, labels, np.exp(theta[:2]), float(np.exp(theta[2])))[1]
    assert slope == pytest.approx(approx_fprime(theta, evidence, 1e-6), abs=1e-3)


def test_a_wall_is_learnt_from_both_sides() -> None:
    """Memory runs out above 0.7 of the first lever; the second has nothing to do with it."""
    x = np.random.default_rng(1).random((24, 2))
    model = feasibility(x, list(x[:, 0] < 0.7), 2)
    inside = model.probability(np.array([[0.1, 0.1], [0.4, 0.9], [0.5, 0.5]]))
    beyond = model.probability(np.array([[0.95, 0.1], [0.9, 0.9]]))
    assert inside.min() > 0.8
    assert beyond.max() < 0.25


def test_more_successes_nearby_make_it_surer() -> None:
    few = feasibility(np.array([[0.2], [0.9]]), [True, False], 1)
    many = feasibility(np.array([[0.1], [0.2], [0.3], [0.4], [0.9]]), [True] * 4 + [False], 1)
    place = np.array([[0.25]])
    assert many.probability(place)[0] > few.probability(place)[0] > 0.5


def test_one_failure_among_many_runs_stays_local() -> None:
    x = np.linspace(0, 1, 11)[:, None]
    model = feasibility(x, [True] * 10 + [False], 1)
    assert model.probability(np.array([[0.1]]))[0] > 0.85
    assert model.probability(np.array([[1.0]]))[0] < 0.7


def test_all_failed() -> None:
    x = np.random.default_rng(0).random((5, 2))
    assert feasibility(x, [False] * 5, 2).probability(x).max() < 0.5


def test_costs_follow_the_levers() -> None:
    x = np.random.default_rng(0).random((12, 2))
    costs = 10 * 4.0 ** x[:, 0]
    model = cost_model(x, costs)
    ratio = np.exp(np.diff(model.log_cost(np.array([[0.2, 0.5], [0.7, 0.1]]))))
    assert ratio[0] == pytest.approx(4.0**0.5, rel=0.05)


def test_costs_that_do_not_follow_the_levers_are_all_alike() -> None:
    generator = np.random.default_rng(3)
    model = cost_model(generator.random((12, 3)), np.exp(generator.standard_normal(12)))
    assert model.log_cost(generator.random((5, 3))).tolist() == [0.0] * 5


def test_unknown_costs_are_left_out() -> None:
    x = np.random.default_rng(0).random((12, 1))
    costs = np.where(np.arange(12) < 3, 1.0, np.nan)
    assert cost_model(x, costs).log_cost(x).tolist() == [0.0] * 12
