import torch
from scipy.stats import kstest

from leverl.engine.inference.uniforms import sample_keys, uniforms

MASK = (1 << 64) - 1


def oracle(seed: int, sample: int, position: int) -> float:
    """The same numbers with Python's integers."""
    gamma = 0x9E3779B97F4A7C15

    def mix(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        return x ^ (x >> 31)

    start = mix((seed * gamma + gamma) & MASK)
    key = mix((start + (sample + 1) * gamma) & MASK)
    return (mix((key + (position + 1) * gamma) & MASK) >> 12) * 2.0**-52


def test_numbers_are_those_of_the_hash_whatever_the_batch():
    for seed in (0, 1, 2**63 + 5):
        keys = sample_keys(seed, torch.tensor([5, 0, 123456]))
        for position in (0, 7, 4095):
            expected = [oracle(seed, sample, position) for sample in (5, 0, 123456)]
            assert uniforms(keys, position).tolist() == expected
        assert uniforms(sample_keys(seed, torch.tensor([123456])), 7).item() == oracle(seed, 123456, 7)


def test_numbers_are_uniform_and_uncorrelated():
    table = torch.stack([uniforms(sample_keys(3, torch.arange(500)), t) for t in range(40)])
    assert table.min() >= 0
    assert table.max() < 1
    assert len(table.unique()) == table.numel()
    assert kstest(table.flatten().numpy(), "uniform").pvalue > 1e-3
    for a, b in [(table[:-1], table[1:]), (table[:, :-1], table[:, 1:])]:
        correlation = torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]
        assert abs(correlation) < 4 / a.numel() ** 0.5
