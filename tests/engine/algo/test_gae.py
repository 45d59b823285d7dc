"""GAE and whitening: golden values, masks with gaps, junk after the end."""

import pytest
import torch
from torch import Tensor

from leverl.engine.algo.advantages import gae, whiten
from leverl.errors import ConfigError


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def naive(rewards: list[float], values: list[float], gamma: float, lam: float) -> list[float]:
    """Σ (γλ)^k δ_{t+k}, from the definition, for one response without gaps."""
    following = [*values, 0.0][1:]
    deltas = [r + gamma * n - v for r, v, n in zip(rewards, values, following, strict=True)]
    return [sum((gamma * lam) ** k * d for k, d in enumerate(deltas[t:])) for t in range(len(deltas))]


def ragged(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rewards, values and a mask with gaps."""
    generator = torch.Generator().manual_seed(seed)
    rewards, values = (torch.randn(6, 9, generator=generator, dtype=torch.float64) for _ in range(2))
    mask = torch.rand(6, 9, generator=generator) < 0.6
    mask[0] = False
    mask[1] = True
    return rewards, values, mask


@pytest.mark.parametrize("junk", [9.0, torch.nan, torch.inf])
def test_vector_c_and_a30_nothing_is_bootstrapped_through_padding(junk: float) -> None:
    advantages, returns = gae(
        rows([0, 0, 0, 1, junk]),
        rows([0.1, 0.2, 0.3, 0.4, junk]),
        torch.tensor([[1, 1, 1, 1, 0]], dtype=torch.bool),
        gamma=0.9,
        lam=0.8,
    )
    torch.testing.assert_close(advantages, rows([0.385453, 0.42424, 0.492, 0.6, 0]), atol=1e-6, rtol=0)
    torch.testing.assert_close(returns, rows([0.485453, 0.62424, 0.792, 1.0, 0]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("junk", [0.0, 7.0, torch.nan])
def test_vector_c_and_a31_inserted_tool_tokens_leave_advantages_of_sampled_tokens_unchanged(
    junk: float,
) -> None:
    mask = torch.tensor([[1, 1, 0, 0, 1]], dtype=torch.bool)
    advantages, returns = gae(
        rows([0, 0, junk, junk, 1]), rows([0.1, 0.2, junk, junk, 0.4]), mask, gamma=0.9, lam=0.8
    )
    torch.testing.assert_close(advantages[mask], torch.tensor([0.50624, 0.592, 0.6], dtype=torch.float64))
    assert advantages[~mask].tolist() == [0.0, 0.0]
    assert returns[~mask].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("gamma", "lam", "expected"),
    [(1.0, 1.0, [6, 5, 3]), (0.5, 1.0, [2.75, 3.5, 3]), (1.0, 0.5, [3.625, 4.25, 3])],
)
def test_vector_f_returns(gamma: float, lam: float, expected: list[float]) -> None:
    mask = torch.ones(1, 3, dtype=torch.bool)
    _, returns = gae(rows([1, 2, 3]), rows([0.5, 1, 1.5]), mask, gamma=gamma, lam=lam)
    torch.testing.assert_close(returns, rows(expected))


def test_vector_f_a_masked_position_is_skipped_with_its_reward() -> None:
    mask = torch.tensor([[True, False, True]])
    advantages, returns = gae(rows([1, 2, 3]), rows([0.5, 1, 1.5]), mask, gamma=1.0, lam=1.0)
    assert returns.tolist() == [[4.0, 0.0, 3.0]]
    assert advantages.tolist() == [[3.5, 0.0, 1.5]]


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.9, 0.7), (1.0, 0.0), (0.0, 1.0)])
def test_a31_masks_with_gaps_equal_the_definition_without_them(gamma: float, lam: float) -> None:
    rewards, values, mask = ragged(2)
    advantages, returns = gae(rewards, values, mask, gamma=gamma, lam=lam)
    for b in range(len(mask)):
        here = mask[b]
        expected = rows(naive(rewards[b, here].tolist(), values[b, here].tolist(), gamma, lam))[0]
        torch.testing.assert_close(advantages[b, here], expected)
        torch.testing.assert_close(returns[b, here], expected + values[b, here])
    assert not advantages[~mask].any()


def test_gae_accepts_responses_without_tokens_and_gives_no_gradient() -> None:
    empty = torch.zeros(2, 0)
    assert gae(empty, empty, empty.bool(), gamma=1.0, lam=1.0)[0].shape == (2, 0)
    values = torch.zeros(1, 2, requires_grad=True)
    advantages, returns = gae(
        torch.ones(1, 2), values, torch.ones(1, 2, dtype=torch.bool), gamma=1.0, lam=1.0
    )
    assert not advantages.requires_grad
    assert not returns.requires_grad


def test_gae_refuses_other_shapes() -> None:
    with pytest.raises(ConfigError, match=r"gae: values_BT has shape \(1, 2\), the mask has \(1, 3\)"):
        gae(torch.zeros(1, 3), torch.zeros(1, 2), torch.zeros(1, 3).bool(), gamma=1.0, lam=1.0)


@pytest.mark.parametrize("junk", [0.0, torch.nan, -torch.inf, 1e9])
def test_a33_whitening_is_over_sampled_tokens_only(junk: float) -> None:
    x, _, mask = ragged(3)
    result = whiten(torch.where(mask, 5 * x + 3, junk), mask)
    assert result[mask].mean().item() == pytest.approx(0.0, abs=1e-12)
    assert result[mask].var(unbiased=True).item() == pytest.approx(1.0, rel=1e-8)
    assert not result[~mask].any()


def test_a33_whitening_does_not_depend_on_padding_or_on_how_rows_are_dealt_out() -> None:
    x, _, mask = ragged(4)
    result = whiten(x, mask)
    padded = whiten(torch.nn.functional.pad(x, (0, 5)), torch.nn.functional.pad(mask, (0, 5)))
    torch.testing.assert_close(padded[:, :9], result)
    order = torch.tensor([4, 1, 0, 5, 3, 2])
    torch.testing.assert_close(whiten(x[order], mask[order]), result[order])
    # A shard whitened alone is something else: the whole batch has to be whitened before it is dealt out.
    assert (whiten(x[:3], mask[:3]) - result[:3]).abs().max() > 1e-3


def test_whitening_few_or_equal_tokens_only_centres() -> None:
    one = torch.tensor([[True, False]])
    assert whiten(torch.tensor([[7.0, 3.0]]), one).tolist() == [[0.0, 0.0]]
    assert whiten(torch.tensor([[torch.nan, 3.0]]), one & False).tolist() == [[0.0, 0.0]]
    assert whiten(torch.full((2, 3), 0.1), torch.ones(2, 3, dtype=torch.bool)).abs().max() < 1e-6
