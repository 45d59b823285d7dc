"""From scores to advantages: the KL penalty in the reward, then the estimator of the algorithm."""

import torch
from torch import Tensor

from leverl.config.schema import Algorithm
from leverl.engine.algo.advantages import gae, grpo_advantages, rloo_advantages, whiten
from leverl.engine.algo.kl import kl_penalised_rewards, terminal_rewards
from leverl.engine.algo.specs import ALGORITHMS
from leverl.engine.data.batch import Batch


def advantages(batch: Batch, algorithm: Algorithm) -> Batch:
    """The batch with `token_rewards`, `advantages` and, for GAE, `returns`.

    A KL penalty in the reward is summed over the response before a group is normalised.
    """
    token_rewards = _token_rewards(batch, algorithm)
    batch = batch.with_(token_rewards=token_rewards)
    if ALGORITHMS[algorithm.name].advantage == "gae":
        return _generalised(batch, token_rewards, algorithm)
    estimates = _per_response(batch, token_rewards, algorithm).unsqueeze(1)
    return batch.with_(advantages=torch.where(batch.loss_mask, estimates, torch.zeros_like(estimates)))


def _token_rewards(batch: Batch, algorithm: Algorithm) -> Tensor:
    scores, scored = batch.require("scores"), batch.require("scored")
    if algorithm.kl_in == "reward" and algorithm.kl_coef > 0:
        return kl_penalised_rewards(
            scores,
            scored,
            batch.mask,
            batch.require("old_log_probs"),
            batch.require("ref_log_probs"),
            algorithm.kl_coef,
        )
    return terminal_rewards(scores, scored, batch.mask)


def _per_response(batch: Batch, token_rewards: Tensor, algorithm: Algorithm) -> Tensor:
    total = token_rewards.sum(dim=1)
    if ALGORITHMS[algorithm.name].advantage == "leave_one_out":
        return rloo_advantages(total, batch.group, batch.scored)
    return grpo_advantages(total, batch.group, batch.scored, scale_by_std=algorithm.scale_by_std)


def _generalised(batch: Batch, token_rewards: Tensor, algorithm: Algorithm) -> Batch:
    mask = batch.loss_mask
    estimates, returns = gae(
        token_rewards, batch.require("values"), mask, gamma=algorithm.gamma, lam=algorithm.gae_lambda
    )
    if algorithm.whiten_advantages:
        estimates = whiten(estimates, mask)
    return batch.with_(advantages=estimates, returns=returns)
