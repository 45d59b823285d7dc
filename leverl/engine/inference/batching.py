"""Which rows a running batch has: prompts in a rectangle, padding rows, and fewer rows as responses end."""

from collections.abc import Sequence

import torch
from torch import Tensor

from leverl.engine.inference.decoding import Prompts

MIN_ROWS = 4
"""Batches are never narrower: for 1 to 3 rows the CPU takes other matrix kernels, which round differently,
and a sample would depend in its last bits on how many others are in its micro-batch."""

COMPACT_SHARE = 16
"""Finished rows leave the batch when they are at least 1/16 of it: fewer cost less than moving rows does."""


def compaction(live: Tensor) -> Tensor | None:
    """Which old row each row of a smaller batch takes, or None when it is not worth it.

    Live rows from the end move into the holes further up, all others stay where they are: a row is moved at
    most as often as another one dies.

    Args:
        live: [n] bool, at least one True.

    Returns:
        [m] long, m = max(live rows, MIN_ROWS).
    """
    n = len(live)
    m = max(int(live.sum()), MIN_ROWS)
    if n - m < max(1, n // COMPACT_SHARE):
        return None
    order = torch.arange(m, device=live.device)
    movers = live[m:].nonzero().squeeze(1) + m
    holes = (~live[:m]).nonzero().squeeze(1)[: len(movers)]
    order[holes] = movers
    return order


def width_of(prompts: Sequence[Sequence[int]]) -> tuple[int, bool]:
    """Columns of the prompt rectangle, and whether prompts are padded, for all micro-batches of a call alike.

    Padded prompts get one column more than the longest, so that no micro-batch happens to need no mask: it
    would take another attention kernel than the others, and its last bits would depend on the micro-batch
    size.
    """
    longest = max(map(len, prompts))
    padded = any(len(prompt) != longest for prompt in prompts)
    return longest + padded, padded


def rectangle(
    prompts: Sequence[Sequence[int]], width: int, padded: bool, pad_id: int, device: torch.device
) -> Prompts:
    """Prompts padded on the left to `width`, and with copies of the last one to at least MIN_ROWS rows."""
    prompts = [*prompts, *[prompts[-1]] * (MIN_ROWS - len(prompts))]
    ids = [[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    return Prompts(torch.tensor(ids, dtype=torch.long, device=device), lengths, padded)


def fill(values: Tensor, value: int) -> Tensor:
    """`values` [n] with `value` appended up to MIN_ROWS entries."""
    missing = max(MIN_ROWS - len(values), 0)
    return torch.cat([values, values.new_full((missing,), value)])
