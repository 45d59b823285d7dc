"""Entropy of next-token distributions."""

import math

import pytest
import torch

from leverl.engine.algo.aggregation import aggregate, loss_total
from leverl.engine.algo.entropy import entropy_from_logits


@pytest.mark.parametrize("size", [2, 19, 5000])
@pytest.mark.parametrize("level", [0.0, -300.0, 1e4])
def test_a18_uniform_logits_have_entropy_ln_v(size: int, level: float) -> None:
    result = entropy_from_logits(torch.full((2, 3, size), level))
    torch.testing.assert_close(result, torch.full((2, 3), math.log(size)))


def test_a18_padding_does_not_count() -> None:
    logits = torch.randn(2, 4, 7, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]], dtype=torch.bool)
    total = loss_total(mask, "token_mean")
    result = aggregate(entropy_from_logits(logits), mask, "token_mean", total=total)
    result.backward()
    assert result.item() == pytest.approx(entropy_from_logits(logits[mask]).mean().item())
    assert not logits.grad[~mask].any()
    other = torch.where(mask[..., None], logits.detach(), torch.full_like(logits, 1e9))
    assert aggregate(entropy_from_logits(other), mask, "token_mean", total=total).item() == result.item()


def test_a18_a_bonus_raises_entropy_after_a_step() -> None:
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(1)).requires_grad_()
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]], dtype=torch.bool)
    before = entropy_from_logits(logits).detach()
    loss = -0.5 * aggregate(
        entropy_from_logits(logits), mask, "token_mean", total=loss_total(mask, "token_mean")
    )
    loss.backward()
    after = entropy_from_logits(logits.detach() - logits.grad)
    assert (after[mask] > before[mask]).all()
    assert torch.equal(after[~mask], before[~mask])


def test_ids_that_cannot_be_sampled_contribute_nothing() -> None:
    logits = torch.tensor([0.3, -1.0, 2.0], requires_grad=True)
    padded = torch.cat([logits, torch.full((2,), -torch.inf)])
    entropy = entropy_from_logits(padded)
    assert entropy.item() == pytest.approx(entropy_from_logits(logits).item())
    entropy.backward()
    p = logits.detach().softmax(0)
    torch.testing.assert_close(logits.grad, -p * (p.log() - (p * p.log()).sum()))


def test_low_precision_logits_are_computed_in_float32() -> None:
    logits = torch.randn(5, 64, generator=torch.Generator().manual_seed(2)).bfloat16()
    result = entropy_from_logits(logits)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, entropy_from_logits(logits.float()))
    assert entropy_from_logits(logits.double()).dtype == torch.float64
