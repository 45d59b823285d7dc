"""The critic's loss and explained variance."""

import pytest
import torch

from leverl.engine.algo.aggregation import aggregate, loss_total
from leverl.engine.algo.value_loss import clipped_value_loss, explained_variance
from leverl.errors import ConfigError

MASK = torch.ones(1, 3, dtype=torch.bool)


def test_vector_e_and_a19_the_larger_error_counts_and_the_prediction_is_clipped() -> None:
    values = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([[0.5, 2.5, 3.0]], dtype=torch.float64)
    terms = clipped_value_loss(values, old, torch.full_like(old, 2.0), MASK, clip=0.2)
    torch.testing.assert_close(2 * terms.per_token, torch.tensor([[1.69, 0.09, 1.0]], dtype=torch.float64))
    loss = aggregate(terms.per_token, MASK, "token_mean", total=loss_total(MASK, "token_mean"))
    loss.backward()
    assert loss.item() == pytest.approx(0.463333, abs=5e-7)
    assert terms.clipped.tolist() == [[True, True, False]]
    # Clipped tokens have no gradient; the third has (v − R) ÷ 3.
    torch.testing.assert_close(values.grad, torch.tensor([[0.0, 0.0, 1 / 3]], dtype=torch.float64))


def test_a19_a_value_that_moved_away_keeps_its_gradient() -> None:
    values = torch.tensor([[3.0, 1.1, 2.0]], dtype=torch.float64, requires_grad=True)
    old, returns = torch.ones(1, 3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)
    terms = clipped_value_loss(values, old, returns, MASK, clip=0.2)
    terms.per_token.sum().backward()
    assert values.grad.tolist() == [[3.0, 1.1, 2.0]]
    assert not terms.clipped.any()


def test_without_clip_it_is_half_the_squared_error() -> None:
    values, returns = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0.0, 0.0, 5.0]])
    terms = clipped_value_loss(values, values + 9, returns, MASK, clip=None)
    assert terms.per_token.tolist() == [[0.5, 2.0, 2.0]]
    assert not terms.clipped.any()


def test_only_the_current_values_get_a_gradient() -> None:
    values, old, returns = (torch.ones(1, 3, requires_grad=True) for _ in range(3))
    clipped_value_loss(values, old, returns, MASK, clip=0.2).per_token.sum().backward()
    assert values.grad is not None
    assert old.grad is None
    assert returns.grad is None


@pytest.mark.parametrize("clip", [0.0, -0.2])
def test_clip_must_be_positive(clip: float) -> None:
    x = torch.zeros(1, 3)
    with pytest.raises(ConfigError, match=f"clip is {clip}, must be above 0"):
        clipped_value_loss(x, x, x, MASK, clip=clip)


def test_explained_variance() -> None:
    returns = torch.tensor([[1.0, 2.0, 3.0, torch.nan]])
    mask = torch.tensor([[True, True, True, False]])
    assert explained_variance(returns, returns, mask) == 1.0
    assert explained_variance(returns, torch.full_like(returns, 7.0), mask) == 0.0
    assert explained_variance(returns, -returns, mask) == pytest.approx(-3.0)
    assert explained_variance(returns, returns + 5.0, mask) == pytest.approx(1.0)


def test_explained_variance_is_absent_where_it_is_undefined() -> None:
    returns, mask = torch.full((1, 3), 0.1), MASK.clone()
    assert explained_variance(returns, torch.tensor([[1.0, 2.0, 3.0]]), mask) is None
    mask[0, 1:] = False
    assert explained_variance(torch.tensor([[1.0, 2.0, 3.0]]), returns, mask) is None
    assert explained_variance(returns, returns, mask & False) is None
