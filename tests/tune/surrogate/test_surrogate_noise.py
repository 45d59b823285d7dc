import numpy as np
import pytest

from leverl.tune.surrogate.noise import NU0, Scatter, seed_variance
from leverl.tune.surrogate.outputs import outputs


def scatter(number: int, mean: float, sd: float, runs: int, generator: np.random.Generator) -> Scatter:
    values = sd * generator.standard_normal(runs)
    squares = float(((values - values.mean()) ** 2).sum())
    return Scatter((("x", str(number)),), mean, runs - 1, squares, 0.0)


def test_without_replicates_the_noise_is_what_was_inferred() -> None:
    seeds = seed_variance([], 0.3)
    assert (seeds.pooled, seeds.degrees, seeds.slope) == (0.3, 0, 0.0)
    assert seeds.at(np.array([-1.0, 1.0])).tolist() == [0.3, 0.3]


def test_few_replicates_shrink_towards_the_guess() -> None:
    one = Scatter((("x", "1"),), 0.0, 2, 6.0, 0.0)
    assert seed_variance([one], 0.3).pooled == pytest.approx((NU0 * 0.3 + 6.0) / (NU0 + 2))


def test_the_known_variance_of_evaluation_is_not_counted_twice() -> None:
    one = Scatter((("x", "1"),), 0.0, 2, 6.0, 1.0)
    assert seed_variance([one], 0.3).pooled == pytest.approx((NU0 * 0.3 + 6.0 - 2.0) / (NU0 + 2))
    quiet = Scatter((("x", "1"),), 0.0, 2, 0.1, 1.0)  # less scatter than the evaluation alone explains
    assert seed_variance([quiet], 0.3).pooled == pytest.approx(NU0 * 0.3 / (NU0 + 2))


def test_many_replicates_find_the_truth() -> None:
    generator = np.random.default_rng(1)
    known = [scatter(number, 0.0, 0.7, 3, generator) for number in range(300)]
    assert seed_variance(known, 0.05).pooled == pytest.approx(0.49, rel=0.12)  # three standard errors


def test_noise_that_grows_with_the_level() -> None:
    """True standard deviation exp(0.5 mean): the log variance rises by 1 per unit."""
    generator = np.random.default_rng(2)
    means = np.linspace(-2, 2, 20)
    known = [scatter(number, m, np.exp(0.5 * m), 4, generator) for number, m in enumerate(means)]
    seeds = seed_variance(known, 1.0)
    assert seeds.slope == pytest.approx(1.0, abs=0.3)
    assert seeds.at(np.array([-1.5, 0.0, 1.5])) == pytest.approx(np.exp([-1.5, 0.0, 1.5]), rel=0.5)
    far = seeds.at(np.array([2.0, 9.0]))
    assert far[0] == far[1]  # constant outside of what was replicated


def test_equal_noise_is_not_taken_for_a_slope() -> None:
    generator = np.random.default_rng(3)
    slopes = []
    for _ in range(30):
        known = [scatter(number, m, 0.5, 2, generator) for number, m in enumerate(np.linspace(-2, 2, 12))]
        slopes.append(seed_variance(known, 0.25).slope)
    assert abs(np.mean(slopes)) < 0.2
    assert np.std(slopes) < 0.5


def test_a_configuration_counts_its_own_replicates() -> None:
    name = (("x", "1"),)
    seeds = seed_variance([Scatter(name, 0.0, 3, 30.0, 0.0)], 0.3)
    own, other = seeds.at(np.zeros(2), [name, (("x", "2"),)])
    assert other == pytest.approx(seeds.pooled)
    assert own == pytest.approx((NU0 * seeds.pooled + 30.0) / (NU0 + 3))


def test_low_outliers_are_pulled_in_and_high_ones_stay() -> None:
    values = np.array([-1000.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0])
    out = outputs(values)
    standard = out.forward(values)
    first, third = np.quantile(values, [0.25, 0.75])
    assert out.floor == pytest.approx(first - 1.5 * (third - first))
    assert standard.mean() == pytest.approx(0)
    assert standard.std() == pytest.approx(1)
    assert out.back(standard)[1:] == pytest.approx(values[1:])
    assert out.back(standard)[0] == pytest.approx(out.floor)


def test_equal_values_have_no_scale() -> None:
    out = outputs(np.full(6, 3.0))
    assert out.forward(np.array([3.0])).tolist() == [0.0]


def test_replicates_count_as_one_configuration() -> None:
    out = outputs(np.array([0.0, 10.0, 10.0]), np.array([1.0, 0.5, 0.5]))
    assert (out.center, out.scale) == (5.0, 5.0)
