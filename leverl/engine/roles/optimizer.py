"""AdamW whose rate is a function of the update count, and which never steps along a bad gradient."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from leverl.config.schema import Optimizer as Settings
from leverl.errors import NonFiniteLoss


def learning_rate(settings: Settings, update: int, total_updates: int, updates_per_step: int) -> float:
    """The rate of update number `update` (from 0) of `total_updates`.

    A linear warm-up over `warmup_steps` iterations, then constant, or linear or cosine down to 0. A pure
    function, so a resumed or forked run needs no scheduler state and a changed rate takes effect at once.
    """
    warmup = settings.warmup_steps * updates_per_step
    if update < warmup:
        return settings.learning_rate * (update + 1) / warmup
    if settings.schedule == "constant":
        return settings.learning_rate
    share = min(1.0, (update - warmup) / max(1, total_updates - warmup))
    factor = 1.0 - share if settings.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * share))
    return settings.learning_rate * factor


class RoleOptimizer:
    """The optimizer of one role."""

    def __init__(
        self,
        name: str,
        parameters: Iterable[nn.Parameter],
        settings: Settings,
        total_updates: int,
        per_step: int,
    ) -> None:
        self._name = name
        self._settings = settings
        self._total_updates = total_updates
        self._per_step = per_step
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._adamw = torch.optim.AdamW(
            self._parameters,
            lr=settings.learning_rate,
            betas=(settings.beta1, settings.beta2),
            eps=settings.epsilon,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.updates = 0
        self.skipped = 0

    @property
    def rate(self) -> float:
        """Learning rate of the next update."""
        return learning_rate(self._settings, self.updates, self._total_updates, self._per_step)

    def zero_grad(self) -> None:
        self._adamw.zero_grad(set_to_none=True)

    def step(self, loss: Tensor) -> float:
        """Clip the gradients, take one step, give them up and return their norm before clipping.

        Args:
            loss: the loss of this update, only looked at to see that it is finite.

        Raises:
            NonFiniteLoss: the loss or a gradient is NaN or infinite; no parameter was changed.
        """
        norm = nn.utils.clip_grad_norm_(self._parameters, self._settings.grad_clip)
        if not (torch.isfinite(loss).all() and torch.isfinite(norm)):
            raise NonFiniteLoss(
                f"{self._name}: loss {float(loss)}, gradient norm {float(norm)} in update {self.updates + 1}. "
                "Lower the learning rate, or look at the last steps in metrics.jsonl."
            )
        for group in self._adamw.param_groups:
            group["lr"] = self.rate
        self._adamw.step()
        self.zero_grad()  # or they would take as much memory as the weights while the next batch is sampled
        self.updates += 1
        return float(norm)

    def skip(self) -> None:
        """Count an update without any gradient: a step would only apply momentum and weight decay."""
        self.updates += 1
        self.skipped += 1

    def state_dict(self) -> dict[str, Any]:
        return {"adamw": self._adamw.state_dict(), "updates": self.updates, "skipped": self.skipped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over moments and counters; rate, betas and weight decay stay those of the settings."""
        kept = [
            {key: value for key, value in group.items() if key != "params"}
            for group in self._adamw.param_groups
        ]
        self._adamw.load_state_dict(state["adamw"])
        for group, settings in zip(self._adamw.param_groups, kept, strict=True):
            group.update(settings)
        self.updates, self.skipped = int(state["updates"]), int(state["skipped"])
