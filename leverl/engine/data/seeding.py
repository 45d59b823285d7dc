"""Seeds for everything random: each use owns a generator that follows from the run's seed and what it is for.

No generator lives longer than one use, so a resumed run draws what the uninterrupted one would have drawn.
"""

import hashlib

import torch


def derive_seed(*parts: int | str) -> int:
    """A 63-bit seed that depends on all `parts` and their order."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(*parts: int | str) -> torch.Generator:
    """A CPU generator seeded by `parts`."""
    return torch.Generator().manual_seed(derive_seed(*parts))
