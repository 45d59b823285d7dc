"""Weights from trainer to sampler, one tensor at a time: slow, obvious, the oracle of every faster path."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from leverl.engine.weights import named_weights
from leverl.errors import TrainingFailed

Source = nn.Module | Mapping[str, Tensor]


class Target(Protocol):
    """The part of an inference engine that takes weights."""

    @property
    def version(self) -> int: ...
    def start(self, version: int) -> None: ...
    def load(self, weights: Sequence[tuple[str, Tensor]]) -> None: ...
    def finish(self) -> None: ...
    def weights(self) -> Mapping[str, Tensor]: ...


def push(source: Source, target: Target, version: int) -> int:
    """Send every weight of `source` and close the update as `version`; returns how many tensors were sent.

    A tied tensor is sent once, under its first name. Names, shapes and their number must match the sampler's.

    Raises:
        TrainingFailed: from the sampler, naming the weight that is unknown, missing, repeated or of another
        shape.
            The update then stays open and nothing can be sampled.
    """
    weights = _weights(source)
    target.start(version)
    for name, tensor in weights.items():
        target.load([(name, tensor.detach())])
    target.finish()
    return len(weights)


def verify(source: Source, target: Target) -> int:
    """Compare all weights byte for byte, in the sampler's dtype; returns how many were compared.

    Raises:
        TrainingFailed: names the first weight that differs, or that only one side has.
    """
    sent, held = _weights(source), target.weights()
    for name in [*sent, *(name for name in held if name not in sent)]:
        if name not in held or name not in sent:
            side = "sampler" if name in sent else "trainer"
            raise TrainingFailed(f"weight sync: '{name}' does not exist in the {side}.")
        ours, theirs = sent[name].detach(), held[name].detach()
        if ours.shape != theirs.shape:
            raise TrainingFailed(
                f"weight sync: '{name}' has shape {tuple(ours.shape)} in the trainer and "
                f"{tuple(theirs.shape)} in the sampler."
            )
        if not _same_bytes(ours.to(theirs), theirs):
            raise TrainingFailed(
                f"weight sync: '{name}' differs between trainer and sampler at version {target.version}. It "
                "was not pushed since the last update, or was damaged on the way."
            )
    return len(sent)


def _weights(source: Source) -> Mapping[str, Tensor]:
    return named_weights(source) if isinstance(source, nn.Module) else source


def _same_bytes(a: Tensor, b: Tensor) -> bool:
    """Bitwise: NaN equals itself, and −0 is not 0."""
    return torch.equal(
        a.contiguous().reshape(-1).view(torch.uint8), b.contiguous().reshape(-1).view(torch.uint8)
    )
