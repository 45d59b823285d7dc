"""The reference role: the frozen base model that the policy is held close to."""

from leverl.engine.data.batch import Batch
from leverl.engine.policy.load import Policy
from leverl.engine.roles.dispatch import split
from leverl.engine.roles.forward import View, log_probs_of_batch


class Reference:
    """Log-probs under the base model; its weights never change."""

    def __init__(self, policy: Policy, temperature: float, micro_batch_tokens: int) -> None:
        self.policy = policy
        for parameter in policy.model.parameters():
            parameter.requires_grad_(False)
        self._view = View(temperature)
        self._micro_batch_tokens = micro_batch_tokens

    @split
    def log_probs(self, batch: Batch) -> Batch:
        """The batch with `ref_log_probs`."""
        log_probs = log_probs_of_batch(self.policy, batch, self._view, self._micro_batch_tokens)
        return batch.with_(ref_log_probs=log_probs)
