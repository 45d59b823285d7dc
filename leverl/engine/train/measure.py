"""Metrics of a batch before it is trained on, under verl's names where verl has them."""

import torch
from torch import Tensor

from leverl.config.schema import Config
from leverl.engine.algo.kl import kl_k1, kl_k3
from leverl.engine.data.batch import FAILED, TRUNCATED, Batch
from leverl.engine.roles.meter import Metrics


def measure(batch: Batch, config: Config) -> Metrics:
    """Everything that can be said of a scored batch; what was not computed is absent, never 0."""
    return (
        _scores(batch)
        | _groups(batch, config.rollout.group_size)
        | _reward_extra(batch)
        | _lengths(batch)
        | _advantages(batch)
        | _reference_kl(batch, config)
    )


def _scores(batch: Batch) -> Metrics:
    scored = batch.require("scored")
    succeeded = scored & (batch.finish != FAILED)
    found: Metrics = {
        "rollout_success_rate": float(succeeded.float().mean()),
        "rollout/unscored": float((~scored).float().mean()),
        "reward/errors": batch.reward_errors,
    }
    scores = batch.require("scores")[scored].float()
    if scores.numel() == 0:
        return found
    found |= {
        "critic/score/mean": float(scores.mean()),
        "critic/score/max": float(scores.max()),
        "critic/score/min": float(scores.min()),
        "critic/rewards/mean": float(batch.require("token_rewards")[scored].sum(dim=1).float().mean()),
    }
    if scores.numel() > 1:
        found["critic/score/std"] = float(scores.std())
    return found


def _groups(batch: Batch, group_size: int) -> Metrics:
    """Spread of scores within prompts; a group whose scores are all equal teaches nothing."""
    if group_size < 2:
        return {}
    scores = batch.require("scores").view(-1, group_size)
    whole = batch.require("scored").view(-1, group_size).all(dim=1)
    if not whole.any():
        return {}
    spread = scores[whole].float().std(dim=1)
    return {
        "group/reward_std": float(spread.mean()),
        "group/dead_share": float((spread <= 1e-6).float().mean()),
    }


def _reward_extra(batch: Batch) -> Metrics:
    """Means of the numbers that the reward function returned beside the score, over the rows that have them."""
    values: dict[str, list[float]] = {}
    for row in batch.reward_extra:
        for name, value in row.items():
            if isinstance(value, bool | int | float):
                values.setdefault(name, []).append(float(value))
    return {f"reward_extra/{name}": sum(found) / len(found) for name, found in values.items()}


def _lengths(batch: Batch) -> Metrics:
    lengths = batch.lengths.float()
    truncated = float((batch.finish == TRUNCATED).float().mean())
    return {
        "response_length/mean": float(lengths.mean()),
        "response_length/max": float(lengths.max()),
        "response_length/min": float(lengths.min()),
        "response_length/p99": float(torch.quantile(lengths, 0.99)),
        "response_length/clip_ratio": truncated,
        "rollout/truncated": truncated,
        "prompt_length/mean": float(batch.prompt_lengths.float().mean()),
    }


def _advantages(batch: Batch) -> Metrics:
    mask = batch.loss_mask
    if not mask.any():
        return {}
    found = _spread("critic/advantages", batch.require("advantages")[mask])
    if batch.returns is not None:
        found["critic/returns/mean"] = float(batch.returns[mask].mean())
        found["critic/values/mean"] = float(batch.require("values")[mask].mean())
    return found


def _spread(name: str, values: Tensor) -> Metrics:
    return {
        f"{name}/mean": float(values.mean()),
        f"{name}/max": float(values.max()),
        f"{name}/min": float(values.min()),
    }


def _reference_kl(batch: Batch, config: Config) -> Metrics:
    """Token means of the KL between the policy that sampled and the reference, whatever the penalty is."""
    if batch.ref_log_probs is None or not batch.mask.any():
        return {}
    sampled, reference = batch.require("old_log_probs"), batch.ref_log_probs
    k1 = float(kl_k1(sampled, reference, batch.mask)[batch.mask].mean())
    found: Metrics = {
        "kl_divergence": k1,
        "kl_divergence_k3": float(kl_k3(sampled, reference, batch.mask)[batch.mask].mean()),
    }
    if config.algorithm.kl_in == "reward":
        found["actor/reward_kl_penalty"] = k1
    return found
