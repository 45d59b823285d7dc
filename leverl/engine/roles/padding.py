"""Where to cut rows of similar length apart, so that little is computed for padding."""

import torch
from torch import Tensor

CPU_PASS, GPU_PASS = 64, 1024
"""What a forward and backward pass costs beyond its tokens, counted in tokens: a cut must save more padding.

Measured on one CPU core: 60 at 0.8 million parameters, 25 at 20 million. On a GPU it is the time in which kernels
are launched, an estimate.
"""


def pass_tokens(device: torch.device | None) -> int:
    """The cost of a pass on `device` (None: CPU)."""
    return CPU_PASS if device is None or device.type == "cpu" else GPU_PASS


def pieces(lengths: Tensor, pass_tokens: int) -> list[int]:
    """Sizes of the pieces to cut rows into, in order; the sum is the number of rows.

    The cut that saves most padded tokens comes first, then each side is cut again: close to the best possible
    cuts on long-tailed lengths, and far quicker to find.

    Args:
        lengths: [b] long, tokens of each row, longest first.
        pass_tokens: a cut must save more padded tokens than this.
    """
    rows_below = torch.arange(len(lengths), 0, -1, device=lengths.device)
    saved = rows_below * (lengths[0] - lengths)  # by cutting before each row
    cut = int(saved.argmax())
    if int(saved[cut]) <= pass_tokens:
        return [len(lengths)]
    return pieces(lengths[:cut], pass_tokens) + pieces(lengths[cut:], pass_tokens)
