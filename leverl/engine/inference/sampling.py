"""From logits to one id per row: inverse-CDF sampling with given uniforms, or greedy."""

import torch
from torch import Tensor

from leverl.engine.inference.filtering import filter_logits
from leverl.engine.inference.protocol import SamplingParams
from leverl.errors import TrainingFailed


def draw(logits: Tensor, params: SamplingParams, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """One id per row and its log-prob under the distribution it was drawn from.

    Args:
        logits: [n, V] float32.
        uniforms: [n] float64 in [0, 1); not read when greedy.

    Returns:
        ids [n] long and log-probs [n]; a greedy id was certain, its log-prob is 0.

    Raises:
        TrainingFailed: logits are NaN or +inf.
    """
    if params.temperature == 0:
        best = logits.max(dim=-1)
        _check_finite(best.values)
        return best.indices, torch.zeros_like(best.values)
    if params.temperature != 1:
        logits = logits / params.temperature
    logits = filter_logits(logits, top_k=params.top_k, top_p=params.top_p)
    log_probs = logits.log_softmax(dim=-1)
    # Summed in float64, the probabilities of rare ids of a large vocabulary survive.
    cumulative = log_probs.exp().cumsum(dim=-1, dtype=torch.float64)
    total = cumulative[:, -1:]
    _check_finite(total)
    # The first id whose cumulative probability exceeds u: an id of probability 0 is never the first.
    ids = torch.searchsorted(cumulative, uniforms[:, None] * total, right=True)
    return ids.squeeze(1), log_probs.gather(1, ids).squeeze(1)


def _check_finite(values: Tensor) -> None:
    if not bool(torch.isfinite(values).all()):
        raise TrainingFailed(
            "sampling: the policy's logits are NaN or infinite, so that no token can be drawn. Its weights "
            "have probably diverged: lower actor.learning_rate, or go on from an earlier checkpoint."
        )
