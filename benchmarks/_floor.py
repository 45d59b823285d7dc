"""The floor: what the bare model takes for the same tokens, without any engine around it.

Generation: prompts prefilled once, then one forward pass with KV cache for each position, over the rows that
still live at it, and no sampling. Training: forward and backward over as many tokens as were sampled, with their
prompts, as rectangles without padding, from a gradient that is already there. No loss, no optimizer, no reward,
no metrics.
"""

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

TRAIN_TOKENS = 3072
"""Tokens of a training pass: larger ones are slower (fresh memory at each pass, out of the caches)."""


class Floor:
    """The bare model at `path`."""

    def __init__(self, path: Path, group_size: int, prompt_tokens: int) -> None:
        from transformers import AutoModelForCausalLM

        self.model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self._group_size = group_size
        self._prompt_tokens = prompt_tokens
        self._random = torch.Generator().manual_seed(0)

    def measure(self, lengths: list[int]) -> dict[str, float]:
        """Seconds for responses of `lengths`: of generation and training, and both on the clock of the CPU."""
        lengths = sorted(lengths, reverse=True)  # so that rows leave at the end
        began, worked = time.perf_counter(), time.process_time()
        self.generate(lengths)
        generated = time.perf_counter()
        self.train(lengths)
        return {
            "generation": generated - began,
            "training": time.perf_counter() - generated,
            "cpu": time.process_time() - worked,
        }

    @torch.inference_mode()
    def generate(self, lengths: list[int]) -> None:
        from transformers.cache_utils import DynamicCache

        self.model.eval()
        cache = DynamicCache(config=self.model.config)
        prompts = self._ids(len(lengths) // self._group_size, self._prompt_tokens)
        self.model(input_ids=prompts, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache.batch_repeat_interleave(self._group_size)
        rows = len(lengths)
        for live in live_rows(lengths)[1:]:  # the first token comes from the prompt's logits
            if live < rows:
                cache.batch_select_indices(torch.arange(live))
                rows = live
            self.model(input_ids=self._ids(live, 1), past_key_values=cache, use_cache=True)

    def train(self, lengths: list[int]) -> None:
        self.model.train()
        rows, width = rectangle(lengths)
        ids = self._ids(rows, self._prompt_tokens + width - 1)  # nothing follows from the last token
        for part in torch.split(ids, max(1, TRAIN_TOKENS // ids.shape[1])):
            logits = self.model(input_ids=part, use_cache=False, logits_to_keep=width).logits
            logits.backward(torch.full_like(logits, 1e-3))
        self.model.zero_grad(set_to_none=True)

    def _ids(self, rows: int, width: int) -> Tensor:
        vocab = self.model.config.vocab_size
        return torch.randint(vocab, (rows, width), generator=self._random)


def live_rows(lengths: list[int]) -> list[int]:
    """How many responses have a token at position 0, 1, … of the longest."""
    return [sum(length > position for length in lengths) for position in range(max(lengths))]


def rectangle(lengths: list[int]) -> tuple[int, int]:
    """Rows and columns of a rectangle of as many tokens as `lengths` have, up to rounding the columns."""
    return len(lengths), max(1, round(sum(lengths) / len(lengths)))
