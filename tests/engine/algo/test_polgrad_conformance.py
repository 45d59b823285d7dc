"""Against polgrad, an independent implementation, on random ragged batches in float64."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from leverl.engine.algo import advantages as ours
from leverl.engine.algo.aggregation import AGGREGATIONS, Aggregation, aggregate, loss_total
from leverl.engine.algo.kl import KL_ESTIMATORS, kl_penalised_rewards
from leverl.engine.algo.policy_loss import clipped_policy_loss
from leverl.engine.algo.value_loss import clipped_value_loss

polgrad = pytest.importorskip("polgrad")
testing = pytest.importorskip("polgrad.testing")
goldens = pytest.importorskip("polgrad.verify.goldens")

NORM_LENGTH = 16
SHAPES = ((4, 8), (2, 12), (6, 5))


def our_loss(
    mode: Aggregation, clip_low: float = 0.2, clip_high: float = 0.2, dual_clip: float | None = None
) -> Callable[..., Tensor]:
    def loss(*, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, response_mask: Tensor) -> Tensor:
        advantages = advantages if advantages.ndim == 2 else advantages.unsqueeze(1).expand_as(logprobs)
        terms = clipped_policy_loss(
            logprobs,
            old_logprobs,
            advantages,
            response_mask,
            clip_low=clip_low,
            clip_high=clip_high,
            dual_clip=dual_clip,
        )
        total = loss_total(response_mask, mode, NORM_LENGTH)
        return aggregate(terms.per_token, response_mask, mode, total=total)

    return loss


def batches(seed: int) -> list[dict[str, Tensor]]:
    return list(testing.random_batches(9, SHAPES, seed=seed))


def groups(rows: int) -> Tensor:
    """Interleaved groups of two or three rows."""
    return torch.arange(rows) % (rows // 2)


def test_grpo() -> None:
    testing.assert_conforms(our_loss("seq_mean_token_mean"), "grpo")


def test_ppo() -> None:
    testing.assert_conforms(our_loss("token_mean"), "ppo")


def test_dr_grpo() -> None:
    reference = replace(polgrad.ALGORITHMS["dr_grpo"].loss, norm_len=NORM_LENGTH)
    testing.assert_conforms(our_loss("token_sum_norm"), reference)


def test_unequal_clip_bounds_of_dapo() -> None:
    testing.assert_conforms(our_loss("token_mean", clip_high=0.28), "dapo")


def test_dual_clip_and_sequence_sums() -> None:
    reference = replace(
        polgrad.ALGORITHMS["ppo"].loss,
        clip=polgrad.ClipConfig(eps_low=0.1, eps_high=0.3, ratio_cap=2.0),
        aggregation=polgrad.Aggregation.SEQ_MEAN_TOKEN_SUM,
    )
    testing.assert_conforms(our_loss("seq_mean_token_sum", 0.1, 0.3, 2.0), reference)


def test_a_wrong_aggregation_is_noticed() -> None:
    with pytest.raises(AssertionError, match="conformance violation"):
        testing.assert_conforms(our_loss("token_mean"), "grpo")


@pytest.mark.parametrize("case", goldens.golden_cases(), ids=lambda case: case.name)
def test_goldens(case) -> None:
    clip = case.config.clip
    log_probs = case.logprobs.clone().requires_grad_()
    loss = our_loss(case.config.aggregation.value, clip.eps_low, clip.eps_high, clip.ratio_cap)(
        logprobs=log_probs,
        old_logprobs=case.old_logprobs,
        advantages=case.advantages,
        response_mask=case.response_mask,
    )
    loss.backward()
    assert loss.item() == pytest.approx(case.expected_loss, rel=1e-12)
    torch.testing.assert_close(log_probs.grad, case.expected_grad_logprobs)


def test_rloo_has_the_same_gradient_in_the_first_update() -> None:
    reference = polgrad.ALGORITHMS["rloo"].loss
    for batch in batches(seed=1):
        keys = ("logprobs", "advantages", "response_mask")
        first = {key: batch[key] for key in keys} | {"old_logprobs": batch["logprobs"].clone()}
        log_probs = batch["logprobs"].clone().requires_grad_()
        (mine,) = torch.autograd.grad(
            our_loss("seq_mean_token_sum")(**{**first, "logprobs": log_probs}), log_probs
        )
        theirs = polgrad.policy_loss(reference, **{**first, "logprobs": log_probs}).loss
        torch.testing.assert_close(mine, torch.autograd.grad(theirs, log_probs)[0])


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_token_weights(mode: Aggregation) -> None:
    for batch in batches(seed=2):
        mask = batch["response_mask"]
        per_token = torch.zeros(mask.shape, dtype=torch.float64, requires_grad=True)
        aggregate(per_token, mask, mode, total=loss_total(mask, mode, NORM_LENGTH)).backward()
        expected = polgrad.effective_token_weights(mask, polgrad.Aggregation(mode), norm_len=NORM_LENGTH)
        torch.testing.assert_close(per_token.grad, expected)


@pytest.mark.parametrize("scale_by_std", [True, False])
def test_grpo_advantages(scale_by_std: bool) -> None:
    config = polgrad.GroupNormConfig(scale="std" if scale_by_std else "none")
    for batch in batches(seed=3):
        scores, group = batch["advantages"], groups(len(batch["advantages"]))
        mine = ours.grpo_advantages(scores, group, scale_by_std=scale_by_std)
        torch.testing.assert_close(mine, polgrad.grpo_advantages(scores, group, config))


def test_rloo_advantages() -> None:
    for batch in batches(seed=4):
        scores, group = batch["advantages"], groups(len(batch["advantages"]))
        torch.testing.assert_close(
            ours.rloo_advantages(scores, group), polgrad.rloo_advantages(scores, group)
        )


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.95, 0.7), (1.0, 0.0)])
def test_gae(gamma: float, lam: float) -> None:
    config = polgrad.GAEConfig(gamma=gamma, lam=lam)
    for batch in batches(seed=5):
        rewards, values, mask = batch["logprobs"], batch["ref_logprobs"], batch["response_mask"]
        expected = polgrad.gae(rewards, values, config=config, response_mask=mask)
        torch.testing.assert_close(ours.gae(rewards, values, mask, gamma=gamma, lam=lam), expected)


def test_whitening() -> None:
    for batch in batches(seed=6):
        x, mask = batch["logprobs"], batch["response_mask"]
        torch.testing.assert_close(ours.whiten(x, mask), polgrad.whiten(x, mask))


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_kl_values_and_gradients(name: str) -> None:
    for batch in batches(seed=7):
        log_probs, ref, mask = (
            batch["logprobs"].requires_grad_(),
            batch["ref_logprobs"],
            batch["response_mask"],
        )
        mine = KL_ESTIMATORS[name](log_probs, ref, mask)
        theirs = polgrad.kl_estimate(log_probs, ref, polgrad.KLEstimator(name), response_mask=mask)
        torch.testing.assert_close(mine, theirs)
        slopes = [torch.autograd.grad(kl.sum(), log_probs)[0] for kl in (mine, theirs)]
        torch.testing.assert_close(*slopes)


def test_kl_in_reward() -> None:
    for batch in batches(seed=8):
        mask, log_probs, ref = batch["response_mask"], batch["old_logprobs"], batch["ref_logprobs"]
        terminal = torch.zeros_like(log_probs)
        terminal[torch.arange(len(mask)), mask.sum(dim=1) - 1] = batch["advantages"]
        expected = polgrad.kl_in_reward(
            terminal, log_probs, ref, polgrad.KLEstimator.K1, 0.05, response_mask=mask
        )
        mine = kl_penalised_rewards(batch["advantages"], None, mask, log_probs, ref, 0.05)
        torch.testing.assert_close(mine, expected)


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_value_loss(mode: Aggregation, clip: float | None) -> None:
    for batch in batches(seed=9):
        mask, values = batch["response_mask"], batch["logprobs"].requires_grad_()
        old, returns = batch["old_logprobs"], batch["ref_logprobs"]
        terms = clipped_value_loss(values, old, returns, mask, clip=clip)
        mine = aggregate(terms.per_token, mask, mode, total=loss_total(mask, mode, NORM_LENGTH))
        theirs = polgrad.value_loss(
            values,
            old,
            returns,
            mask,
            clip_eps=clip,
            aggregation=polgrad.Aggregation(mode),
            norm_len=NORM_LENGTH,
        )
        torch.testing.assert_close(mine, theirs.loss)
        assert terms.clipped.sum().item() / mask.sum().item() == pytest.approx(theirs.clipped_frac)
        slopes = [torch.autograd.grad(loss, values)[0] for loss in (mine, theirs.loss)]
        torch.testing.assert_close(*slopes)
