"""The actor role: the policy in training."""

from typing import Any

import torch
from torch import Tensor

from leverl.config.arithmetic import updates_per_rollout
from leverl.config.schema import Config
from leverl.engine.algo.aggregation import aggregate, loss_total
from leverl.engine.algo.kl import KL_ESTIMATORS
from leverl.engine.algo.mismatch import log_prob_mismatch
from leverl.engine.algo.policy_loss import PolicyLossTerms, clipped_policy_loss
from leverl.engine.algo.ratio import ratio_histogram, ratio_statistics
from leverl.engine.data.batch import Batch
from leverl.engine.policy.load import Policy
from leverl.engine.policy.log_probs import TokenLogProbs
from leverl.engine.roles.dispatch import broadcast, split
from leverl.engine.roles.forward import View, log_probs_of_batch, micro_batches_of
from leverl.engine.roles.meter import Meter, Metrics
from leverl.engine.roles.mini_batches import MiniBatch, mini_batches
from leverl.engine.roles.optimizer import RoleOptimizer


class Actor:
    """Log-probs under the current weights, and updates of them."""

    def __init__(self, policy: Policy, config: Config) -> None:
        self.policy = policy
        self._algorithm = config.algorithm
        sizes = config.rollout
        self._view = View(sizes.temperature, sizes.top_p, sizes.top_k)
        self._norm_length = float(sizes.max_response_length)
        self._micro_batch_tokens = config.actor.micro_batch_tokens
        per_step = updates_per_rollout(config)
        self.optimizer = RoleOptimizer(
            "actor", policy.model.parameters(), config.actor, config.train.steps * per_step, per_step
        )

    @split
    def log_probs(self, batch: Batch) -> Batch:
        """The batch with `old_log_probs` recomputed under the current weights."""
        log_probs = log_probs_of_batch(self.policy, batch, self._view, self._micro_batch_tokens)
        return batch.with_(old_log_probs=log_probs)

    @split
    def update(self, batch: Batch, *seed: int | str) -> Metrics:
        """All updates of one iteration; the metrics weigh tokens, not mini-batches."""
        progress = _Progress()
        algorithm = self._algorithm
        for mini in mini_batches(
            batch.size, algorithm.mini_batch_size, algorithm.ppo_epochs, *seed, "actor", batch.step
        ):
            self._update_once(batch, mini, progress)
        return progress.metrics(self._clip_low, self._clip_high) | {
            "actor/lr": self.optimizer.rate,
            "train/updates": self.optimizer.updates,
            "train/skipped_updates": self.optimizer.skipped,
        }

    @broadcast
    def state_dict(self) -> dict[str, Any]:
        """Optimizer state; the weights are saved in the model's own format."""
        return self.optimizer.state_dict()

    @broadcast
    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)

    @property
    def _clip_low(self) -> float:
        return self._algorithm.clip_range

    @property
    def _clip_high(self) -> float:
        high = self._algorithm.clip_range_high
        return self._algorithm.clip_range if high is None else high

    def _update_once(self, batch: Batch, mini: MiniBatch, progress: "_Progress") -> None:
        mask = batch.loss_mask[mini.rows]
        if not self._has_gradient(batch, mini.rows, mask):
            self.optimizer.skip()
            return
        total = loss_total(mask, self._algorithm.loss_aggregation, self._norm_length)
        loss = torch.zeros((), dtype=torch.float64)
        self.optimizer.zero_grad()
        in_loss = self._algorithm.entropy_coef != 0
        for micro in micro_batches_of(batch, mini.rows, self._micro_batch_tokens, self.policy.device):
            computed = micro.log_probs(self.policy, self._view, entropy=True, entropy_gradient=in_loss)
            part = self._loss(micro.batch, computed, total, mini.first, progress)
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.detach().double().cpu()
        progress.meter.add("actor/grad_norm", self.optimizer.step(loss))
        progress.meter.add("actor/loss", float(loss))

    def _has_gradient(self, batch: Batch, rows: Tensor, mask: Tensor) -> bool:
        """Whether any term of the loss has a gradient on these rows."""
        if not mask.any():
            return False
        penalised = self._algorithm.kl_in == "loss" and self._algorithm.kl_coef > 0
        if penalised or self._algorithm.entropy_coef != 0:
            return True
        return bool((batch.require("advantages")[rows][mask] != 0).any())

    def _loss(
        self, batch: Batch, computed: TokenLogProbs, total: Tensor, first: bool, progress: "_Progress"
    ) -> Tensor:
        """This micro-batch's share in the loss of its mini-batch: policy + KL − entropy."""
        algorithm, mask, log_probs = self._algorithm, batch.loss_mask, computed.log_probs
        old_log_probs = batch.require("old_log_probs")
        terms = clipped_policy_loss(
            log_probs,
            old_log_probs,
            batch.require("advantages"),
            mask,
            clip_low=self._clip_low,
            clip_high=self._clip_high,
            dual_clip=algorithm.dual_clip,
        )
        loss = policy_loss = aggregate(terms.per_token, mask, algorithm.loss_aggregation, total=total)
        kl_loss = None
        if algorithm.kl_in == "loss" and batch.ref_log_probs is not None:
            per_token = KL_ESTIMATORS[algorithm.kl_estimator](log_probs, batch.ref_log_probs, mask)
            kl_loss = aggregate(per_token, mask, algorithm.loss_aggregation, total=total)
            loss = loss + algorithm.kl_coef * kl_loss
        entropy = computed.require_entropy()
        if algorithm.entropy_coef != 0:
            bonus = aggregate(entropy, mask, algorithm.loss_aggregation, total=total)
            loss = loss - algorithm.entropy_coef * bonus
        progress.add(terms, mask, entropy, old_log_probs - log_probs, first)
        if first:
            progress.compare(log_probs.detach()[mask], batch.rollout_log_probs[mask])
        progress.losses(policy_loss, kl_loss)
        return loss


class _Progress:
    """What is measured during the updates of one iteration."""

    def __init__(self) -> None:
        self.meter = Meter()
        self._ratios: list[Tensor] = []
        self._first: float | None = None  # unknown when the first mini-batch was skipped
        self._trainer: list[Tensor] = []
        self._sampler: list[Tensor] = []
        self._policy_loss = 0.0
        self._kl_loss: float | None = None

    def add(
        self, terms: PolicyLossTerms, mask: Tensor, entropy: Tensor, kl_to_old: Tensor, first: bool
    ) -> None:
        tokens = int(mask.sum())
        if tokens == 0:
            return
        ratio = terms.ratio.detach()[mask].float().cpu()
        self._ratios.append(ratio)
        if first:
            self._first = max(self._first or 0.0, float((ratio - 1).abs().max()))
        clipped = (terms.clipped_high | terms.clipped_low)[mask].float().mean()
        self.meter.add("actor/pg_clipfrac", float(clipped), tokens)
        self.meter.add("actor/pg_clipfrac_lower", float(terms.dual_clipped[mask].float().mean()), tokens)
        self.meter.add("actor/entropy", float(entropy.detach()[mask].mean()), tokens)
        self.meter.add("actor/ppo_kl", float(kl_to_old.detach()[mask].mean()), tokens)

    def compare(self, trainer: Tensor, sampler: Tensor) -> None:
        """Log-probs of the same tokens under the weights that sampled them: computed by trainer and sampler."""
        self._trainer.append(trainer.float().cpu())
        self._sampler.append(sampler.float().cpu())

    def losses(self, policy_loss: Tensor, kl_loss: Tensor | None) -> None:
        """Shares of micro-batches; they add up over a mini-batch."""
        self._policy_loss += float(policy_loss.detach())
        if kl_loss is not None:
            self._kl_loss = (self._kl_loss or 0.0) + float(kl_loss.detach())

    def metrics(self, clip_low: float, clip_high: float) -> Metrics:
        found = self.meter.means()
        if not self._ratios:
            return found
        ratio = torch.cat(self._ratios)
        everywhere = torch.ones_like(ratio, dtype=torch.bool)
        shares = ratio_statistics(ratio, everywhere, clip_low=clip_low, clip_high=clip_high)
        updates = self.meter.count("actor/grad_norm")
        if self._first is not None:
            found["ratio/first"] = self._first
        found["actor/pg_loss"] = self._policy_loss / updates
        if self._kl_loss is not None:
            found["actor/kl_loss"] = self._kl_loss / updates
        return (
            found
            | {
                "ratio/below": shares.below,
                "ratio/inside": shares.inside,
                "ratio/above": shares.above,
                "ratio/histogram": ratio_histogram(ratio, everywhere),
            }
            | self._mismatch()
        )

    def _mismatch(self) -> Metrics:
        """How far trainer and sampler are apart, on the first mini-batch: before its update they should agree."""
        if not self._trainer:
            return {}
        trainer, sampler = torch.cat(self._trainer), torch.cat(self._sampler)
        found = log_prob_mismatch(trainer, sampler, torch.ones_like(trainer, dtype=torch.bool))
        return {
            "rollout/mismatch_mean": found.mean_abs,
            "rollout/mismatch_max": found.max_abs,
            "rollout/mismatch_k3": found.k3,
            "rollout/ess": found.ess,
        }
