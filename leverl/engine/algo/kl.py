"""Estimators of KL(π ‖ π_ref) from the log-probs of tokens that π sampled, and the KL penalty in the reward.

With Δ = log_probs − ref_log_probs:

| | value | mean under π | gradient as a loss, per token | expected gradient when on-policy |
|---|---|---|---|---|
| k1 | Δ | KL | 1 · ∇log π | 0: it penalises nothing, so it is refused as a loss |
| k2 | Δ²/2 | KL to second order | Δ · ∇log π | ∇ KL(π ‖ π_ref), exactly |
| k3 | e^−Δ − 1 + Δ | KL | (1 − e^−Δ) · ∇log π | ∇ KL(π_ref ‖ π), the other direction |

In the reward, k1 is the right one: the policy gradient of −k1 is −∇ KL(π ‖ π_ref).

Source: Schulman, "Approximating KL Divergence" (joschu.net/blog/kl-approx.html, 2020).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from leverl.engine.algo.tensors import EXPONENT_BOUND, check_same_shape, zero_outside


def kl_k1(log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor | None = None) -> Tensor:
    """Δ per token, [B, T]; may be negative. See `kl_k3` for the arguments."""
    return _delta(log_probs, ref_log_probs, mask)


def kl_k2(log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor | None = None) -> Tensor:
    """Δ²/2 per token, [B, T]. See `kl_k3` for the arguments."""
    return _delta(log_probs, ref_log_probs, mask).square() / 2


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor | None = None) -> Tensor:
    """e^−Δ − 1 + Δ per token, [B, T]; never negative.

    For Δ < −20, where e^−Δ would soon overflow, Δ is clamped: the value is that at −20 and the gradient 0.
    For Δ > 0 nothing can overflow, so nothing is clamped and the gradient stays near 1.

    Args:
        log_probs: [B, T] of the policy, gets the gradient. ref_log_probs: [B, T], a constant.
        mask: [B, T] bool, or None when there is no masked position. Masked positions give exactly 0 and no
            gradient, whatever they hold; without a mask, junk there would turn gradients into NaN.

    Raises:
        ConfigError: shapes differ, or the mask is not boolean.
    """
    delta = _delta(log_probs, ref_log_probs, mask).clamp(min=-EXPONENT_BOUND)
    return torch.expm1(-delta) + delta


KL_ESTIMATORS: Mapping[str, Callable[..., Tensor]] = MappingProxyType({"k1": kl_k1, "k2": kl_k2, "k3": kl_k3})


def _delta(log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        mask = torch.ones_like(log_probs, dtype=torch.bool)
    check_same_shape("kl", mask, log_probs=log_probs, ref_log_probs=ref_log_probs)
    return zero_outside(log_probs - ref_log_probs.detach(), mask)


def terminal_rewards(scores_B: Tensor, scored_B: Tensor | None, mask_BT: Tensor) -> Tensor:
    """[B, T] rewards that are 0 except for the score of each response, at its last sampled token.

    That is the last True of the mask row, whether the response stopped there or was cut. An unscored row (see
    `scored_B`, [B] bool or None) and a row without a sampled token get 0 everywhere.

    Raises:
        ConfigError: shapes differ, or a mask is not boolean.
    """
    check_same_shape("terminal_rewards", mask_BT)
    scored_B = torch.ones_like(scores_B, dtype=torch.bool) if scored_B is None else scored_B
    check_same_shape("terminal_rewards", scored_B, scores_B=scores_B, rows_of_mask=mask_BT.any(dim=1))
    known_B = zero_outside(scores_B.detach(), scored_B)
    still_to_come_BT = mask_BT.flip(1).cumsum(1).flip(1)  # sampled tokens here and later
    last_BT = mask_BT & (still_to_come_BT == 1)
    return zero_outside(known_B.unsqueeze(1).expand(mask_BT.shape), last_BT)


def kl_penalised_rewards(
    scores_B: Tensor,
    scored_B: Tensor | None,
    mask_BT: Tensor,
    log_probs: Tensor,
    ref_log_probs: Tensor,
    coef: float,
) -> Tensor:
    """Score at the last sampled token, minus coef · k1 at every sampled token.

    For group estimators sum it over tokens *before* the group is normalised. An unscored row has only the
    penalty; keep it out of group baselines with `scored_B`.

    Args:
        scores_B: [B] float. scored_B: [B] bool or None. mask_BT: [B, T] bool.
        log_probs, ref_log_probs: [B, T] at the time of the rollout. coef: weight of the penalty.

    Returns:
        [B, T] token rewards without gradient, exactly 0 at masked positions.

    Raises:
        ConfigError: shapes differ, or a mask is not boolean.

    Source: Stiennon et al., "Learning to summarize from human feedback" (arXiv 2009.01325).
    """
    penalty_BT = kl_k1(log_probs.detach(), ref_log_probs, mask_BT)
    return terminal_rewards(scores_B, scored_B, mask_BT) - coef * penalty_BT
