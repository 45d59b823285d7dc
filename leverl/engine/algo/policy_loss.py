"""The clipped policy-gradient loss of PPO, per token."""

from typing import NamedTuple

import torch
from torch import Tensor

from leverl.engine.algo.tensors import EXPONENT_BOUND, check_same_shape, zero_outside
from leverl.errors import ConfigError


class PolicyLossTerms(NamedTuple):
    """What `clipped_policy_loss` returns; all [B, T]."""

    per_token: Tensor
    """Loss, to be minimised; 0 at masked positions."""
    ratio: Tensor
    """exp(log_probs − old_log_probs), differentiable; 1 at masked positions."""
    clipped_high: Tensor
    """bool: A > 0 and ratio > 1 + clip_high, so that the token has no gradient."""
    clipped_low: Tensor
    """bool: A < 0 and ratio < 1 − clip_low, so that the token has no gradient."""
    dual_clipped: Tensor
    """bool: A < 0 and ratio > dual_clip, so that the token has no gradient."""


def clipped_policy_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> PolicyLossTerms:
    """−min(r·A, clip(r, 1 − clip_low, 1 + clip_high)·A) with r = exp(log_probs − old_log_probs), per token.

    With `dual_clip` = c, the loss of a token with A < 0 is at most c·|A|. The exponent of r is clamped to
    ±20; beyond that the ratio stays at e^±20 and the token has no gradient. Only `log_probs` gets a gradient.

    Args:
        log_probs, old_log_probs, advantages: [B, T] float; anything at masked positions.
        mask: [B, T] bool, True on sampled tokens.
        clip_low: in (0, 1). clip_high: above 0; larger than `clip_low` is "clip-higher" of DAPO.
        dual_clip: above 1, or None.

    Raises:
        ConfigError: a bound is out of range, shapes differ, or the mask is not boolean.

    Source: Schulman et al., "Proximal Policy Optimization Algorithms" (arXiv 1707.06347), equation 7; Ye et
    al. (arXiv 1912.09729) for the dual clip; Yu et al., "DAPO" (arXiv 2503.14476) for unequal bounds.
    """
    _check_bounds(clip_low, clip_high, dual_clip)
    check_same_shape(
        "clipped_policy_loss", mask, log_probs=log_probs, old_log_probs=old_log_probs, advantages=advantages
    )
    advantages = zero_outside(advantages.detach(), mask)
    log_ratio = zero_outside(log_probs - old_log_probs.detach(), mask)
    ratio = log_ratio.clamp(-EXPONENT_BOUND, EXPONENT_BOUND).exp()

    low, high = 1.0 - clip_low, 1.0 + clip_high
    objective = torch.minimum(ratio * advantages, ratio.clamp(low, high) * advantages)
    negative = advantages < 0
    dual_clipped = torch.zeros_like(mask)
    if dual_clip is not None:
        dual_clipped = negative & (ratio > dual_clip)
        objective = torch.where(dual_clipped, dual_clip * advantages, objective)
    return PolicyLossTerms(
        per_token=-objective,
        ratio=ratio,
        clipped_high=(advantages > 0) & (ratio > high),
        clipped_low=negative & (ratio < low),
        dual_clipped=dual_clipped,
    )


def _check_bounds(clip_low: float, clip_high: float, dual_clip: float | None) -> None:
    if not 0 < clip_low < 1:
        raise ConfigError(f"clipped_policy_loss: clip_low is {clip_low}, must be between 0 and 1.")
    if not clip_high > 0:
        raise ConfigError(f"clipped_policy_loss: clip_high is {clip_high}, must be above 0.")
    if dual_clip is not None and not dual_clip > 1:
        raise ConfigError(
            f"clipped_policy_loss: dual_clip is {dual_clip}, must be above 1 (3 is usual) or None."
        )
