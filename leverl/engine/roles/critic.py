"""The critic role: predicts returns (PPO)."""

from typing import Any

import torch

from leverl.config.arithmetic import updates_per_rollout
from leverl.config.schema import Config
from leverl.engine.algo.aggregation import aggregate, loss_total
from leverl.engine.algo.value_loss import clipped_value_loss, explained_variance
from leverl.engine.data.batch import Batch
from leverl.engine.policy.value import ValueModel
from leverl.engine.roles.dispatch import broadcast, split
from leverl.engine.roles.forward import micro_batches_of, values_of_batch
from leverl.engine.roles.meter import Meter, Metrics
from leverl.engine.roles.mini_batches import MiniBatch, mini_batches
from leverl.engine.roles.optimizer import RoleOptimizer


class Critic:
    """Values of states, and updates towards the returns."""

    def __init__(self, model: ValueModel, config: Config, device: torch.device) -> None:
        self.model = model
        self._device = device
        self._algorithm = config.algorithm
        self._value_clip = config.critic.value_clip
        self._micro_batch_tokens = config.actor.micro_batch_tokens
        per_step = updates_per_rollout(config)
        self.optimizer = RoleOptimizer(
            "critic", model.parameters(), config.critic, config.train.steps * per_step, per_step
        )

    @split
    def values(self, batch: Batch) -> Batch:
        """The batch with `values` of the states before each sampled token."""
        return batch.with_(values=values_of_batch(self.model, batch, self._micro_batch_tokens, self._device))

    @split
    def update(self, batch: Batch, *seed: int | str) -> Metrics:
        """All updates of one iteration, towards `batch.returns`."""
        meter = Meter()
        algorithm = self._algorithm
        for mini in mini_batches(
            batch.size, algorithm.mini_batch_size, algorithm.ppo_epochs, *seed, "critic", batch.step
        ):
            self._update_once(batch, mini, meter)
        found = meter.means() | {"critic/lr": self.optimizer.rate}
        explained = explained_variance(batch.require("returns"), batch.require("values"), batch.loss_mask)
        return found if explained is None else found | {"critic/vf_explained_var": explained}

    @broadcast
    def state_dict(self) -> dict[str, Any]:
        """Optimizer state; the weights are saved beside it."""
        return self.optimizer.state_dict()

    @broadcast
    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)

    def _update_once(self, batch: Batch, mini: MiniBatch, meter: Meter) -> None:
        mask = batch.loss_mask[mini.rows]
        if not mask.any():
            self.optimizer.skip()
            return
        total = loss_total(mask, "token_mean")
        loss = torch.zeros((), dtype=torch.float64)
        self.optimizer.zero_grad()
        for micro in micro_batches_of(batch, mini.rows, self._micro_batch_tokens, self._device):
            part_mask = micro.batch.loss_mask
            terms = clipped_value_loss(
                micro.values(self.model),
                micro.batch.require("values"),
                micro.batch.require("returns"),
                part_mask,
                clip=self._value_clip,
            )
            part = aggregate(terms.per_token, part_mask, "token_mean", total=total)
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.detach().double().cpu()
            if tokens := int(part_mask.sum()):
                meter.add("critic/vf_clipfrac", float(terms.clipped[part_mask].float().mean()), tokens)
        meter.add("critic/grad_norm", self.optimizer.step(loss))
        meter.add("critic/vf_loss", float(loss))
