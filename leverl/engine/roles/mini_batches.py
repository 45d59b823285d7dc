"""How the rows of a batch are cut into the mini-batches of the updates."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leverl.engine.data.seeding import generator


@dataclass(frozen=True)
class MiniBatch:
    """Rows of one update; `first` marks the very first update on this batch, whose ratio must be 1."""

    rows: Tensor
    epoch: int
    first: bool


def mini_batches(size: int, mini_batch_size: int, epochs: int, *seed: int | str) -> Iterator[MiniBatch]:
    """`epochs` passes over `size` rows in mini-batches, in a new order each time.

    The order follows from `seed` alone. One mini-batch that holds all rows is not shuffled.
    """
    for epoch in range(epochs):
        if mini_batch_size >= size:
            order = torch.arange(size)
        else:
            order = torch.randperm(size, generator=generator(*seed, "mini_batches", epoch))
        for start in range(0, size, mini_batch_size):
            yield MiniBatch(order[start : start + mini_batch_size], epoch, first=epoch == 0 and start == 0)
