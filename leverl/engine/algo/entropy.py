"""Entropy of the next-token distribution."""

import torch
from torch import Tensor

from leverl.engine.algo.tensors import at_least_float32


def entropy_from_logits(logits: Tensor) -> Tensor:
    """Entropy in nats of softmax(logits) over the last axis, differentiable.

    Args:
        logits: [..., V], already divided by the temperature. −inf marks ids that cannot be sampled.

    Returns:
        [...] in float32 (float64 for float64 logits), whatever the dtype of the logits.
    """
    log_probs = torch.log_softmax(at_least_float32(logits), dim=-1)
    # 0 · −inf is NaN: an impossible id contributes 0, to the gradient too.
    finite = log_probs.masked_fill(log_probs == -torch.inf, 0.0)
    return -(log_probs.exp() * finite).sum(dim=-1)
