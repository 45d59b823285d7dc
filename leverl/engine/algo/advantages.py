"""Advantage estimators: group-normalised (GRPO), leave-one-out (RLOO), generalised (GAE), and whitening.

The group estimators give one number per response, GAE one per token. All are constants for the loss: no
gradient flows through them. Sums run in float64, so that the order of rows makes no difference that counts.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from leverl.engine.algo.tensors import check_same_shape, zero_outside
from leverl.errors import ConfigError

ALIKE = 1e-6
"""A group whose standard deviation is at most ALIKE · max(1, |mean|) says nothing: that is float noise."""


def grpo_advantages(
    scores_B: Tensor,
    group_B: Tensor,
    scored_B: Tensor | None = None,
    *,
    scale_by_std: bool = True,
    epsilon: float = 1e-4,
) -> Tensor:
    """(score − mean of its group) ÷ (standard deviation of its group + epsilon).

    The standard deviation is the unbiased one (n − 1). `scale_by_std=False` only centres: Dr. GRPO. A KL
    penalty in the reward belongs into `scores_B`, summed over the response, before this function is called.

    Args:
        scores_B: [B] float. Ignored where not scored, whatever it holds.
        group_B: [B] integer, equal for the responses of one prompt; any order of rows, any group sizes ≥ 2.
        scored_B: [B] bool; None: all are scored. An unscored row gets 0 and is in no mean and no deviation.
        scale_by_std: divide by the group's standard deviation.
        epsilon: added to the standard deviation.

    Returns:
        [B] advantages; each group sums to 0. Exactly 0 in a group whose rewards are alike (see ALIKE) or of
        which only one row is scored.

    Raises:
        ConfigError: a group has a single row: it has no baseline.

    Source: Shao et al., "DeepSeekMath" (arXiv 2402.03300), section 4.1.2; Liu et al., "Understanding
    R1-Zero-Like Training" (arXiv 2503.20783) for centring only.
    """
    groups = _groups("grpo_advantages", scores_B, group_B, scored_B)
    scale_B = (groups.std_N + epsilon)[groups.number_B] if scale_by_std else torch.ones_like(groups.centred_B)
    return _where_informative(groups, groups.centred_B / scale_B, scores_B)


def rloo_advantages(scores_B: Tensor, group_B: Tensor, scored_B: Tensor | None = None) -> Tensor:
    """Score minus the mean score of the *other* scored responses of its group.

    Arguments, errors and the rows that get exactly 0 are those of `grpo_advantages`.

    Source: Ahmadian et al., "Back to Basics" (arXiv 2402.14740); Kool et al., "Buy 4 REINFORCE Samples, Get a
    Baseline for Free!" (2019).
    """
    groups = _groups("rloo_advantages", scores_B, group_B, scored_B)
    # score − (sum − score) ÷ (n − 1) is n ÷ (n − 1) times the centred score.
    factor_N = groups.count_N / (groups.count_N - 1).clamp(min=1)
    return _where_informative(groups, groups.centred_B * factor_N[groups.number_B], scores_B)


class _Groups(NamedTuple):
    number_B: Tensor  # [B] long, 0 … N − 1
    scored_B: Tensor  # [B] bool
    count_N: Tensor  # [N] float64, scored rows
    centred_B: Tensor  # [B] float64, score minus the mean of its group; 0 where not scored
    std_N: Tensor  # [N] float64, unbiased; 0 with fewer than two scored rows
    alike_N: Tensor  # [N] bool


def _groups(where: str, scores_B: Tensor, group_B: Tensor, scored_B: Tensor | None) -> _Groups:
    scored_B = torch.ones_like(scores_B, dtype=torch.bool) if scored_B is None else scored_B
    check_same_shape(where, scored_B, scores_B=scores_B, group_B=group_B)
    labels_N, number_B, rows_N = torch.unique(group_B, return_inverse=True, return_counts=True)
    if bool((rows_N == 1).any()):
        alone = labels_N[rows_N == 1].tolist()
        raise ConfigError(
            f"{where}: group {alone[0]} has 1 response ({len(alone)} such groups); a group baseline needs at "
            "least 2. Set rollout.group_size to 2 or more, or use algorithm.name=ppo."
        )
    known_B = zero_outside(scores_B.detach().double(), scored_B)

    def sum_by_group(x_B: Tensor) -> Tensor:
        return torch.zeros_like(labels_N, dtype=torch.float64).index_add_(0, number_B, x_B)

    count_N = sum_by_group(scored_B.double())
    mean_N = sum_by_group(known_B) / count_N.clamp(min=1)
    centred_B = zero_outside(known_B - mean_N[number_B], scored_B)
    std_N = (sum_by_group(centred_B.square()) / (count_N - 1).clamp(min=1)).sqrt()
    # `<=` so that a NaN score is not hidden: it reaches the loss, where training stops with an error.
    alike_N = (std_N <= ALIKE * mean_N.abs().clamp(min=1)) | (count_N < 2)
    return _Groups(number_B, scored_B, count_N, centred_B, std_N, alike_N)


def _where_informative(groups: _Groups, advantages_B: Tensor, like: Tensor) -> Tensor:
    """0 where a row is unscored or its group alike; in the floating dtype of `like`."""
    kept_B = zero_outside(advantages_B, groups.scored_B & ~groups.alike_N[groups.number_B])
    return kept_B.to(like.dtype if like.is_floating_point() else torch.get_default_dtype())


def gae(
    rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, *, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation over sampled tokens.

    Masked positions are skipped, interior ones (tool output) too: the token after a gap follows the token
    before it directly, without discount for the gap, and a reward on a masked position is ignored. Nothing is
    bootstrapped after the last sampled token, whether the response ended there or was cut.

    Args:
        rewards_BT: [B, T] reward per token, KL penalty included where there is one.
        values_BT: [B, T] critic at the state before each token.
        mask_BT: [B, T] bool, True on sampled tokens.
        gamma: discount. lam: weight of longer returns; 1 is reward-to-go minus value.

    Returns:
        (advantages, returns), both [B, T], returns = advantages + values; exactly 0 at masked positions.

    Raises:
        ConfigError: shapes differ, or the mask is not boolean.

    Source: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation"
    (arXiv 1506.02438).
    """
    check_same_shape("gae", mask_BT, rewards_BT=rewards_BT, values_BT=values_BT)
    rewards_TB = zero_outside(rewards_BT.detach(), mask_BT).t().contiguous()
    values_TB = zero_outside(values_BT.detach(), mask_BT).t().contiguous()
    mask_TB = mask_BT.t().contiguous()
    advantages_TB = torch.zeros_like(values_TB)
    next_value_B = next_advantage_B = values_TB.new_zeros(values_TB.shape[1])
    for t in range(values_TB.shape[0] - 1, -1, -1):
        delta_B = rewards_TB[t] + gamma * next_value_B - values_TB[t]
        here_B = delta_B + gamma * lam * next_advantage_B
        next_advantage_B = torch.where(mask_TB[t], here_B, next_advantage_B)
        next_value_B = torch.where(mask_TB[t], values_TB[t], next_value_B)
        advantages_TB[t] = next_advantage_B
    advantages_BT = zero_outside(advantages_TB.t().contiguous(), mask_BT)
    return advantages_BT, zero_outside(advantages_BT + values_BT.detach(), mask_BT)


def whiten(x_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Shift and scale to mean 0 and unbiased variance 1 over all sampled tokens of the batch.

    Call it on the whole batch, before it is cut into mini-batches or shards: a part has other moments.
    The variance has 1e-8 added, so that float noise around a constant is not amplified to order 1.

    Args:
        x_BT: [B, T] float. mask_BT: [B, T] bool.

    Returns:
        [B, T], exactly 0 at masked positions. With fewer than two tokens only centred.

    Raises:
        ConfigError: shapes differ, or the mask is not boolean.
    """
    check_same_shape("whiten", mask_BT, x_BT=x_BT)
    tokens = mask_BT.sum()
    known_BT = zero_outside(x_BT.detach().double(), mask_BT)
    centred_BT = zero_outside(known_BT - known_BT.sum() / tokens.clamp(min=1), mask_BT)
    variance = centred_BT.square().sum() / (tokens - 1).clamp(min=1)
    scale = torch.where(tokens < 2, torch.ones_like(variance), torch.rsqrt(variance + 1e-8))
    return (centred_BT * scale).to(x_BT.dtype)
