"""How far two computations of the same log-probs are apart: sampler against trainer."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from leverl.engine.algo.tensors import EXPONENT_BOUND, check_same_shape


class LogProbMismatch(NamedTuple):
    """Over sampled tokens, with Δ = a − b; all NaN when there is none."""

    mean_abs: float
    """Mean |Δ|."""
    max_abs: float
    """Largest |Δ|."""
    k1: float
    """Mean −Δ, an estimate of KL(b ‖ a); may be negative."""
    k3: float
    """Mean e^Δ − 1 − Δ, an estimate of KL(b ‖ a), never negative; Δ is clamped at 20."""
    ess: float
    """Effective sample size of the weights e^Δ as a share of the tokens, in (0, 1]; 1 without mismatch."""
    mean_abs_prob: float
    """Mean |e^a − e^b|, verl's `rollout_probs_diff_mean`."""


def log_prob_mismatch(a: Tensor, b: Tensor, mask: Tensor) -> LogProbMismatch:
    """Compare log-probs `a` of the trainer with `b` of the sampler that drew the tokens.

    Args:
        a, b: [B, T]; anything at masked positions. mask: [B, T] bool.

    Raises:
        ConfigError: shapes differ, or the mask is not boolean.
    """
    check_same_shape("log_prob_mismatch", mask, a=a, b=b)
    known_a, known_b = a.detach()[mask].double(), b.detach()[mask].double()
    delta = known_a - known_b
    if delta.numel() == 0:
        return LogProbMismatch(*[math.nan] * 6)
    # (Σw)² ÷ (n Σw²) in logarithms: no overflow, however large Δ is.
    log_ess = 2 * torch.logsumexp(delta, 0) - torch.logsumexp(2 * delta, 0) - math.log(delta.numel())
    bounded = delta.clamp(max=EXPONENT_BOUND)
    return LogProbMismatch(
        mean_abs=float(delta.abs().mean()),
        max_abs=float(delta.abs().max()),
        k1=float(-delta.mean()),
        k3=float((torch.expm1(bounded) - bounded).mean()),
        ess=min(1.0, float(log_ess.exp())),
        mean_abs_prob=float((known_a.exp() - known_b.exp()).abs().mean()),
    )
