"""Prompts and responses as rectangles of ids: what the trainer's forward passes read.

Sequences are contiguous, prompt then response, padded on the right. A causal model never looks to the right,
so that no attention mask is needed and the fast causal attention kernels stay in use.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sequences:
    """b sequences. T is the width of the response tensors that belong to them."""

    ids: Tensor  # [b, S] long, right-padded; S is the longest prompt + response
    prompt_lengths: Tensor  # [b] long
    lengths: Tensor  # [b] long, response tokens
    width: int  # T

    @property
    def mask(self) -> Tensor:
        """[b, T] bool, True on response tokens."""
        return torch.arange(self.width, device=self.lengths.device) < self.lengths[:, None]

    def to(self, device: torch.device) -> "Sequences":
        return Sequences(
            self.ids.to(device), self.prompt_lengths.to(device), self.lengths.to(device), self.width
        )


def join(prompts: Sequence[Sequence[int]], responses: Tensor, lengths: Tensor) -> Sequences:
    """Put each response right behind its prompt.

    Args:
        prompts: b prompts as ids, none of them empty.
        responses: [b, T] long; what lies beyond `lengths` is not read.
        lengths: [b] long, response tokens of each row.
    """
    device = responses.device
    prompt_lengths = torch.tensor([len(prompt) for prompt in prompts], dtype=torch.long, device=device)
    size = int((prompt_lengths + lengths).max())
    # The filler is the row's first id: any would do, but a pad id makes some models warn about missing masks.
    first = torch.tensor([prompt[0] for prompt in prompts], dtype=responses.dtype, device=device)
    ids = first[:, None].repeat(1, size)
    in_prompt = torch.arange(size, device=device) < prompt_lengths[:, None]
    flat = list(chain.from_iterable(prompts))
    ids[in_prompt] = torch.tensor(flat, dtype=ids.dtype, device=device)
    rows, columns = response_index(lengths, responses.shape[1])
    ids[rows, prompt_lengths[rows] + columns] = responses[rows, columns]
    return Sequences(ids, prompt_lengths, lengths, responses.shape[1])


def split(sequences: Sequences) -> list[tuple[list[int], list[int]]]:
    """(prompt ids, response ids) of each row: the inverse of `join`."""
    sizes = zip(sequences.prompt_lengths.tolist(), sequences.lengths.tolist(), strict=True)
    return [
        (row[:prompt], row[prompt : prompt + response])
        for row, (prompt, response) in zip(sequences.ids.tolist(), sizes, strict=True)
    ]


def response_index(lengths: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Rows and response columns of all response tokens, row by row: two [n] long tensors."""
    rows, columns = (torch.arange(width, device=lengths.device) < lengths[:, None]).nonzero(as_tuple=True)
    return rows, columns


def micro_batches(total_lengths: Tensor, max_tokens: int) -> list[Tensor]:
    """Rows grouped by length, so that padded rectangles hold at most `max_tokens` tokens each.

    Args:
        total_lengths: [b] long, prompt + response tokens of each row.
        max_tokens: bound on rows × longest row of a micro-batch; a longer row still gets one of its own.

    Returns:
        Index tensors; together they hold each row once, longest first.
    """
    order = total_lengths.argsort(descending=True, stable=True)
    ordered = total_lengths[order].tolist()
    batches: list[Tensor] = []
    first = 0
    while first < len(ordered):
        rows = max(1, max_tokens // max(1, ordered[first]))
        batches.append(order[first : first + rows])
        first += rows
    return batches
