"""KL: estimators, the gradients they stand for, and the penalty in the reward."""

import math

import pytest
import torch
from torch import Tensor

from leverl.engine.algo.aggregation import aggregate, loss_total
from leverl.engine.algo.kl import KL_ESTIMATORS, kl_k1, kl_k2, kl_k3, kl_penalised_rewards, terminal_rewards
from leverl.engine.algo.policy_loss import clipped_policy_loss
from leverl.errors import ConfigError

SAMPLES = 200_000


def value_and_slope(name: str, delta: float, dtype: torch.dtype = torch.float64) -> tuple[float, float]:
    """An estimator and its derivative by the log-prob, at a given Δ."""
    log_probs = torch.tensor([[delta]], dtype=dtype, requires_grad=True)
    value = KL_ESTIMATORS[name](log_probs, torch.zeros(1, 1, dtype=dtype))
    value.sum().backward()
    return value.item(), log_probs.grad.item()


@pytest.mark.parametrize(
    ("name", "value", "slope"), [("k1", 0.5, 1.0), ("k2", 0.125, 0.5), ("k3", 0.106531, 0.393469)]
)
def test_vector_b_and_a37_values_and_gradients(name: str, value: float, slope: float) -> None:
    assert value_and_slope(name, 0.5) == (pytest.approx(value, abs=5e-7), pytest.approx(slope, abs=5e-7))


@pytest.mark.parametrize("delta", [-3.0, -0.1, 0.0, 0.7, 5.0])
def test_a38_derivative_of_k2_is_delta_and_of_k3_is_one_minus_exp(delta: float) -> None:
    assert value_and_slope("k1", delta)[1] == 1.0
    assert value_and_slope("k2", delta)[1] == pytest.approx(delta, rel=1e-12)
    assert value_and_slope("k3", delta)[1] == pytest.approx(1 - math.exp(-delta), rel=1e-12, abs=1e-15)


class Bandit:
    """One token out of six: everything about it is known exactly."""

    def __init__(self) -> None:
        self.theta = torch.tensor([0.3, -1.2, 0.8, 0.0, 1.5, -0.4], dtype=torch.float64, requires_grad=True)
        self.ref = torch.log_softmax(torch.tensor([1.0, 0.2, -0.9, 0.4, 0.1, -1.3], dtype=torch.float64), 0)
        self.tokens = torch.multinomial(
            self.theta.detach().softmax(0), SAMPLES, True, generator=torch.Generator().manual_seed(11)
        )

    def log_pi(self) -> Tensor:
        return torch.log_softmax(self.theta, 0)

    def exact_kl(self) -> Tensor:
        return (self.log_pi().exp() * (self.log_pi() - self.ref)).sum()

    def exact_gradient(self, forward: bool = False) -> Tensor:
        """∇ KL(π ‖ π_ref); of KL(π_ref ‖ π) when `forward`."""
        kl = (self.ref.exp() * (self.ref - self.log_pi())).sum() if forward else self.exact_kl()
        return torch.autograd.grad(kl, self.theta)[0]

    def log_probs(self) -> tuple[Tensor, Tensor, Tensor]:
        """[samples, 1] log-probs (a leaf), reference log-probs and mask."""
        log_probs = self.log_pi().detach()[self.tokens].unsqueeze(1).requires_grad_()
        return log_probs, self.ref[self.tokens].unsqueeze(1), torch.ones(SAMPLES, 1, dtype=torch.bool)

    def monte_carlo(self, per_token: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean of the gradients of single samples, and its standard error, for each component of theta."""
        (slope,) = torch.autograd.grad(per_token.sum(), log_probs)
        score = torch.nn.functional.one_hot(self.tokens, 6).double() - self.theta.detach().softmax(0)
        gradients = slope * score
        return gradients.mean(0), gradients.std(0) / SAMPLES**0.5


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_a38_expected_gradient_as_a_loss(name: str) -> None:
    bandit = Bandit()
    log_probs, ref, mask = bandit.log_probs()
    mean, error = bandit.monte_carlo(KL_ESTIMATORS[name](log_probs, ref, mask), log_probs)
    reverse, forward = bandit.exact_gradient(), bandit.exact_gradient(forward=True)
    expected = {"k1": torch.zeros_like(reverse), "k2": reverse, "k3": forward}[name]
    assert ((mean - expected).abs() < 5 * error).all()
    # The bound is narrow enough to tell the three apart.
    for other in (torch.zeros_like(reverse), reverse, forward):
        assert other is expected or torch.equal(other, expected) or ((mean - other).abs() > 20 * error).any()


def test_a38_k1_in_the_reward_has_the_gradient_of_the_kl() -> None:
    bandit, coef = Bandit(), 0.3
    log_probs, ref, mask = bandit.log_probs()
    rewards = kl_penalised_rewards(torch.zeros(SAMPLES).double(), None, mask, log_probs, ref, coef)
    terms = clipped_policy_loss(log_probs, log_probs, rewards, mask, clip_low=0.2, clip_high=0.2)
    mean, error = bandit.monte_carlo(terms.per_token, log_probs)
    assert ((mean - coef * bandit.exact_gradient()).abs() < 5 * error).all()
    assert (mean.abs() > 20 * error).any()


def test_a38_k1_and_k3_estimate_the_kl_without_bias() -> None:
    bandit = Bandit()
    log_probs, ref, _ = bandit.log_probs()
    for estimator in (kl_k1, kl_k3):
        values = estimator(log_probs, ref).detach()
        assert abs(values.mean() - bandit.exact_kl().detach()) < 5 * values.std() / SAMPLES**0.5


@pytest.mark.parametrize("name", ["k2", "k3"])
def test_a20_a_step_without_advantage_moves_towards_the_reference(name: str) -> None:
    bandit = Bandit()
    before = bandit.exact_kl().item()
    log_probs = bandit.log_pi()[bandit.tokens].unsqueeze(1)
    _, ref, mask = bandit.log_probs()
    zeros, total = torch.zeros_like(ref), loss_total(mask, "token_mean")
    terms = clipped_policy_loss(log_probs, log_probs, zeros, mask, clip_low=0.2, clip_high=0.2)
    loss = aggregate(terms.per_token, mask, "token_mean", total=total)
    loss = loss + 0.5 * aggregate(KL_ESTIMATORS[name](log_probs, ref, mask), mask, "token_mean", total=total)
    loss.backward()
    with torch.no_grad():
        bandit.theta -= bandit.theta.grad
    assert bandit.exact_kl().item() < 0.9 * before


@pytest.mark.parametrize("delta", [200.0, -200.0])
@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_a40_huge_differences_stay_finite(name: str, delta: float) -> None:
    value, slope = value_and_slope(name, delta, torch.float32)
    assert math.isfinite(value)
    assert math.isfinite(slope)


def test_a41_k3_is_clamped_on_the_side_that_overflows_only() -> None:
    at_bound = math.exp(20) - 21
    assert value_and_slope("k3", -19.999)[1] == pytest.approx(1 - math.exp(19.999), rel=1e-9)
    assert value_and_slope("k3", -20.001) == (pytest.approx(at_bound, rel=1e-12), 0.0)
    assert value_and_slope("k3", 200.0) == (pytest.approx(199.0), pytest.approx(1.0))
    assert value_and_slope("k2", -200.0)[1] == -200.0
    assert value_and_slope("k1", 200.0)[1] == 1.0


def test_k3_is_precise_near_0() -> None:
    assert value_and_slope("k3", 1e-3, torch.float32)[0] == pytest.approx(5e-7, rel=2e-3)
    assert value_and_slope("k3", 0.0, torch.float32) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_a42_masked_mean_is_the_closed_form_and_0_for_a_copy(name: str) -> None:
    log_probs = torch.tensor([[-1.0, -2.0, torch.nan], [-0.5, torch.inf, 1e9]], dtype=torch.float64)
    ref = torch.tensor([[-1.2, -1.7, 5.0], [-0.9, torch.nan, -1e9]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    total = loss_total(mask, "token_mean")
    metric = aggregate(KL_ESTIMATORS[name](log_probs, ref, mask), mask, "token_mean", total=total)
    form = {"k1": lambda d: d, "k2": lambda d: d * d / 2, "k3": lambda d: math.exp(-d) - 1 + d}[name]
    assert metric.item() == pytest.approx(sum(form(d) for d in (0.2, -0.3, 0.4)) / 3, rel=1e-12)
    copy = KL_ESTIMATORS[name](log_probs, log_probs.clone(), mask)
    assert torch.equal(copy, torch.zeros_like(copy))


def test_the_reference_gets_no_gradient() -> None:
    log_probs, ref = (torch.tensor([[x]], requires_grad=True) for x in (0.5, 0.1))
    (kl_k1(log_probs, ref) + kl_k2(log_probs, ref) + kl_k3(log_probs, ref)).sum().backward()
    assert ref.grad is None


MASK = torch.tensor(
    [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=torch.bool
)


def test_a32_the_score_is_at_the_last_sampled_token_of_short_cut_and_one_token_responses() -> None:
    scores = torch.tensor([0.5, -1.0, 2.0, 3.0, 9.0])
    rewards = terminal_rewards(scores, None, MASK)
    assert rewards.nonzero().tolist() == [[0, 2], [1, 4], [2, 0], [3, 3]]
    assert rewards.sum(dim=1).tolist() == [0.5, -1.0, 2.0, 3.0, 0.0]


def test_a32_rewards_with_penalty_sum_to_score_minus_penalty_of_the_sequence() -> None:
    generator = torch.Generator().manual_seed(3)
    log_probs, ref = (torch.randn(5, 5, generator=generator) for _ in range(2))
    scores = torch.tensor([0.5, -1.0, 2.0, 3.0, 0.0])
    rewards = kl_penalised_rewards(scores, None, MASK, log_probs, ref, 0.1)
    penalty = ((log_probs - ref) * MASK).sum(dim=1)
    torch.testing.assert_close(rewards.sum(dim=1), scores - 0.1 * penalty)
    assert not rewards[~MASK].any()


def test_an_unscored_response_has_the_penalty_only() -> None:
    scores, scored = torch.tensor([torch.nan, 1.0]), torch.tensor([False, True])
    log_probs, mask = torch.full((2, 2), 0.5), torch.ones(2, 2, dtype=torch.bool)
    rewards = kl_penalised_rewards(scores, scored, mask, log_probs, torch.zeros(2, 2), 0.1)
    torch.testing.assert_close(rewards, torch.tensor([[-0.05, -0.05], [-0.05, 0.95]]))


def test_vector_g_penalised_rewards() -> None:
    difference = torch.tensor([-0.1, -0.2, -0.3], dtype=torch.float64).unsqueeze(1).expand(3, 3)
    rewards = kl_penalised_rewards(
        torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64),
        torch.ones(3, dtype=torch.bool),
        torch.ones(3, 3, dtype=torch.bool),
        difference - 1.0,
        torch.full((3, 3), -1.0, dtype=torch.float64),
        0.5,
    )
    expected = [[0.05, 0.05, 1.05], [0.1, 0.1, 2.1], [0.15, 0.15, 3.15]]
    torch.testing.assert_close(rewards, torch.tensor(expected, dtype=torch.float64))


def test_shapes_must_agree() -> None:
    with pytest.raises(ConfigError, match=r"ref_log_probs has shape \(1, 3\), the mask has \(1, 2\)"):
        kl_k2(torch.zeros(1, 2), torch.zeros(1, 3))
    with pytest.raises(ConfigError, match=r"rows_of_mask has shape \(5,\), the mask has \(3,\)"):
        terminal_rewards(torch.zeros(3), None, MASK)
