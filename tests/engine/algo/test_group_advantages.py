"""GRPO and RLOO advantages: golden values, groups in any order, rows without a score."""

import statistics

import pytest
import torch
from torch import Tensor

from leverl.engine.algo.advantages import grpo_advantages, rloo_advantages
from leverl.errors import ConfigError

ONE_GROUP = torch.zeros(4, dtype=torch.long)
ESTIMATORS = [grpo_advantages, rloo_advantages]


def scores(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def ragged(seed: int) -> tuple[Tensor, Tensor]:
    """Scores and group ids: unequal sizes, ids with gaps, rows shuffled."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.tensor([2, 5, 3, 8, 2])
    group = torch.tensor([7, 0, 40, 3, 11]).repeat_interleave(sizes)
    group = group[torch.randperm(len(group), generator=generator)]
    return torch.randn(len(group), generator=generator, dtype=torch.float64) * 3 + 1, group


def naive(name: str, values: list[float], group: list[int]) -> list[float]:
    """The definitions, in plain Python."""
    result = []
    for value, label in zip(values, group, strict=True):
        members = [v for v, g in zip(values, group, strict=True) if g == label]
        if name == "grpo_advantages":
            result.append((value - statistics.mean(members)) / (statistics.stdev(members) + 1e-4))
        else:
            result.append(value - (sum(members) - value) / (len(members) - 1))
    return result


def test_vector_d_and_a25_the_standard_deviation_is_unbiased_and_epsilon_is_added_to_it() -> None:
    result = grpo_advantages(scores(1, 0, 0, 1), ONE_GROUP)
    torch.testing.assert_close(result, scores(0.8659, -0.8659, -0.8659, 0.8659), atol=5e-5, rtol=0)
    assert result[0].item() == pytest.approx(0.5 / (1 / 3**0.5 + 1e-4), rel=1e-12)


def test_vector_d_centring_only() -> None:
    result = grpo_advantages(scores(1, 0, 0, 1), ONE_GROUP, scale_by_std=False)
    assert result.tolist() == [0.5, -0.5, -0.5, 0.5]


def test_vector_d_and_a28_leave_one_out_leaves_itself_out() -> None:
    result = rloo_advantages(scores(1, 0, 0, 1), ONE_GROUP)
    torch.testing.assert_close(result, scores(1, -1, -1, 1) * 2 / 3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("seed", range(3))
def test_definition_on_ragged_groups(estimator, seed: int) -> None:
    values, group = ragged(seed)
    expected = naive(estimator.__name__, values.tolist(), group.tolist())
    torch.testing.assert_close(estimator(values, group), scores(*expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a23_a_single_response_has_no_group_baseline(estimator) -> None:
    with pytest.raises(ConfigError, match=r"group 9 has 1 response \(2 such groups\).*group_size"):
        estimator(scores(1, 0, 1, 0), torch.tensor([4, 9, 12, 4]))


@pytest.mark.parametrize("value", [1.0, 0.1, 1 / 3, -7.3, 1e6, 0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a24_equal_rewards_give_exactly_0(estimator, dtype: torch.dtype, value: float) -> None:
    result = estimator(torch.full((7,), value, dtype=dtype), torch.zeros(7, dtype=torch.long))
    assert result.tolist() == [0.0] * 7


@pytest.mark.parametrize("level", [0.0, 0.5, 100.0])
@pytest.mark.parametrize(
    "kwargs", [{}, {"epsilon": 0.0}, {"epsilon": 1e-8}, {"scale_by_std": False}], ids=str
)
def test_a24_float_noise_in_rewards_is_not_amplified(kwargs: dict[str, float], level: float) -> None:
    noise = torch.randn(8, generator=torch.Generator().manual_seed(1)) * 1e-7 * max(1.0, level)
    result = grpo_advantages(level + noise, torch.zeros(8, dtype=torch.long), **kwargs)
    assert result.tolist() == [0.0] * 8


def test_a24_a_small_but_real_spread_counts() -> None:
    result = grpo_advantages(scores(0.5, 0.501), torch.zeros(2, dtype=torch.long))
    assert result[1].item() == pytest.approx(0.0005 / (0.001 / 2**0.5 + 1e-4), rel=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a26_permuting_rows_permutes_advantages(estimator) -> None:
    values, group = ragged(4)
    expected = estimator(values, group)
    for seed in range(5):
        order = torch.randperm(len(values), generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(
            estimator(values[order], group[order]), expected[order], rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a26_names_of_groups_do_not_matter_and_groups_do_not_mix(estimator) -> None:
    values, group = ragged(5)
    expected = estimator(values, group)
    assert torch.equal(estimator(values, group * 1000 + 17), expected)
    for label in group.unique():
        alone = group == label
        torch.testing.assert_close(estimator(values[alone], group[alone]), expected[alone])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a27_advantages_of_each_group_sum_to_0(estimator) -> None:
    values, group = ragged(6)
    result = estimator(values, group)
    for label in group.unique():
        assert result[group == label].sum().item() == pytest.approx(0.0, abs=1e-12)
    assert result.abs().min() > 1e-3


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_unscored_rows_get_0_and_are_in_no_baseline(estimator) -> None:
    values, group = scores(1, torch.nan, 0, 0, torch.inf, 1), torch.tensor([0, 0, 0, 1, 1, 1])
    scored = torch.tensor([True, False, True, True, False, True])
    result = estimator(values, group, scored)
    assert result[[1, 4]].tolist() == [0.0, 0.0]
    torch.testing.assert_close(result[scored], estimator(values[scored], group[scored]))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_group_with_one_scored_row_gives_0(estimator) -> None:
    scored = torch.tensor([True, False, False, False])
    assert estimator(scores(5, 1, 2, 3), ONE_GROUP, scored).tolist() == [0.0] * 4
    assert estimator(scores(5, 1, 2, 3), ONE_GROUP, ~scored & False).tolist() == [0.0] * 4


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_nan_score_is_not_hidden_and_stays_in_its_group(estimator) -> None:
    result = estimator(scores(1, torch.nan, 0, 1), torch.tensor([0, 0, 1, 1]))
    assert result.isnan().tolist() == [True, True, False, False]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_dtype_and_gradient(estimator) -> None:
    values = torch.tensor([1.0, 0.0], requires_grad=True)
    result = estimator(values, torch.zeros(2, dtype=torch.long))
    assert result.dtype == torch.float32
    assert not result.requires_grad
    assert estimator(torch.tensor([1, 0]), torch.zeros(2, dtype=torch.long)).dtype == torch.float32


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_shapes_must_agree(estimator) -> None:
    with pytest.raises(ConfigError, match=r"group_B has shape \(3,\), the mask has \(4,\)"):
        estimator(scores(1, 2, 3, 4), torch.zeros(3, dtype=torch.long))
