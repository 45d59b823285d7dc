"""Log-probabilities of response tokens under a causal LM, as the sampler computes them.

Same temperature, same vocabulary, float32 log-softmax whatever the dtype of the model: at unchanged weights
the result equals the rollout's log-probs up to float noise, and every probability ratio starts at 1.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from leverl.engine.policy.load import Policy
from leverl.engine.policy.sequences import Sequences, response_index
from leverl.errors import ConfigError

Support = Callable[[Tensor], Tensor]
"""[n, V] logits -> logits with −inf on ids that could not be sampled (top-k, top-p)."""


@dataclass(frozen=True)
class TokenLogProbs:
    """Per response token; 0 outside the sequences' mask."""

    log_probs: Tensor  # [b, T] float32
    entropy: Tensor | None  # [b, T] float32, in nats, of the same distribution

    def require_entropy(self) -> Tensor:
        """The entropy, which must have been asked for.

        Raises:
            ConfigError: it was not.
        """
        if self.entropy is None:
            raise ConfigError("log-probs: the entropy was not computed. Call token_log_probs(entropy=True).")
        return self.entropy


def token_log_probs(
    policy: Policy,
    sequences: Sequences,
    *,
    temperature: float,
    entropy: bool = False,
    entropy_gradient: bool = True,
    support: Support | None = None,
) -> TokenLogProbs:
    """One forward pass; differentiable when gradients are enabled.

    Args:
        policy: its ids from `vocab_size` on (padding rows of the embedding) have no probability.
        sequences: [b, S]; response token t of row i stands at position prompt_lengths[i] + t and is predicted
            by the logits one position before it.
        temperature: logits are divided by it, as in sampling.
        entropy: compute the entropy too.
        entropy_gradient: False when it is only measured; its intermediate results [n, V] are then not kept for
            a backward pass.
        support: restricts the distribution as the sampler did. The token itself always stays in it, else
            float noise at the edge of a nucleus would give −inf.

    Raises:
        ConfigError: temperature 0 or below; a greedy choice has no log-probability to learn from.
    """
    if not temperature > 0:
        raise ConfigError(f"log-probs: temperature is {temperature}, must be positive.")
    rows, columns = response_index(sequences.lengths, sequences.width)
    positions = sequences.prompt_lengths[rows] + columns
    tokens = sequences.ids[rows, positions]
    with policy.computing():
        logits = _response_logits(policy.model, sequences, rows, positions - 1)[:, : policy.vocab_size]
    flat = log_probs_of(
        logits, tokens, temperature, entropy=entropy, entropy_gradient=entropy_gradient, support=support
    )
    return TokenLogProbs(
        _scatter(flat[0], rows, columns, sequences),
        None if flat[1] is None else _scatter(flat[1], rows, columns, sequences),
    )


def _response_logits(model: Any, sequences: Sequences, rows: Tensor, positions: Tensor) -> Tensor:
    """[n, V] logits at n (row, position) pairs; where the model can, shared prompt positions are left out."""
    ids = sequences.ids[:, : max(1, sequences.ids.shape[1] - 1)]  # nothing is predicted from the last token
    size = ids.shape[1]
    first = int(sequences.prompt_lengths.min()) - 1
    options = offered(model, use_cache=False, logits_to_keep=size - first)
    logits: Tensor = model(input_ids=ids, **options).logits
    return logits[rows, positions - (size - logits.shape[1])]


def offered(model: Any, **options: Any) -> dict[str, Any]:
    """Those of `options` that the model's forward has a parameter for."""
    names = inspect.signature(model.forward).parameters
    return {name: value for name, value in options.items() if name in names}


def log_probs_of(
    logits: Tensor,
    tokens: Tensor,
    temperature: float,
    *,
    entropy: bool = False,
    entropy_gradient: bool = True,
    support: Support | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Log-probs [n] of `tokens` [n] under `logits` [n, V] of any float dtype, and the entropy [n]."""
    logits = logits.float()
    if temperature != 1:
        logits = logits / temperature
    if support is not None:
        column = tokens[:, None]
        logits = support(logits).scatter(1, column, logits.gather(1, column))
    log_softmax = logits.log_softmax(dim=-1)
    log_probs = log_softmax.gather(1, tokens[:, None]).squeeze(1)
    if not entropy:
        return log_probs, None
    if not entropy_gradient:
        return log_probs, torch.special.entr(log_softmax.detach().exp()).sum(dim=-1)
    # 0 · −inf is NaN, in the gradient too.
    finite = log_softmax.masked_fill(log_softmax == -torch.inf, 0.0)
    return log_probs, -(log_softmax.exp() * finite).sum(dim=-1)


def _scatter(flat: Tensor, rows: Tensor, columns: Tensor, sequences: Sequences) -> Tensor:
    out = flat.new_zeros(len(sequences.ids), sequences.width)
    return out.index_put((rows, columns), flat)
