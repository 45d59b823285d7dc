"""A KV cache in buffers that are allocated once: a decoding step writes one slot and copies nothing.

transformers' DynamicCache concatenates keys and values anew at each step. Here row and slot axes have room
for the whole generation; `reorder_cache` moves only the rows that change place.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache, DynamicLayer


class SlotLayer(CacheLayerMixin):  # type: ignore[misc]  # transformers is not typed for mypy
    """One layer: buffers [rows, heads, slots, head_dim], of which the first `length` slots are filled."""

    is_sliding = False

    def __init__(self, filled: DynamicLayer, rows: Tensor, room: int) -> None:
        """Row i starts as row `rows[i]` of a filled layer; `room` more slots follow."""
        super().__init__()
        self.length: int = filled.keys.shape[-2]
        self.keys: Tensor = _with_room(filled.keys, rows, room)
        self.values: Tensor = _with_room(filled.values, rows, room)
        self.is_initialized = True

    def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write new slots for the first `keys.shape[0]` rows; views on all filled slots of these rows."""
        n, end = keys.shape[0], self.length + keys.shape[-2]
        self.keys[:n, :, self.length : end] = keys
        self.values[:n, :, self.length : end] = values
        self.length = end
        return self.keys[:n, :, :end], self.values[:n, :, :end]

    def reorder_cache(self, order: Tensor) -> None:
        """Row i becomes the old row `order[i]`; rows from `len(order)` on are given up."""
        moved = (order != torch.arange(len(order), device=order.device)).nonzero().squeeze(1)
        if len(moved):
            for buffer in (self.keys, self.values):
                filled = buffer[:, :, : self.length]
                filled[moved] = filled[order[moved]]

    def get_seq_length(self) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        return int(self.keys.shape[-2])

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing is lazy here: the buffers exist from the start."""


def _with_room(filled: Tensor, rows: Tensor, room: int) -> Tensor:
    _, heads, length, size = filled.shape
    buffer = filled.new_empty(len(rows), heads, length + room, size)
    buffer[:, :, :length] = filled[rows]
    return buffer


def expand(cache: DynamicCache, rows: Tensor, room: int) -> Cache:
    """A cache whose row i is row `rows[i]` of `cache`, with `room` free slots where all layers allow it.

    Layers with a sliding window or a recurrent state keep transformers' own classes, which hold more than
    plain keys and values.
    """
    if all(type(layer) is DynamicLayer for layer in cache.layers):
        return Cache(layers=[SlotLayer(layer, rows, room) for layer in cache.layers])
    cache.reorder_cache(rows)
    return cache
