"""The batch that flows through one iteration.

Axis names in comments and variables: P prompt, G sample in a group, B = P·G response, T response token.
Rows of one prompt are neighbours: row b belongs to prompt b // G, and `group[b]` says so explicitly, so that
shuffling or filtering rows never loses the group. All [B, T] tensors are right-padded; what lies under
`mask == 0` is junk that no loss, advantage or metric may read.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from leverl.engine.data.prompt import Prompt

STOPPED, TRUNCATED, FAILED = 0, 1, 2
"""Values of `Batch.finish`: ended by a stop token, cut at the length limit, generation failed."""


@dataclass(frozen=True)
class Batch:
    """Responses of one iteration and all that is computed for them."""

    step: int
    prompts: tuple[Prompt, ...]  # P
    group: Tensor  # [B] long, index into `prompts`
    responses: Tensor  # [B, T] long, token ids exactly as sampled, stop token included
    mask: Tensor  # [B, T] bool, True on sampled tokens
    finish: Tensor  # [B] long, STOPPED | TRUNCATED | FAILED
    rollout_log_probs: Tensor  # [B, T] log-probs under the distribution that was sampled from
    weight_version: int  # version of the weights that sampled
    scores: Tensor | None = None  # [B] float; meaningless where not `scored`
    scored: Tensor | None = None  # [B] bool; False: the reward function failed or returned None
    texts: tuple[str, ...] = ()  # B, decoded responses without special tokens
    reward_extra: tuple[dict[str, Any], ...] = ()  # B, what a reward function returned beside the score
    reward_errors: int = 0  # calls of the reward function that failed
    first_reward_error: str = ""  # the first of them, with its traceback
    old_log_probs: Tensor | None = None  # [B, T] the pi_old of the ratio
    ref_log_probs: Tensor | None = None  # [B, T]
    values: Tensor | None = None  # [B, T] critic at the state before each token
    token_rewards: Tensor | None = (
        None  # [B, T] scores at the last token, KL penalty included when kl_in=reward
    )
    advantages: Tensor | None = None  # [B, T]
    returns: Tensor | None = None  # [B, T] value targets

    def with_(self, **changes: Any) -> "Batch":
        """A copy with some fields replaced."""
        return replace(self, **changes)

    def require(self, name: str) -> Tensor:
        """The tensor `name`, which an earlier step of the dataflow must have filled in.

        Raises:
            ValueError: it is not there.
        """
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"the batch of step {self.step} has no '{name}' yet")
        tensor: Tensor = value
        return tensor

    def rows(self, index: Tensor, width: int | None = None) -> "Batch":
        """Some rows, in the order of `index`, cut to the first `width` token columns. Prompts stay all."""
        cut = slice(None, width)
        changes: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                changes[field.name] = value[index][:, cut] if value.dim() == 2 else value[index]
            elif field.name in ("texts", "reward_extra") and value:
                changes[field.name] = tuple(value[i] for i in index.tolist())
        return replace(self, **changes)

    def to(self, device: torch.device) -> "Batch":
        """The same batch with its tensors on `device`."""
        if self.responses.device == device:
            return self
        moved: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                moved[field.name] = value.to(device)
        return replace(self, **moved)

    @property
    def loss_mask(self) -> Tensor:
        """[B, T] bool: sampled tokens of responses that were scored; only these are trained on."""
        return self.mask if self.scored is None else self.mask & self.scored.unsqueeze(1)

    @property
    def size(self) -> int:
        return int(self.responses.shape[0])

    @property
    def lengths(self) -> Tensor:
        """[B] sampled tokens of each response."""
        return self.mask.sum(dim=1)

    @property
    def prompt_lengths(self) -> Tensor:
        """[B] tokens of each row's prompt."""
        per_prompt = torch.tensor([len(prompt.token_ids) for prompt in self.prompts], dtype=torch.long)
        return per_prompt[self.group]
