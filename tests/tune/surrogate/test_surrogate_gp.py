from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from leverl.tune.surrogate import gp
from leverl.tune.surrogate.kernel import matern


def data(n: int = 25, d: int = 3, noise: float = 0.3, seed: int = 0) -> gp.Data:
    generator = np.random.default_rng(seed)
    x = generator.random((n, d))
    y = np.sin(5 * x[:, 0]) + x[:, 1] + noise * generator.standard_normal(n)
    return gp.Data(x, (y - y.mean()) / y.std(), np.full(n, 1e-6), np.ones(n), d)


def test_the_kernel_by_hand() -> None:
    r = 0.5 / 2.0
    expected = (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r)
    assert matern(np.array([[0.0]]), np.array([[0.5]]), np.array([2.0]))[0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("noise", [None, 0.2])
def test_the_slope_of_the_loss(noise: float | None) -> None:
    known = replace(data(), noise=noise, degrees=3.0, squares=0.4)
    chart = gp._Chart(known, gp.fallback(known))
    theta = chart.start + 0.1
    value, slope = chart.loss_and_slope(theta)
    assert value == pytest.approx(chart.loss(theta))
    assert slope == pytest.approx(approx_fprime(theta, chart.loss, 1e-6), abs=1e-3)


def test_the_posterior_by_hand() -> None:
    known = replace(data(n=8), noise=0.2)
    process = gp.condition(known, gp.fallback(known))
    x = np.random.default_rng(1).random((4, 3))
    lengths = process.hyper.lengthscales
    inverse = np.linalg.inv(matern(known.x, known.x, lengths) + (0.2 + 1e-6 + gp.JITTER) * np.eye(8))
    cross = matern(x, known.x, lengths)
    assert process.mean(x) == pytest.approx(cross @ inverse @ known.y)
    covariance = matern(x, x, lengths) - cross @ inverse @ cross.T
    assert process.covariance(x) == pytest.approx(covariance)
    assert process.covariance(x[:1], x) == pytest.approx(covariance[:1])
    assert process.variance(x) == pytest.approx(np.diag(covariance))


def test_leave_one_out_is_what_refits_without_it_say() -> None:
    known = data(n=12)
    process = gp.fit(known)
    means, variances = process.leave_one_out()
    for left in range(12):
        rest = np.arange(12) != left
        fewer = replace(
            known, x=known.x[rest], y=known.y[rest], fixed=known.fixed[rest], free=known.free[rest]
        )
        without = gp.condition(fewer, process.hyper)
        assert means[left] == pytest.approx(without.mean(known.x[[left]])[0], abs=1e-5)
        total = without.variance(known.x[[left]])[0] + process.variances[left]
        assert variances[left] == pytest.approx(total, abs=1e-5)


def test_it_finds_the_levers_that_matter() -> None:
    lengths = gp.fit(data(n=60, noise=0.05)).hyper.lengthscales
    assert lengths[0] < lengths[1] < lengths[2]


def test_single_runs_may_be_mostly_noise() -> None:
    """The usual priors for little noise follow every value; this one does not."""
    generator = np.random.default_rng(4)
    x = generator.random((40, 2))
    y = x[:, 0] + generator.standard_normal(40)
    process = gp.fit(gp.Data(x, (y - y.mean()) / y.std(), np.full(40, 1e-6), np.ones(40), 2))
    assert 0.5 < process.hyper.noise < 1.5


def test_replicates_speak_of_the_noise_too() -> None:
    plain = gp.fit(data())
    loud = gp.fit(replace(data(), degrees=20.0, squares=20.0))
    assert loud.hyper.noise > 2 * plain.hyper.noise
    assert 0.4 < loud.hyper.noise < 1.0


def test_dimensions_without_data_keep_the_length_scale_of_the_prior() -> None:
    known = data()
    wide = replace(known, x=np.hstack([known.x, np.ones((25, 2))]))
    lengths = gp.fit(wide).hyper.lengthscales
    assert lengths[3:] == pytest.approx(gp.fallback(wide).lengthscales[3:])
    assert lengths[:3] == pytest.approx(gp.fit(known).hyper.lengthscales, rel=1e-2)


def test_identical_points_do_no_harm() -> None:
    x = np.repeat(np.random.default_rng(0).random((3, 2)), 10, axis=0)
    known = gp.Data(x, np.tile([1.0, -1.0], 15), np.full(30, 1e-9), np.zeros(30), 2, noise=0.0)
    assert np.isfinite(gp.fit(known).mean(x)).all()


def test_a_fit_that_fails_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gp, "_climb", lambda data, start: None)
    process = gp.fit(data())
    assert process.hyper.noise == 0.3
    assert process.hyper.lengthscales == pytest.approx(gp.fallback(data()).lengthscales)
