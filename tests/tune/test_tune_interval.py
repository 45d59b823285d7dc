"""The paired interval; what it promises is measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leverl.tune.statistics import KNOWN_WEIGHT, Spread, paired_t

Draw = Callable[[np.random.Generator, int], Any]

REPEATS = 4000
PAIRS = 5


def test_students_interval() -> None:
    assert paired_t([1.0], [0.5]).interval is None
    # differences 1 and 3: mean 2, s = √2, t(1, .975) = 12.7062
    assert paired_t([2.0, 4.0], [1.0, 1.0]).interval == (
        pytest.approx(-10.7062, abs=1e-3),
        pytest.approx(14.7062, abs=1e-3),
    )


def test_what_is_known_beforehand_counts_for_two_pairs_at_most() -> None:
    many, few = Spread(0.5, 99), Spread(0.5, 1)
    # (1 · 2 + 2 · .5) / 3 = 1, t(3, .975) = 3.18245, √(1 / 2)
    assert paired_t([2.0, 4.0], [1.0, 1.0], many).interval[1] == pytest.approx(
        2 + 3.18245 * 0.5**0.5, abs=1e-4
    )
    # (1 · 2 + 1 · .5) / 2 = 1.25, t(2, .975) = 4.30265
    assert paired_t([2.0, 4.0], [1.0, 1.0], few).interval[1] == pytest.approx(
        2 + 4.30265 * 0.625**0.5, abs=1e-4
    )
    assert KNOWN_WEIGHT == 2.0


def test_equal_differences_are_no_certainty() -> None:
    ours, base = [0.3, 0.4, 0.8], [0.2, 0.3, 0.7]  # 0.1 up to rounding
    assert paired_t(ours, base).interval is None
    assert paired_t(ours, base, Spread(0.0, 5)).interval is None
    low, high = paired_t(ours, base, Spread(0.01, 5)).interval or (0.0, 0.0)
    assert low < 0.1 < high
    assert paired_t([0.0] * 3, [0.0] * 3).interval is None


def _coverage(winner: Draw, base: Draw, truth: float, weight: float = 0.0, wrong: float = 1.0) -> float:
    """Share of intervals that hold the true difference; a study's race tells the spread with 9 degrees of freedom."""
    generator = np.random.default_rng(0)
    variance = float(np.var(winner(generator, 200_000)) + np.var(base(generator, 200_000)))
    hits = 0
    for _ in range(REPEATS):
        known = Spread(wrong * variance * generator.chisquare(9) / 9, weight) if weight else None
        interval = paired_t(list(winner(generator, PAIRS)), list(base(generator, PAIRS)), known).interval
        hits += interval is not None and interval[0] <= truth <= interval[1]
    return hits / REPEATS


def normal(centre: float, sd: float) -> Draw:
    return lambda generator, n: generator.normal(centre, sd, n)


def skewed(generator: np.random.Generator, n: int) -> Any:
    return 1.0 - generator.exponential(size=n)


def collapsing(generator: np.random.Generator, n: int) -> Any:
    return np.where(generator.random(n) < 0.1, 0.1, 0.8) + 0.02 * generator.standard_normal(n)


def bounded(generator: np.random.Generator, n: int) -> Any:
    return generator.beta(18, 0.6, n)


def prompts(right: float, count: int = 64) -> Draw:
    return lambda generator, n: generator.binomial(count, right, n) / count


BASE = normal(0.0, 0.2)


@pytest.mark.parametrize(
    ("winner", "base", "truth"),
    [
        (normal(0.5, 1.0), normal(0.0, 1.0), 0.5),
        (normal(0.5, 1.0), normal(0.0, 0.05), 0.5),
        (skewed, BASE, 0.0),
        (collapsing, normal(0.5, 0.05), 0.23),
        (bounded, lambda g, n: g.beta(8, 2, n), 18 / 18.6 - 0.8),
        (prompts(0.97), prompts(0.9), 0.07),
        (prompts(0.99), prompts(0.95), 0.04),
    ],
    ids=["normal", "still base", "skewed", "collapsing", "bounded", "prompts", "nearly all right"],
)
def test_five_pairs_cover_the_truth(winner: Draw, base: Draw, truth: float) -> None:
    assert 0.93 <= _coverage(winner, base, truth, KNOWN_WEIGHT) <= 0.99


@pytest.mark.parametrize(
    ("wrong", "least", "most"), [(0.125, 0.885, 0.95), (0.25, 0.90, 0.95), (4.0, 0.98, 1.0)]
)
def test_a_wrong_spread_does_little_harm(wrong: float, least: float, most: float) -> None:
    found = _coverage(normal(0.0, 1.0), normal(0.0, 1.0), 0.0, KNOWN_WEIGHT, wrong)
    assert least <= found <= most


def test_without_knowledge_it_is_students_interval_with_its_weakness() -> None:
    assert 0.94 <= _coverage(normal(0.0, 1.0), normal(0.0, 1.0), 0.0) <= 0.96
    assert _coverage(collapsing, normal(0.5, 0.05), 0.23) < 0.8  # why five pairs alone are not trusted


def test_a_gain_of_two_seed_deviations_is_found() -> None:
    generator = np.random.default_rng(1)
    found = {0.0: 0, KNOWN_WEIGHT: 0}
    for _ in range(REPEATS):
        ours, base = generator.normal(2.0, 1.0, PAIRS), generator.normal(0.0, 1.0, PAIRS)
        spread = Spread(2.0 * generator.chisquare(9) / 9, KNOWN_WEIGHT)
        for weight in found:
            interval = paired_t(list(ours), list(base), spread if weight else None).interval
            found[weight] += interval is not None and interval[0] > 0
    assert 0.63 < found[0.0] / REPEATS < 0.70
    assert found[KNOWN_WEIGHT] / REPEATS > 0.72
