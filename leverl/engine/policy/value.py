"""The critic: the policy's backbone with a scalar head."""

import copy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from leverl.engine.policy.load import (
    Policy,
    computing_in,
    no_progress_bars,
    private_rng,
    silence_config,
    silence_modules,
)
from leverl.engine.policy.log_probs import offered
from leverl.engine.policy.sequences import Sequences, response_index
from leverl.errors import CheckpointError

HEAD_FILE = "value_head.safetensors"


class ValueModel(nn.Module):
    """Values of states: what return is expected before each response token is chosen."""

    def __init__(self, backbone: Any, head_seed: int, dtype: str = "float32") -> None:
        """`backbone` maps ids to hidden states; the head is drawn from a generator seeded `head_seed`.

        `dtype` is what the backbone computes in; the head is float32: a bfloat16 value has two to three digits.
        """
        super().__init__()
        self.backbone = backbone
        self.dtype = dtype
        size = backbone.config.get_text_config().hidden_size
        with private_rng():  # Linear draws weights of its own first
            self.head = nn.Linear(size, 1)
        with torch.no_grad():
            self.head.weight.normal_(
                0.0, (size + 1) ** -0.5, generator=torch.Generator().manual_seed(head_seed)
            )
            self.head.bias.zero_()
        self.head.to(next(backbone.parameters()).device)

    @classmethod
    def from_policy(cls, policy: Policy, head_seed: int) -> "ValueModel":
        """A critic that starts from a copy of the policy's backbone; nothing is shared with the policy."""
        return cls(copy.deepcopy(policy.model.base_model), head_seed, policy.dtype)

    def forward(self, sequences: Sequences) -> Tensor:
        """See `values`."""
        return self.values(sequences)

    def values(self, sequences: Sequences) -> Tensor:
        """[b, T] float32: the value at the state before each response token, 0 outside the mask.

        There is no temperature: it shapes how tokens are drawn, not what a state is worth.
        """
        rows, columns = response_index(sequences.lengths, sequences.width)
        options = offered(self.backbone, use_cache=False)
        with computing_in(self.dtype, sequences.ids.device):
            hidden = self.backbone(input_ids=sequences.ids, **options).last_hidden_state
        states = hidden[rows, sequences.prompt_lengths[rows] + columns - 1]
        flat: Tensor = self.head(states.float()).squeeze(1)
        return flat.new_zeros(len(sequences.ids), sequences.width).index_put((rows, columns), flat)

    def save(self, folder: Path) -> None:
        """Backbone in Hugging Face format, head beside it."""
        with no_progress_bars():
            self.backbone.save_pretrained(folder)
        save_file(
            {name: t.detach().contiguous() for name, t in self.head.state_dict().items()}, folder / HEAD_FILE
        )

    @classmethod
    def load(
        cls, folder: Path, *, dtype: str = "float32", device: str | torch.device = "cpu"
    ) -> "ValueModel":
        """The value model that `save` wrote.

        Raises:
            CheckpointError: files are missing or do not fit together.
        """
        if not (folder / HEAD_FILE).is_file():
            raise CheckpointError(f"critic: '{folder}' has no {HEAD_FILE}; it is not a saved value model.")
        try:
            with private_rng(), no_progress_bars():
                config = AutoConfig.from_pretrained(folder)
                silence_config(config)
                backbone = AutoModel.from_pretrained(folder, config=config, dtype=torch.float32)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"critic: '{folder}' cannot be loaded: {error}") from error
        silence_modules(backbone)
        model = cls(backbone.to(device), head_seed=0, dtype=dtype)
        model.head.load_state_dict(load_file(folder / HEAD_FILE))
        return model
