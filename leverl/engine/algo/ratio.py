"""Where the probability ratio of the update lies: shares around the clip interval and a histogram.

By the ratio alone. Where clipping *binds* depends on the sign of the advantage too: see
`policy_loss.PolicyLossTerms`.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from leverl.engine.algo.tensors import check_same_shape
from leverl.vocabulary.ratio_bins import RATIO_BINS as RATIO_BINS


class RatioStatistics(NamedTuple):
    """Over sampled tokens; all NaN when there is none."""

    tokens: int
    below: float
    """Share with ratio < 1 − clip_low."""
    inside: float
    """Share within the clip interval, bounds included."""
    above: float
    """Share with ratio > 1 + clip_high."""
    mean: float
    smallest: float
    largest: float


def ratio_statistics(ratio: Tensor, mask: Tensor, *, clip_low: float, clip_high: float) -> RatioStatistics:
    """Shares below, inside and above the clip interval, with mean and extremes.

    Args:
        ratio: [B, T]; anything at masked positions. mask: [B, T] bool.

    Raises:
        ConfigError: shapes differ, or the mask is not boolean.
    """
    check_same_shape("ratio_statistics", mask, ratio=ratio)
    known = ratio.detach()[mask].double()
    tokens = known.numel()
    if tokens == 0:
        return RatioStatistics(0, *[math.nan] * 6)
    below = int((known < 1.0 - clip_low).sum())
    above = int((known > 1.0 + clip_high).sum())
    return RatioStatistics(
        tokens=tokens,
        below=below / tokens,
        inside=(tokens - below - above) / tokens,
        above=above / tokens,
        mean=float(known.mean()),
        smallest=float(known.min()),
        largest=float(known.max()),
    )


def ratio_histogram(ratio: Tensor, mask: Tensor) -> list[int]:
    """Counts of sampled tokens over RATIO_BINS, len(RATIO_BINS) + 1 of them; counts of parts add up.

    Bin i holds edge[i − 1] ≤ ratio < edge[i].

    Raises:
        ConfigError: shapes differ, or the mask is not boolean.
    """
    check_same_shape("ratio_histogram", mask, ratio=ratio)
    known = ratio.detach()[mask].double()
    edges = torch.tensor(RATIO_BINS, dtype=torch.float64, device=known.device)
    bins = torch.bucketize(known, edges, right=True)
    return [int(count) for count in torch.bincount(bins, minlength=len(RATIO_BINS) + 1)]
