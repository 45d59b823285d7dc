"""Statistics of the ratio, its histogram, and the mismatch of two computations of log-probs."""

import math

import pytest
import torch

from leverl.engine.algo.mismatch import log_prob_mismatch
from leverl.engine.algo.ratio import RATIO_BINS, ratio_histogram, ratio_statistics

RATIO = torch.tensor([[0.5, 0.8, 1.0, 1.25, 1.5], [0.79, 1.0, 9.0, 9.0, torch.nan]], dtype=torch.float64)
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=torch.bool)


def test_shares_count_the_ratio_alone_and_include_the_bounds() -> None:
    stats = ratio_statistics(RATIO, MASK, clip_low=0.2, clip_high=0.25)
    assert stats.tokens == 7
    assert (stats.below, stats.inside, stats.above) == pytest.approx((2 / 7, 4 / 7, 1 / 7))
    assert (stats.mean, stats.smallest, stats.largest) == pytest.approx((6.84 / 7, 0.5, 1.5))


def test_no_token_has_no_share() -> None:
    stats = ratio_statistics(RATIO, MASK & False, clip_low=0.2, clip_high=0.2)
    assert stats.tokens == 0
    assert all(math.isnan(x) for x in stats[1:])
    assert sum(ratio_histogram(RATIO, MASK & False)) == 0


def test_bins_are_fixed_symmetric_in_the_logarithm_and_have_1_in_the_middle() -> None:
    edges = [math.log(edge) for edge in RATIO_BINS]
    assert edges == sorted(edges)
    assert edges == pytest.approx([-edge for edge in reversed(edges)])
    near_one = torch.tensor([[1.0, 1.0 + 1e-5, 1.0 - 1e-5]])
    counts = ratio_histogram(near_one, torch.ones(1, 3, dtype=torch.bool))
    assert counts[len(RATIO_BINS) // 2] == 3


def test_every_token_is_counted_once_and_the_ends_are_open() -> None:
    counts = ratio_histogram(RATIO, MASK)
    assert len(counts) == len(RATIO_BINS) + 1
    assert sum(counts) == 7
    ends = ratio_histogram(torch.tensor([[0.0, math.exp(20)]]), torch.ones(1, 2, dtype=torch.bool))
    assert (ends[0], ends[-1]) == (1, 1)


def test_an_edge_belongs_to_the_bin_above_it() -> None:
    edges = torch.tensor([RATIO_BINS], dtype=torch.float64)
    assert ratio_histogram(edges, torch.ones_like(edges, dtype=torch.bool)) == [0] + [1] * len(RATIO_BINS)


def test_histograms_of_parts_add_up() -> None:
    parts = [ratio_histogram(RATIO[[b]], MASK[[b]]) for b in range(2)]
    assert [sum(pair) for pair in zip(*parts, strict=True)] == ratio_histogram(RATIO, MASK)


def test_mismatch_closed_form() -> None:
    a = torch.tensor([[-1.0, -2.0, torch.nan]], dtype=torch.float64)
    b = torch.tensor([[-1.5, -1.8, 3.0]], dtype=torch.float64)
    result = log_prob_mismatch(a, b, torch.tensor([[True, True, False]]))
    weights = [math.exp(0.5), math.exp(-0.2)]
    assert result.mean_abs == pytest.approx(0.35)
    assert result.max_abs == pytest.approx(0.5)
    assert result.k1 == pytest.approx(-0.15)
    assert result.k3 == pytest.approx((weights[0] - 1 - 0.5 + weights[1] - 1 + 0.2) / 2)
    assert result.ess == pytest.approx(sum(weights) ** 2 / (2 * sum(w * w for w in weights)))
    assert result.mean_abs_prob == pytest.approx(
        (math.exp(-1) - math.exp(-1.5) + math.exp(-1.8) - math.exp(-2)) / 2
    )


def test_no_mismatch_is_exactly_none() -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    result = log_prob_mismatch(x, x.clone(), torch.ones(3, 4, dtype=torch.bool))
    assert result == (0.0, 0.0, 0.0, 0.0, pytest.approx(1.0), 0.0)


def test_mismatch_does_not_overflow() -> None:
    a, b = torch.tensor([[500.0, 0.0]]), torch.zeros(1, 2)
    result = log_prob_mismatch(a, b, torch.ones(1, 2, dtype=torch.bool))
    assert math.isfinite(result.k3)
    assert result.ess == pytest.approx(0.5)


def test_mismatch_of_no_token_is_nan() -> None:
    result = log_prob_mismatch(RATIO, RATIO, MASK & False)
    assert all(math.isnan(x) for x in result)
