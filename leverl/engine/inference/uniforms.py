"""Uniform numbers addressed by (seed, sample, position): the randomness of sampling.

A counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): the number of
a sample at a position is a hash of the three counters, so that it does not depend on what else is in the
batch, in which order rows are computed or where. The hash is the finaliser of SplitMix64 (Steele, Lea and
Flood, "Fast splittable pseudorandom number generators", 2014). torch's int64 wraps around, as the hash wants.
"""

import torch
from torch import Tensor

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, odd


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _shifted(x: Tensor, bits: int) -> Tensor:
    """Logical right shift; torch's own keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shifted(x, 30)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shifted(x, 27)) * _signed(0x94D049BB133111EB)
    return x ^ _shifted(x, 31)


def sample_keys(seed: int, samples: Tensor) -> Tensor:
    """[n] long: the stream of each sample index in `samples` [n] long under `seed`."""
    start = _mix(torch.tensor(_signed(seed * _GAMMA + _GAMMA), device=samples.device))
    return _mix(start + (samples + 1) * _signed(_GAMMA))


def uniforms(keys: Tensor, position: int) -> Tensor:
    """[n] float64 in [0, 1 − 2^−52]: the number of each stream at `position`."""
    bits = _shifted(_mix(keys + _signed((position + 1) * _GAMMA)), 12)
    return bits.double() * 2.0**-52
