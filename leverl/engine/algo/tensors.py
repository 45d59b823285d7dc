"""What every function of this folder does with masks and shapes.

What lies under `mask == False` is junk, NaN and infinity included. It is replaced *before* any non-linear
operation: `0 * nan` is NaN, in the backward pass too, so that multiplying by the mask would not do.
"""

import torch
from torch import Tensor

from leverl.errors import ConfigError

EXPONENT_BOUND = 20.0
"""Largest exponent that is exponentiated: e^20 ≈ 4.9e8 is far outside any sane ratio; float32 holds it."""


def zero_outside(x: Tensor, mask: Tensor) -> Tensor:
    """`x` with exactly 0 where `mask` is False; no value or gradient passes there."""
    return torch.where(mask, x, torch.zeros((), dtype=x.dtype, device=x.device))


def at_least_float32(x: Tensor) -> Tensor:
    """`x` in float32, or as it is when it is float64."""
    return x if x.dtype == torch.float64 else x.float()


def check_same_shape(where: str, mask: Tensor, **tensors: Tensor) -> None:
    """Refuse a mask that is not boolean, and tensors whose shape is not that of the mask.

    Broadcasting is refused on purpose: [B] advantages against a [B, T] mask with B == T land in wrong rows.

    Raises:
        ConfigError: names the function, the tensor and both shapes.
    """
    if mask.dtype != torch.bool:
        raise ConfigError(
            f"{where}: mask has dtype {mask.dtype}, must be torch.bool; call mask.bool() first."
        )
    for name, tensor in tensors.items():
        if tensor.shape != mask.shape:
            raise ConfigError(
                f"{where}: {name} has shape {tuple(tensor.shape)}, the mask has {tuple(mask.shape)}; "
                "they must be the same. Expand the smaller one explicitly."
            )
