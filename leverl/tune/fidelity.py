"""What is equal in all runs of a study: responses generated, or optimiser iterations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from leverl.backends.protocol import Backend
from leverl.config.schema import Config
from leverl.tune.model import Params


@dataclass(frozen=True)
class Fidelity:
    """The length of a run by its configuration.

    With equal responses, a configuration with half the batch runs for twice the steps. What counts in steps is
    scaled along, so that all runs are evaluated at the same numbers of responses and warm up over the same.
    """

    backend: Backend
    equal: Literal["responses", "steps"]

    def steps(self, params: Params) -> int:
        """Steps of a run of this configuration (`{}`: the base)."""
        return self._scaled(self.backend.base.train.steps, params)

    def settings(self, params: Params) -> Mapping[str, Any]:
        """Settings by path that give a run of this configuration its length; empty where it is the base's."""
        base = self.backend.base
        if self._factor(params) == 1.0:
            return {}
        found = {
            "train.steps": self.steps(params),
            "evaluation.every": self._scaled(base.evaluation.every, params),
        }
        for role, optimizer in (("actor", base.actor), ("critic", base.critic)):
            if optimizer.warmup_steps:
                found[f"{role}.warmup_steps"] = self._scaled(optimizer.warmup_steps, params)
        return found

    def _scaled(self, steps: int, params: Params) -> int:
        return max(round(steps * self._factor(params)), min(steps, 1))

    def _factor(self, params: Params) -> float:
        if not params or self.equal == "steps":
            return 1.0
        config: Config = self.backend.resolve(params).config
        return self.backend.base.rollout.batch_size / config.rollout.batch_size
