"""From a loss per token to one number, in a way that micro-batches and data-parallel ranks cannot change.

A loss is (sum over this part) ÷ (total over the whole mini-batch). The total is computed once, before the
mini-batch is cut:

    total = loss_total(mask_BT, mode, norm_length)             # all ranks: all_reduce(total, SUM)
    for part in parts:
        aggregate(per_token[part], mask[part], mode, total=total).backward()

The parts then add up to the value and the gradient of the whole, for every mode and every split. So gradients
of ranks are *summed*; where a wrapper averages them (DistributedDataParallel, FSDP), multiply the loss by the
number of ranks.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from leverl.engine.algo.tensors import check_same_shape, zero_outside
from leverl.errors import ConfigError
from leverl.plugins import nearest

Aggregation = Literal["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "token_sum_norm"]
AGGREGATIONS: tuple[str, ...] = get_args(Aggregation)


def loss_total(mask_BT: Tensor, mode: Aggregation, norm_length: float | None = None) -> Tensor:
    """What the summed loss of a mini-batch is divided by; totals of disjoint parts add up.

    - `token_mean`: sampled tokens.
    - `seq_mean_token_mean`, `seq_mean_token_sum`: sequences.
    - `token_sum_norm`: sequences · `norm_length`, a constant such as the response length limit, never the
      width the batch happens to be padded to (Dr. GRPO, arXiv 2503.20783).

    A sequence without a sampled token is not counted.

    Args:
        mask_BT: [B, T] bool. norm_length: needed by `token_sum_norm`, ignored otherwise.

    Returns:
        float64 scalar tensor on the device of the mask; 0 when nothing was sampled.

    Raises:
        ConfigError: unknown mode, a mask that is not boolean, or `norm_length` missing or not positive.
    """
    check_same_shape("loss_total", mask_BT)
    _check_mode("loss_total", mode)
    if mode == "token_mean":
        return mask_BT.sum().double()
    sequences = mask_BT.any(dim=1).sum().double()
    if mode != "token_sum_norm":
        return sequences
    if norm_length is None or not norm_length > 0:
        raise ConfigError(
            f"loss_total: norm_length is {norm_length}, but mode 'token_sum_norm' needs a positive constant; "
            "give rollout.max_response_length."
        )
    return sequences * norm_length


def aggregate(per_token_BT: Tensor, mask_BT: Tensor, mode: Aggregation, *, total: Tensor | float) -> Tensor:
    """The share of these rows in the loss of their mini-batch.

    Args:
        per_token_BT: [B, T] float; anything at masked positions. A row must not be cut between parts.
        mask_BT: [B, T] bool.
        total: `loss_total` of the *whole* mini-batch, all ranks included.

    Returns:
        Scalar in the dtype of `per_token_BT`, differentiable. 0 with gradient 0 when nothing was sampled.

    Raises:
        ConfigError: unknown mode, shapes differ, or the mask is not boolean.
    """
    check_same_shape("aggregate", mask_BT, per_token_BT=per_token_BT)
    _check_mode("aggregate", mode)
    per_sequence_B = zero_outside(per_token_BT, mask_BT).sum(dim=1)
    if mode == "seq_mean_token_mean":
        per_sequence_B = per_sequence_B / mask_BT.sum(dim=1).clamp(min=1)
    total = torch.as_tensor(total, dtype=torch.float64, device=per_token_BT.device)
    loss = per_sequence_B.sum() / torch.where(total > 0, total, torch.ones_like(total))
    return loss.to(per_token_BT.dtype)


def _check_mode(where: str, mode: str) -> None:
    if mode not in AGGREGATIONS:
        raise ConfigError(
            f"{where}: unknown mode '{mode}'.{nearest(mode, AGGREGATIONS)} Known: {', '.join(AGGREGATIONS)}."
        )
