"""Top-k and top-p: which ids may be sampled. Everything else gets a logit of −inf."""

import torch
from torch import Tensor


def filter_logits(logits: Tensor, *, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """Logits with −inf on every id outside the top-k and, of what is left, outside the nucleus.

    Args:
        logits: [..., V], already divided by the temperature.
        top_k: keep the k most probable ids (all of them when they tie with the k-th); 0 is off.
        top_p: keep the smallest set of most probable ids whose probability reaches `top_p` (Holtzman et al.,
            "The curious case of neural text degeneration", 2020); 1 is off. At least one id stays.
    """
    if 0 < top_k < logits.shape[-1]:
        smallest = logits.topk(top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, -torch.inf)
    if top_p < 1:
        ordered, index = logits.sort(dim=-1, descending=True)
        probs = ordered.softmax(dim=-1)
        before = probs.cumsum(dim=-1) - probs  # probability of all more probable ids
        outside = (before >= top_p).scatter(-1, index, before >= top_p)
        logits = logits.masked_fill(outside, -torch.inf)
    return logits
