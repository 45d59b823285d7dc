"""Means, variances, their errors and Student's interval, by hand."""

import pytest

from leverl.tune.statistics import (
    interval95,
    interval_format,
    mean,
    mean_or_none,
    pooled_variance,
    sample_variance,
    standard_error,
    t_quantile,
)

TENTHS = [0.1] * 10  # adding them one by one gives 0.9999999999999999


def test_means_are_of_exact_sums() -> None:
    assert mean([1.0, 2.0, 6.0]) == 3.0
    assert mean(TENTHS) == mean_or_none(TENTHS) == 0.1
    assert sample_variance(TENTHS) == 0.0


def test_too_few_values_tell_nothing() -> None:
    assert mean_or_none([]) is None
    assert mean_or_none([0.0]) == 0.0
    for few in ([], [1.0]):
        assert standard_error(few) is None
        assert interval95(few) is None
    assert pooled_variance([]) is None
    assert pooled_variance([[1.0], [], [3.0]]) is None


def test_spread_and_error() -> None:
    assert sample_variance([1.0, 2.0, 6.0]) == 7.0
    assert standard_error([1.0, 2.0, 3.0]) == pytest.approx(0.57735, abs=1e-5)


def test_pooled_variance_counts_degrees_of_freedom() -> None:
    # (1 + 1) and (4 + 0 + 4) around the means of 2 and 10; the single value adds nothing
    assert pooled_variance([[1.0, 3.0], [8.0, 10.0, 12.0], [50.0]]) == (pytest.approx(10 / 3), 3)
    assert pooled_variance([[1.0, 1.0], [2.0, 2.0]]) == (0.0, 2)


def test_quantiles_of_student_and_the_interval_of_a_mean() -> None:
    assert t_quantile(1) == pytest.approx(12.7062, abs=1e-4)
    assert t_quantile(4, 0.9) == pytest.approx(2.13185, abs=1e-5)
    # mean 2, s = √2, t(1, .975) = 12.7062
    assert interval95([1.0, 3.0]) == (pytest.approx(-10.7062, abs=1e-3), pytest.approx(14.7062, abs=1e-3))
    assert interval95([2.0, 2.0]) == (2.0, 2.0)


def test_numbers_beside_an_interval_have_its_places() -> None:
    assert interval_format((0.196, 0.32)) == ".3f"  # two digits of half the width, .062
    assert interval_format((12.0, 48.0)) == ".0f"
    assert interval_format((0.0069, 0.2411)) == ".3f"  # an end above 0 is not written as 0.00
    assert interval_format((-1e-9, 2e-9)) == ".3g"  # too many places to read
    assert interval_format((0.1, 0.1)) == interval_format(None) == ".3g"
