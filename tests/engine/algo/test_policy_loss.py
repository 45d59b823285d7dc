"""The clipped policy loss: golden values, signs, bounds."""

import math

import pytest
import torch
from torch import Tensor

from leverl.engine.algo.aggregation import aggregate, loss_total
from leverl.engine.algo.policy_loss import PolicyLossTerms, clipped_policy_loss
from leverl.errors import ConfigError

Case = tuple[PolicyLossTerms, float, float]


def one_token(
    ratio: float,
    advantage: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
) -> Case:
    """Terms, loss and d loss / d log_prob of a single token."""
    log_probs = torch.tensor([[math.log(ratio) - 1.0]], dtype=torch.float64, requires_grad=True)
    terms = clipped_policy_loss(
        log_probs,
        torch.full_like(log_probs, -1.0),
        torch.full_like(log_probs, advantage),
        torch.ones(1, 1, dtype=torch.bool),
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
    )
    terms.per_token.sum().backward()
    return terms, terms.per_token.item(), log_probs.grad.item()


def test_vector_a_per_token() -> None:
    terms = clipped_policy_loss(
        torch.tensor([[-0.8, -2.3, -0.5, -1.2], [-0.6, -0.7, 9, 9]]),
        torch.tensor([[-1.0, -2.0, -0.5, -1.5], [-0.7, -1.2, 0, 0]]),
        torch.tensor([[1.5], [-0.5]]).expand(2, 4),
        torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool),
        clip_low=0.2,
        clip_high=0.2,
    )
    expected = [[-1.8, -1.111227, -1.5, -1.8], [0.552585, 0.824361, 0, 0]]
    torch.testing.assert_close(terms.per_token, torch.tensor(expected), atol=1e-6, rtol=0)
    assert terms.clipped_high.tolist() == [[True, False, False, True], [False] * 4]
    assert not terms.clipped_low.any()
    assert not terms.dual_clipped.any()
    assert terms.ratio[1, 2:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "dual_clip", "loss", "grad"),
    [
        (0.2, 1.5, None, -1.8321, -1.8321),  # inside the band
        (0.5, 2.0, None, -2.6, 0.0),  # clipped high
        (-0.5, -1.0, None, 0.8, 0.0),  # clipped low
        (1.0, -1.5, 2.0, 3.0, 0.0),  # dual clip
    ],
)
def test_vector_h_single_tokens(
    log_ratio: float, advantage: float, dual_clip: float | None, loss: float, grad: float
) -> None:
    _, value, slope = one_token(math.exp(log_ratio), advantage, 0.2, 0.3, dual_clip)
    assert value == pytest.approx(loss, abs=1e-4)
    assert slope == pytest.approx(grad, abs=1e-4)


@pytest.mark.parametrize(
    ("mode", "loss", "grad"),
    [("token_mean", 0.46839, math.exp(0.1) / 3), ("seq_mean_token_mean", 0.62759, math.exp(0.1) / 2)],
)
def test_vector_h_ragged_batch(mode: str, loss: float, grad: float) -> None:
    log_probs = torch.tensor([[-0.3, -1.2], [-0.5, 77.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True], [True, False]])
    terms = clipped_policy_loss(
        log_probs,
        torch.tensor([[-0.7, -0.8], [-0.6, 77.0]], dtype=torch.float64),
        torch.tensor([[1.0, -2.0], [-1.0, 77.0]], dtype=torch.float64),
        mask,
        clip_low=0.2,
        clip_high=0.3,
    )
    result = aggregate(terms.per_token, mask, mode, total=loss_total(mask, mode))
    result.backward()
    assert result.item() == pytest.approx(loss, abs=5e-6)
    torch.testing.assert_close(log_probs.grad, torch.tensor([[0.0, 0.0], [grad, 0.0]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "grad"),
    [
        (0.5, 2.0, -1.0, -1.0),  # below, A > 0: moving back is rewarded in full
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.2),  # inside
        (1.5, 2.0, -2.4, 0.0),  # above, A > 0: clipped
        (0.5, -2.0, 1.6, 0.0),  # below, A < 0: clipped
        (0.9, -2.0, 1.8, 1.8),  # inside
        (1.5, -2.0, 3.0, 3.0),  # above, A < 0: moving back is rewarded in full
        (1.5, 0.0, 0.0, 0.0),
    ],
)
def test_a11_value_and_gradient_for_every_side_and_sign(
    ratio: float, advantage: float, loss: float, grad: float
) -> None:
    terms, value, slope = one_token(ratio, advantage)
    assert value == pytest.approx(loss, rel=1e-12)
    if grad == 0.0:
        assert slope == 0.0
    assert slope == pytest.approx(grad, rel=1e-12)
    assert terms.clipped_high.item() is (ratio > 1.2 and advantage > 0)
    assert terms.clipped_low.item() is (ratio < 0.8 and advantage < 0)


def test_a12_dual_clip_bounds_the_loss_of_negative_advantages_only() -> None:
    terms, loss, grad = one_token(5.0, -2.0, dual_clip=3.0)
    assert (loss, grad, terms.dual_clipped.item()) == (pytest.approx(6.0), 0.0, True)
    _, loss, grad = one_token(2.9, -2.0, dual_clip=3.0)
    assert (loss, grad) == (pytest.approx(5.8), pytest.approx(5.8))
    with_c, without = one_token(5.0, 2.0, dual_clip=3.0), one_token(5.0, 2.0)
    assert with_c == without
    assert not with_c[0].dual_clipped.item()
    assert one_token(5.0, -2.0)[1:] == (pytest.approx(10.0), pytest.approx(10.0))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "grad"),
    [
        (1.35, 1.0, -1.35, -1.35),  # inside: the upper bound is 1.4, not 1.1
        (1.45, 1.0, -1.4, 0.0),
        (0.95, -1.0, 0.95, 0.95),  # inside: the lower bound is 0.9
        (0.85, -1.0, 0.9, 0.0),  # clipped: it would not be with bounds swapped
    ],
)
def test_a13_unequal_bounds_are_on_their_own_side(
    ratio: float, advantage: float, loss: float, grad: float
) -> None:
    _, value, slope = one_token(ratio, advantage, clip_low=0.1, clip_high=0.4)
    assert value == pytest.approx(loss, rel=1e-12)
    assert slope == pytest.approx(grad, rel=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_huge_log_ratios_stay_finite(sign: int, advantage: float) -> None:
    log_probs = torch.tensor([[sign * 200.0]], requires_grad=True)
    zeros, mask = torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)
    terms = clipped_policy_loss(log_probs, zeros, zeros + advantage, mask, clip_low=0.2, clip_high=0.2)
    terms.per_token.sum().backward()
    assert terms.ratio.item() == pytest.approx(math.exp(sign * 20.0))
    assert torch.isfinite(terms.per_token).all()
    assert log_probs.grad.item() == 0.0


def test_only_the_current_log_probs_get_a_gradient_and_inputs_stay_as_they_are() -> None:
    inputs: list[Tensor] = [torch.tensor([[0.1, -0.2]], requires_grad=True) for _ in range(3)]
    versions = [x._version for x in inputs]
    terms = clipped_policy_loss(
        *inputs, torch.ones(1, 2, dtype=torch.bool), clip_low=0.2, clip_high=0.2, dual_clip=3.0
    )
    terms.per_token.sum().backward()
    assert [x.grad is None for x in inputs] == [False, True, True]
    assert [x._version for x in inputs] == versions


def test_a_nan_at_a_sampled_token_is_not_hidden() -> None:
    nan, zeros = torch.full((1, 1), torch.nan), torch.zeros(1, 1)
    mask = torch.ones(1, 1, dtype=torch.bool)
    assert (
        clipped_policy_loss(nan, zeros, zeros + 1, mask, clip_low=0.2, clip_high=0.2).per_token.isnan().all()
    )


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"clip_low": 0.0, "clip_high": 0.2}, "clip_low is 0.0, must be between 0 and 1"),
        ({"clip_low": 1.5, "clip_high": 0.2}, "clip_low is 1.5"),
        ({"clip_low": 0.2, "clip_high": -0.1}, "clip_high is -0.1, must be above 0"),
        ({"clip_low": 0.2, "clip_high": 0.2, "dual_clip": 0.9}, "dual_clip is 0.9, must be above 1"),
    ],
)
def test_bounds_out_of_range_are_refused(bounds: dict[str, float], message: str) -> None:
    x = torch.zeros(1, 1)
    with pytest.raises(ConfigError, match=message):
        clipped_policy_loss(x, x, x, x.bool(), **bounds)


def test_advantages_per_response_are_not_broadcast() -> None:
    x, mask = torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(ConfigError, match=r"advantages has shape \(2,\), the mask has \(2, 2\)"):
        clipped_policy_loss(x, x, torch.zeros(2), mask, clip_low=0.2, clip_high=0.2)
