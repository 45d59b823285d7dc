"""Checklist row 10: NaN, infinity and huge numbers at masked positions of every input change nothing."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from leverl.engine.algo.advantages import gae, whiten
from leverl.engine.algo.aggregation import AGGREGATIONS, aggregate, loss_total
from leverl.engine.algo.kl import KL_ESTIMATORS, kl_penalised_rewards
from leverl.engine.algo.mismatch import log_prob_mismatch
from leverl.engine.algo.policy_loss import clipped_policy_loss
from leverl.engine.algo.ratio import ratio_histogram, ratio_statistics
from leverl.engine.algo.value_loss import clipped_value_loss, explained_variance

MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=torch.bool)
JUNK = [torch.nan, torch.inf, -torch.inf, 1e9, -1e9]
Inputs = Sequence[Tensor]


def policy(mode: str) -> Callable[[Inputs], Inputs]:
    def loss(x: Inputs) -> Inputs:
        terms = clipped_policy_loss(*x, MASK, clip_low=0.2, clip_high=0.3, dual_clip=3.0)
        return [aggregate(terms.per_token, MASK, mode, total=loss_total(MASK, mode, 8)), *terms]

    return loss


def kl(name: str) -> Callable[[Inputs], Inputs]:
    return lambda x: [KL_ESTIMATORS[name](x[0], x[1], MASK)]


DIFFERENTIABLE: dict[str, Callable[[Inputs], Inputs]] = {
    **{f"policy {mode}": policy(mode) for mode in AGGREGATIONS},
    **{name: kl(name) for name in KL_ESTIMATORS},
    "value": lambda x: list(clipped_value_loss(*x, MASK, clip=0.5)),
    "value without clip": lambda x: list(clipped_value_loss(*x, MASK, clip=None)),
    "aggregate": lambda x: [aggregate(x[0], MASK, "token_mean", total=9)],
}
CONSTANT: dict[str, Callable[[Inputs], object]] = {
    "gae": lambda x: [y.tolist() for y in gae(x[0], x[1], MASK, gamma=0.9, lam=0.8)],
    "whiten": lambda x: whiten(x[0], MASK).tolist(),
    "rewards": lambda x: kl_penalised_rewards(torch.arange(4.0), None, MASK, x[0], x[1], 0.1).tolist(),
    "explained variance": lambda x: explained_variance(x[0], x[1], MASK),
    "ratio": lambda x: ratio_statistics(x[0], MASK, clip_low=0.2, clip_high=0.2),
    "histogram": lambda x: ratio_histogram(x[0], MASK),
    "mismatch": lambda x: log_prob_mismatch(x[0], x[1], MASK),
}


def inputs(junk: float | None) -> list[Tensor]:
    """Three [B, T] tensors; the values at masked positions are `junk`, or sane when it is None."""
    generator = torch.Generator().manual_seed(8)
    clean = [torch.randn(MASK.shape, generator=generator) for _ in range(3)]
    return clean if junk is None else [torch.where(MASK, x, junk) for x in clean]


def outputs_and_gradient(function: Callable[[Inputs], Inputs], x: list[Tensor]) -> list[list[float]]:
    x[0].requires_grad_()
    results = function(x)
    results[0].sum().backward()
    assert x[0].grad is not None
    return [y.detach().tolist() for y in (*results, x[0].grad)]


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a10_values_and_gradients_do_not_see_junk(name: str, junk: float) -> None:
    expected = outputs_and_gradient(DIFFERENTIABLE[name], inputs(None))
    assert outputs_and_gradient(DIFFERENTIABLE[name], inputs(junk)) == expected
    assert any(torch.tensor(expected[-1])[MASK])
    assert not any(torch.tensor(expected[-1])[~MASK])


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("name", CONSTANT)
def test_a10_constants_and_statistics_do_not_see_junk(name: str, junk: float) -> None:
    assert CONSTANT[name](inputs(junk)) == CONSTANT[name](inputs(None))
