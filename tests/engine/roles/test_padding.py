import pytest
import torch

from leverl.engine.roles.padding import CPU_PASS, GPU_PASS, pass_tokens, pieces


def area(lengths: torch.Tensor, sizes: list[int]) -> int:
    """Padded tokens of all pieces."""
    return sum(len(part) * int(part[0]) for part in torch.split(lengths, sizes))


def long_tailed(rows: int, mean: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.empty(rows).exponential_(1 / mean, generator=generator)
    return (8 + drawn.clamp(1, 4 * mean)).long().sort(descending=True).values


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_equal_lengths_stay_together(rows: int) -> None:
    assert pieces(torch.full((rows,), 50), 0) == [rows]


def test_a_cut_that_saves_less_than_a_pass_costs_is_not_made() -> None:
    assert pieces(torch.tensor([11, 10, 10, 10]), 3) == [4]
    assert pieces(torch.tensor([11, 10, 10, 10]), 2) == [1, 3]


def test_one_long_response_does_not_stretch_the_others() -> None:
    assert pieces(torch.tensor([1000] + [10] * 200), CPU_PASS) == [1, 200]


@pytest.mark.parametrize(("rows", "mean"), [(64, 16), (256, 16), (1024, 200)])
def test_long_tailed_lengths_lose_little_to_padding(rows: int, mean: int) -> None:
    lengths = long_tailed(rows, mean)
    sizes = pieces(lengths, CPU_PASS)
    assert sum(sizes) == rows
    assert area(lengths, [rows]) > 2 * int(lengths.sum())
    lost = area(lengths, sizes) - int(lengths.sum()) + CPU_PASS * (len(sizes) - 1)
    assert lost < 0.4 * int(lengths.sum())
    assert lost <= 1.1 * best_loss(lengths.tolist())


def best_loss(lengths: list[int]) -> int:
    """The smallest possible loss of all ways to cut, by dynamic programming."""
    best = [-CPU_PASS]
    for end in range(1, len(lengths) + 1):
        starts = range(max(0, end - 300), end)
        best.append(min(best[i] + (end - i) * lengths[i] + CPU_PASS for i in starts))
    return best[-1] - sum(lengths)


def test_a_pass_costs_more_where_kernels_are_launched() -> None:
    assert pass_tokens(None) == pass_tokens(torch.device("cpu")) == CPU_PASS
    assert pass_tokens(torch.device("cuda")) == GPU_PASS
