"""Forward passes over the rows of a batch in micro-batches of similar length."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leverl.engine.data.batch import Batch
from leverl.engine.inference.filtering import filter_logits
from leverl.engine.policy.load import Policy
from leverl.engine.policy.log_probs import Support, TokenLogProbs, token_log_probs
from leverl.engine.policy.sequences import Sequences, join, micro_batches
from leverl.engine.policy.value import ValueModel
from leverl.engine.roles.padding import pass_tokens, pieces


@dataclass(frozen=True)
class View:
    """Which distribution over tokens is meant: that of the sampler, temperature and truncation included."""

    temperature: float
    top_p: float = 1.0
    top_k: int = 0

    @property
    def support(self) -> Support | None:
        """Cuts logits as the sampler does; None where it cuts nothing."""
        if self.top_p >= 1 and self.top_k == 0:
            return None
        return lambda logits: filter_logits(logits, top_k=self.top_k, top_p=self.top_p)


@dataclass(frozen=True)
class MicroBatch:
    """Rows of a batch, cut to their longest response, with their prompts joined on."""

    rows: Tensor
    batch: Batch
    sequences: Sequences

    @property
    def width(self) -> int:
        return int(self.batch.responses.shape[1])

    def log_probs(
        self, policy: Policy, view: "View", *, entropy: bool = False, entropy_gradient: bool = True
    ) -> TokenLogProbs:
        """Log-probs [b, width] of the sampled tokens, in the distribution that `view` describes."""
        return token_log_probs(
            policy,
            self.sequences,
            temperature=view.temperature,
            entropy=entropy,
            entropy_gradient=entropy_gradient,
            support=view.support,
        )

    def values(self, model: ValueModel) -> Tensor:
        """[b, width] values of the states before the sampled tokens."""
        values: Tensor = model(self.sequences)
        return values


def micro_batches_of(
    batch: Batch, rows: Tensor, max_tokens: int, device: torch.device | None = None
) -> Iterator[MicroBatch]:
    """Cut `rows` into micro-batches of at most `max_tokens` padded tokens, sorted by length.

    They are smaller than that where lengths differ so much that padding would cost more than another pass;
    sums over the parts do not depend on it.
    """
    lengths, totals = batch.lengths, batch.lengths + batch.prompt_lengths
    for chosen in _similar(rows, totals[rows], max_tokens, pass_tokens(device)):
        micro = batch.rows(chosen, max(1, int(lengths[chosen].max())))
        prompts = [batch.prompts[int(g)].token_ids for g in micro.group]
        sequences = join(prompts, micro.responses, lengths[chosen])
        if device is not None:
            micro, sequences = micro.to(device), sequences.to(device)
        yield MicroBatch(chosen, micro, sequences)


def _similar(rows: Tensor, totals: Tensor, max_tokens: int, cost: int) -> Iterator[Tensor]:
    """`rows`, whose sequences have `totals` tokens, in parts of similar length, longest first."""
    for part in micro_batches(totals, max_tokens):
        for piece in torch.split(part, pieces(totals[part], cost)):
            yield rows[piece]


@torch.no_grad()
def log_probs_of_batch(policy: Policy, batch: Batch, view: View, max_tokens: int) -> Tensor:
    """[B, T] log-probs of all sampled tokens, 0 where nothing was sampled."""
    found = torch.zeros(batch.responses.shape, dtype=torch.float32)
    for micro in micro_batches_of(batch, torch.arange(batch.size), max_tokens, policy.device):
        computed = micro.log_probs(policy, view).log_probs.float().cpu()
        found[micro.rows, : micro.width] = computed
    return found.masked_fill(~batch.mask, 0.0)


@torch.no_grad()
def values_of_batch(model: ValueModel, batch: Batch, max_tokens: int, device: torch.device) -> Tensor:
    """[B, T] values of the states before all sampled tokens, 0 where nothing was sampled."""
    found = torch.zeros(batch.responses.shape, dtype=torch.float32)
    for micro in micro_batches_of(batch, torch.arange(batch.size), max_tokens, device):
        found[micro.rows, : micro.width] = micro.values(model).float().cpu()
    return found.masked_fill(~batch.mask, 0.0)
