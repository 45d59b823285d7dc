"""One batch of rows being decoded by a Hugging Face causal LM: prefill, step by step, fewer rows over time.

`CachedDecoder` runs every model that takes a `Cache`; `RecomputeDecoder` the few that do not.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache

from leverl.engine.inference.slot_cache import expand


@dataclass(frozen=True)
class Prompts:
    """p prompts as one rectangle, padded on the left; `padded` is the same for every part of a call."""

    ids: Tensor  # [p, L] long
    lengths: Tensor  # [p] long
    padded: bool


class Decoder(Protocol):
    def start(self) -> Tensor:
        """[n, V] float32 logits of each row's first token."""
        ...

    def step(self, tokens: Tensor) -> Tensor:
        """[n, V] float32 logits of what follows `tokens` [n]."""
        ...

    def reorder(self, order: Tensor) -> None:
        """Row i becomes the old row `order[i]`; the other rows are given up."""
        ...


class CausalLM:
    """The model's forward, asked only for what its signature offers."""

    def __init__(self, model: Any, vocab_size: int) -> None:
        self.model = model
        self.vocab_size = vocab_size
        parameters = inspect.signature(model.forward).parameters
        self.names = frozenset(parameters)
        self.cache_name = _cache_name(parameters)

    def logits(self, ids: Tensor, **options: Any) -> Tensor:
        """[n, S, V] or, where the model can leave out the others, [n, 1, V] of the last position."""
        offered = {name: value for name, value in options.items() if name in self.names}
        out: Tensor = self.model(input_ids=ids, **offered).logits
        return out

    def last(self, ids: Tensor, **options: Any) -> Tensor:
        """[n, V] float32 logits of the last position; ids beyond the tokenizer's are cut off."""
        return self.logits(ids, **options)[:, -1, : self.vocab_size].float()


def _cache_name(parameters: Mapping[str, inspect.Parameter]) -> str | None:
    """The parameter that takes a `Cache`; None when the model has no cache, or one of its own kind."""
    if "past_key_values" in parameters:
        return "past_key_values"
    recurrent = parameters.get("cache_params")
    return "cache_params" if recurrent and Cache in get_args(recurrent.annotation) else None


def make_decoder(lm: CausalLM, prompts: Prompts, rows: Tensor, max_new_tokens: int) -> Decoder:
    """A decoder with one row per entry of `rows` [n], which says whose prompt it is."""
    kind = RecomputeDecoder if lm.cache_name is None else CachedDecoder
    return kind(lm, prompts, rows, max_new_tokens)


class CachedDecoder:
    """Prompts are prefilled once and their cache rows copied to the rows that answer them.

    Prompts of one length need no mask, which keeps the fast attention kernels. Others are padded on the left,
    the convention that every model supports, with mask and, where the model has them, position ids.
    """

    def __init__(self, lm: CausalLM, prompts: Prompts, rows: Tensor, max_new_tokens: int) -> None:
        self._lm, self._prompts, self._rows = lm, prompts, rows
        self._room = max_new_tokens - 1
        self._cache: Cache = DynamicCache(config=lm.model.config)
        self._length = prompts.ids.shape[1]
        self._mask: Tensor | None = None  # [n, L + room], when padded
        self._positions: Tensor | None = None  # [n, 1]: of each row's last token, when padded

    def start(self) -> Tensor:
        logits = self._prefill()
        self._cache = expand(self._cache, self._rows, self._room)
        return logits[self._rows]

    def _prefill(self) -> Tensor:
        ids, lengths = self._prompts.ids, self._prompts.lengths
        if not self._prompts.padded:
            return self._forward(ids, logits_to_keep=1)
        slots = torch.arange(self._length + self._room, device=ids.device)
        mask = (slots >= (self._length - lengths)[:, None]).long()
        self._mask = mask[self._rows]
        self._positions = lengths[self._rows, None] - 1
        shown = mask[:, : self._length]
        positions = (shown.cumsum(dim=1) - 1).clamp_min(0)
        return self._forward(ids, logits_to_keep=1, attention_mask=shown, position_ids=positions)

    def step(self, tokens: Tensor) -> Tensor:
        self._length += 1
        if self._mask is None or self._positions is None:
            return self._forward(tokens[:, None])
        self._positions = self._positions + 1
        options = {"position_ids": self._positions}
        if self._lm.cache_name != "cache_params":  # a recurrent state has seen no padding
            options["attention_mask"] = self._mask[:, : self._length]
        return self._forward(tokens[:, None], **options)

    def _forward(self, ids: Tensor, **options: Any) -> Tensor:
        return self._lm.last(ids, use_cache=True, **{str(self._lm.cache_name): self._cache}, **options)

    def reorder(self, order: Tensor) -> None:
        self._cache.reorder_cache(order)
        if self._mask is not None and self._positions is not None:
            self._mask, self._positions = self._mask[order], self._positions[order]


class RecomputeDecoder:
    """For a model without a cache: the whole sequence at each step.

    Padding is on the right, where causality hides it, so that no mask is needed.
    """

    def __init__(self, lm: CausalLM, prompts: Prompts, rows: Tensor, max_new_tokens: int) -> None:
        self._lm = lm
        p, length = prompts.ids.shape
        columns = torch.arange(length, device=rows.device)
        from_left = (columns + (length - prompts.lengths)[:, None]) % length  # left padding -> right padding
        ids = prompts.ids.gather(1, from_left.expand(p, length))
        self._ids = torch.nn.functional.pad(ids, (0, max_new_tokens - 1))[rows]
        self._lengths = prompts.lengths[rows]

    def start(self) -> Tensor:
        shown = self._ids[:, : int(self._lengths.max())]
        logits = self._lm.logits(shown, use_cache=False)[..., : self._lm.vocab_size]
        return logits[torch.arange(len(shown), device=shown.device), self._lengths - 1].float()

    def step(self, tokens: Tensor) -> Tensor:
        self._ids.scatter_(1, self._lengths[:, None], tokens[:, None])
        self._lengths = self._lengths + 1
        return self.start()

    def reorder(self, order: Tensor) -> None:
        self._ids, self._lengths = self._ids[order], self._lengths[order]
