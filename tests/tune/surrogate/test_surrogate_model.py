from typing import Any

import numpy as np
import pytest

from leverl.tune.space.axis import Axis
from leverl.tune.surrogate.measurement import Measurement
from leverl.tune.surrogate.model import Surrogate, fit

AXES = (Axis("a", low=0.0, high=1.0), Axis("b", low=0.0, high=1.0))


def run(a: float, b: float, value: float | None, variance: float = 0.0, **more: Any) -> Measurement:
    return Measurement({"a": a, "b": b}, value, variance, more.pop("state", "finished"), **more)


def fitted(found: list[Measurement], axes: tuple[Axis, ...] = AXES) -> Surrogate:
    surrogate = fit(axes, found, seed=0)
    assert surrogate is not None
    return surrogate


def noisy(
    count: int, sd: float, twice: int, seed: int, scale: float = 1.0, slope: float = 0.0
) -> list[Measurement]:
    """Runs of f = sin(4a) + b with noise sd * exp(slope * f); the first `twice` configurations run twice."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        a, b = generator.random(2)
        truth = np.sin(4 * a) + b
        for _ in range(2 if number < twice else 1):
            value = truth + sd * np.exp(slope * truth) * generator.standard_normal()
            found.append(run(a, b, scale * value))
    return found


def test_too_few_configurations_give_none() -> None:
    assert fit(AXES, [run(0.1, 0.1, 1.0), run(0.2, 0.2, 1.0), run(0.2, 0.2, 2.0)], seed=0) is None


def test_runs_without_value_are_no_values() -> None:
    found = [run(0.1 * i, 0.5, None, state=state) for i, state in enumerate(("pending", "failed"))]
    assert fit(AXES, [*found, run(0.3, 0.1, float("nan"))], seed=0) is None


def test_the_posterior_is_in_units_of_the_values() -> None:
    found = [run(a, b, 1000 + 200 * a) for a in np.linspace(0, 1, 5) for b in (0.0, 0.5, 1.0)]
    posterior = fitted(found).posterior([{"a": 0.3, "b": 0.5}, {"a": 0.7, "b": 0.5}])
    assert posterior.mean == pytest.approx([1060, 1140], abs=5)
    assert (np.sqrt(np.diag(posterior.covariance)) < 40).all()


def test_shifting_and_scaling_the_values_shifts_and_scales_everything() -> None:
    found = noisy(20, 0.2, 4, seed=0)
    other = [Measurement(m.params, 5 + 100 * (m.value or 0), 0.0, m.state) for m in found]
    one, two = fitted(found), fitted(other)
    places = [{"a": 0.3, "b": 0.3}, {"a": 0.9, "b": 0.1}]
    assert two.posterior(places).mean == pytest.approx(5 + 100 * one.posterior(places).mean, rel=1e-3)
    assert two.posterior(places).covariance == pytest.approx(1e4 * one.posterior(places).covariance, rel=2e-2)
    assert two.run_variance(places) == pytest.approx(1e4 * one.run_variance(places), rel=2e-2)
    assert two.noise.share == pytest.approx(one.noise.share, rel=2e-2)


def test_the_seed_noise_of_replicates_is_found() -> None:
    """Mean over repeats: each has but six degrees of freedom."""
    variances = [fitted(noisy(24, 0.4, 6, seed)).noise for seed in range(14)]
    assert np.mean([noise.seed_variance for noise in variances]) == pytest.approx(0.16, rel=0.25)
    assert {noise.degrees for noise in variances} == {6}


def test_the_noise_is_found_without_replicates_too() -> None:
    noises = [fitted(noisy(30, 0.4, 0, seed)).noise.seed_variance for seed in range(14)]
    assert np.mean(noises) == pytest.approx(0.16, rel=0.35)


def test_noise_that_rises_with_the_level() -> None:
    found = noisy(40, 0.1, 40, seed=1, slope=1.0)
    low, high = fitted(found).run_variance([{"a": 1.0, "b": 0.0}, {"a": 0.4, "b": 1.0}])
    truth = (0.1 * np.exp([np.sin(4.0), np.sin(1.6) + 1])) ** 2
    assert [low, high] == pytest.approx(truth, rel=0.8)
    assert high > 5 * low


def test_the_known_variance_of_an_evaluation_is_part_of_a_run() -> None:
    found = [Measurement(m.params, m.value, 0.04, m.state) for m in noisy(20, 0.2, 6, seed=2)]
    surrogate = fitted(found)
    assert surrogate.noise.evaluation_variance == pytest.approx(0.04)
    assert surrogate.run_variance([{"a": 0.5, "b": 0.5}])[0] > 0.04


def test_a_vague_prediction_counts_less_than_a_finished_run() -> None:
    rest = [run(a, 0.5, 0.0) for a in np.linspace(0, 1, 9)]
    place = {"a": 0.5, "b": 1.0}

    def mean(state: str, variance: float) -> float:
        surrogate = fitted([*rest, run(0.1, 0.1, 1.0), run(0.5, 1.0, 1.0, variance, state=state)])
        return float(surrogate.posterior([place]).mean[0])

    assert mean("finished", 0.0) > mean("predicted", 0.2) + 0.1 > mean("predicted", 2.0) + 0.15


def test_leave_one_out_is_honest() -> None:
    """About as many observed means lie within the predicted band as should."""
    inside = []
    for seed in range(8):
        left_out = fitted(noisy(24, 0.3, 6, seed)).leave_one_out()
        inside += [abs(left.observed - left.predicted) < 1.645 * left.sd for left in left_out]
    assert 0.8 < np.mean(inside) < 0.97


def test_leave_one_out_is_about_configurations() -> None:
    found = noisy(10, 0.1, 3, seed=0)
    left = fitted(found).leave_one_out()
    assert len(left) == 10
    assert left[0].observed == pytest.approx(np.mean([found[0].value, found[1].value]))
    assert left[0].params == found[0].params


def test_failures_have_a_model_of_their_own() -> None:
    found = [run(a, b, a) for a in (0.1, 0.3, 0.5) for b in (0.2, 0.8)]
    found += [run(a, b, None, state="failed") for a in (0.8, 0.95) for b in (0.2, 0.8)]
    low, high = fitted(found).feasible([{"a": 0.2, "b": 0.5}, {"a": 0.9, "b": 0.5}])
    assert low > 0.8
    assert high < 0.3
    assert fitted(found[:6]).feasible([{"a": 0.9, "b": 0.5}]).tolist() == [1.0]


def test_breaking_a_bound_counts_as_a_failure_and_its_value_counts() -> None:
    found = [run(a, 0.5, a, allowed=a < 0.6) for a in np.linspace(0, 1, 8)]
    surrogate = fitted(found)
    assert surrogate.feasible([{"a": 0.9, "b": 0.5}])[0] < 0.4
    assert surrogate.posterior([{"a": 0.9, "b": 0.5}]).mean[0] == pytest.approx(0.9, abs=0.1)


def test_one_collapse_does_not_bend_the_model() -> None:
    found = [run(a, b, a) for a in np.linspace(0, 1, 4) for b in (0.0, 0.5, 1.0)]
    collapsed = [*found, run(0.5, 0.25, -1000.0)]
    places = [{"a": 0.1, "b": 0.9}, {"a": 0.9, "b": 0.9}]
    low, high = fitted(collapsed).posterior(places).mean
    assert 0 < low < high - 0.2
    assert high < 1
    assert fitted(collapsed).leave_one_out()[-1].observed == -1000.0


def test_importance_names_the_lever_that_matters() -> None:
    found = noisy(30, 0.05, 4, seed=5)
    effects = fitted(found).importance(draws=32, seed=0)
    assert list(effects) == ["a", "b"]
    assert effects["a"].median > effects["b"].median > 0.02
    assert effects["a"].low <= effects["a"].median <= effects["a"].high <= 1
    assert effects == fitted(found).importance(draws=32, seed=0)
    total = effects["a"].median + effects["b"].median
    assert total == pytest.approx(1, abs=0.15)  # no interaction


def test_words_and_levers_without_effect() -> None:
    axes = (*AXES, Axis("loss", kind="categorical", values=("x", "y", "z")))
    found = [
        Measurement({"a": a, "b": 0.5, **extra}, a + (extra == {"loss": "z"}), 0.0, "finished")
        for a in (0.0, 0.5, 1.0)
        for extra in ({}, {"loss": "x"}, {"loss": "z"})
    ]
    surrogate = fitted(found, axes)
    means = surrogate.posterior([{"a": 0.7, "b": 0.5, "loss": word} for word in "xz"]).mean
    assert means[1] - means[0] == pytest.approx(1, abs=0.25)
    assert surrogate.posterior([{"a": 0.7, "b": 0.5}]).mean[0] == pytest.approx(0.7, abs=0.25)


def test_runs_outside_the_axes_are_left_out() -> None:
    found = noisy(12, 0.1, 0, seed=0)
    place = [{"a": 0.5, "b": 0.5}]
    more = [*found, run(7.0, 0.5, 99.0)]
    assert fitted(more).posterior(place).mean == pytest.approx(fitted(found).posterior(place).mean)
