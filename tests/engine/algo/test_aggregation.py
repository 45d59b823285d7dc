"""Aggregation: golden values, and that no split into micro-batches changes loss or gradient."""

import pytest
import torch
from torch import Tensor

from leverl.engine.algo.aggregation import AGGREGATIONS, Aggregation, aggregate, loss_total
from leverl.engine.algo.policy_loss import clipped_policy_loss
from leverl.engine.algo.value_loss import clipped_value_loss
from leverl.errors import ConfigError

NORM_LENGTH = 8
# Row 3 is fully masked; widths differ, so that any split is uneven in tokens.
LENGTHS = (5, 1, 6, 0, 3, 2, 4)
SPLITS = [(7,), (1,) * 7, (2, 2, 2, 1), (3, 3, 1), (1, 6), (5, 2), (3, 1, 3)]


def golden_terms() -> tuple[Tensor, Tensor, Tensor]:
    """Vector A: log-probs (with grad), loss per token, mask."""
    log_probs = torch.tensor(
        [[-0.8, -2.3, -0.5, -1.2], [-0.6, -0.7, 9, 9]], dtype=torch.float64, requires_grad=True
    )
    old = torch.tensor([[-1.0, -2.0, -0.5, -1.5], [-0.7, -1.2, 0, 0]], dtype=torch.float64)
    advantages = torch.tensor([[1.5], [-0.5]], dtype=torch.float64).expand(2, 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)
    terms = clipped_policy_loss(log_probs, old, advantages, mask, clip_low=0.2, clip_high=0.2)
    return log_probs, terms.per_token, mask


@pytest.mark.parametrize(
    ("mode", "loss", "grads"),
    [
        ("token_mean", -0.805714, [[0, -0.185205, -0.25, 0], [0.092098, 0.137393, 0, 0]]),
        ("seq_mean_token_mean", -0.432167, [[0, -0.138903, -0.1875, 0], [0.138146, 0.20609, 0, 0]]),
        ("seq_mean_token_sum", -2.417141, [[0, -0.555613, -0.75, 0], [0.276293, 0.41218, 0, 0]]),
        ("token_sum_norm", -0.302143, [[0, -0.069452, -0.09375, 0], [0.034537, 0.051523, 0, 0]]),
    ],
)
def test_vector_a_loss_and_gradient(mode: Aggregation, loss: float, grads: list[list[float]]) -> None:
    log_probs, per_token, mask = golden_terms()
    result = aggregate(per_token, mask, mode, total=loss_total(mask, mode, NORM_LENGTH))
    result.backward()
    assert result.item() == pytest.approx(loss, abs=5e-7)
    torch.testing.assert_close(log_probs.grad, torch.tensor(grads, dtype=torch.float64), atol=1e-6, rtol=0)


def test_vector_a_mean_of_micro_batch_means_would_be_another_number() -> None:
    _, per_token, mask = golden_terms()
    naive = [
        aggregate(per_token[[b]], mask[[b]], "token_mean", total=loss_total(mask[[b]], "token_mean"))
        for b in range(2)
    ]
    assert sum(naive).item() / 2 == pytest.approx(-0.432167, abs=5e-7)


class Problem:
    """A linear policy and critic over random features, with ragged responses."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(5)
        rows, width = len(LENGTHS), max(LENGTHS) + 1

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.mask = torch.arange(width) < torch.tensor(LENGTHS)[:, None]
        self.features, self.weight = draw(rows, width, 3), draw(3).requires_grad_()
        self.old, self.advantages, self.returns = (draw(rows, width) for _ in range(3))

    def policy(self, rows: slice) -> Tensor:
        log_probs = self.features[rows] @ self.weight
        return clipped_policy_loss(
            log_probs, self.old[rows], self.advantages[rows], self.mask[rows], clip_low=0.2, clip_high=0.3
        ).per_token

    def value(self, rows: slice) -> Tensor:
        values = self.features[rows] @ self.weight
        return clipped_value_loss(
            values, self.old[rows], self.returns[rows], self.mask[rows], clip=0.5
        ).per_token

    def run(self, loss: str, mode: Aggregation, split: tuple[int, ...]) -> tuple[float, Tensor]:
        """Loss and gradient accumulated over consecutive micro-batches."""
        total = loss_total(self.mask, mode, NORM_LENGTH)
        self.weight.grad, value, start = None, 0.0, 0
        for size in split:
            rows = slice(start, start + size)
            part = aggregate(getattr(self, loss)(rows), self.mask[rows], mode, total=total)
            part.backward()
            value, start = value + part.item(), start + size
        assert self.weight.grad is not None
        return value, self.weight.grad.clone()


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_a01_every_mode_is_invariant_to_micro_batch_splits(mode: Aggregation, split: tuple[int, ...]) -> None:
    check_split("policy", mode, split)


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_a02_value_loss_is_invariant_to_micro_batch_splits(mode: Aggregation, split: tuple[int, ...]) -> None:
    check_split("value", mode, split)


def check_split(loss: str, mode: Aggregation, split: tuple[int, ...]) -> None:
    problem = Problem()
    whole, whole_grad = problem.run(loss, mode, (len(LENGTHS),))
    value, grad = problem.run(loss, mode, split)
    assert whole_grad.abs().min() > 1e-4
    assert value == pytest.approx(whole, rel=1e-12)
    torch.testing.assert_close(grad, whole_grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_a01_the_whole_equals_a_naive_loop(mode: Aggregation) -> None:
    problem = Problem()
    per_token = problem.policy(slice(None)).detach()
    rows = [row[:length] for row, length in zip(per_token, LENGTHS, strict=True) if length]
    expected = {
        "token_mean": torch.cat(rows).mean(),
        "seq_mean_token_mean": torch.stack([row.mean() for row in rows]).mean(),
        "seq_mean_token_sum": torch.stack([row.sum() for row in rows]).mean(),
        "token_sum_norm": torch.stack([row.sum() for row in rows]).sum() / (len(rows) * NORM_LENGTH),
    }[mode]
    assert problem.run("policy", mode, (len(LENGTHS),))[0] == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_a04_gradient_norm_does_not_depend_on_the_number_of_accumulated_micro_batches(
    mode: Aggregation,
) -> None:
    problem = Problem()
    norms = [problem.run("policy", mode, split)[1].norm().item() for split in SPLITS]
    assert norms == pytest.approx([norms[0]] * len(norms), rel=1e-12)


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_a07_extra_padding_columns_change_nothing(mode: Aggregation) -> None:
    problem = Problem()
    mask, per_token = problem.mask, problem.policy(slice(None)).detach()
    wide_mask = torch.nn.functional.pad(mask, (0, 10))
    wide = torch.nn.functional.pad(per_token, (0, 10), value=123.0)
    narrow_loss = aggregate(per_token, mask, mode, total=loss_total(mask, mode, NORM_LENGTH))
    wide_loss = aggregate(wide, wide_mask, mode, total=loss_total(wide_mask, mode, NORM_LENGTH))
    assert wide_loss.item() == pytest.approx(narrow_loss.item(), rel=1e-15)


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_a08_a_fully_masked_row_is_no_sequence(mode: Aggregation) -> None:
    problem = Problem()
    keep = torch.tensor(LENGTHS) > 0
    mask, per_token = problem.mask, problem.policy(slice(None)).detach()
    with_row = aggregate(per_token, mask, mode, total=loss_total(mask, mode, NORM_LENGTH))
    without = aggregate(per_token[keep], mask[keep], mode, total=loss_total(mask[keep], mode, NORM_LENGTH))
    assert with_row.item() == pytest.approx(without.item(), rel=1e-14)
    assert loss_total(mask, mode, NORM_LENGTH) == loss_total(mask[keep], mode, NORM_LENGTH)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)], ids=str)
@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_a09_an_empty_batch_has_loss_0_and_finite_gradient_0(
    mode: Aggregation, shape: tuple[int, int]
) -> None:
    log_probs = torch.full(shape, torch.nan, requires_grad=True)
    mask = torch.zeros(shape, dtype=torch.bool)
    terms = clipped_policy_loss(log_probs, log_probs, log_probs, mask, clip_low=0.2, clip_high=0.2)
    loss = aggregate(terms.per_token, mask, mode, total=loss_total(mask, mode, NORM_LENGTH))
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(log_probs.grad, torch.zeros(shape))


def test_loss_keeps_the_dtype_of_the_tokens() -> None:
    mask = torch.ones(2, 3, dtype=torch.bool)
    loss = aggregate(torch.ones(2, 3), mask, "token_mean", total=loss_total(mask, "token_mean"))
    assert loss.dtype == torch.float32
    assert aggregate(torch.ones(2, 3), mask, "token_mean", total=12).item() == 0.5


def test_unknown_mode_names_the_nearest_one() -> None:
    mask = torch.ones(1, 1, dtype=torch.bool)
    with pytest.raises(ConfigError, match=r"unknown mode 'token_men'\. Did you mean 'token_mean'"):
        loss_total(mask, "token_men")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="aggregate: unknown mode 'mean'"):
        aggregate(torch.ones(1, 1), mask, "mean", total=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm_length", [None, 0, -3.0, float("nan")])
def test_token_sum_norm_needs_a_positive_constant(norm_length: float | None) -> None:
    with pytest.raises(ConfigError, match=f"norm_length is {norm_length}"):
        loss_total(torch.ones(1, 1, dtype=torch.bool), "token_sum_norm", norm_length)


def test_a_mask_of_numbers_and_another_shape_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"dtype torch.float32, must be torch.bool"):
        loss_total(torch.ones(1, 1), "token_mean")
    with pytest.raises(ConfigError, match=r"per_token_BT has shape \(2,\), the mask has \(2, 2\)"):
        aggregate(torch.ones(2), torch.ones(2, 2, dtype=torch.bool), "token_mean", total=4)
