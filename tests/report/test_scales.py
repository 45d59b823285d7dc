"""Levers on their axes."""

import pytest

from leverl.report.scales import ABSENT, BESIDE, edge, lever_scale, range_words
from leverl.tune.model import LeverAxis

RATE = LeverAxis("lr", "log", 1e-6, 1e-2, (), 1e-3)
KL = LeverAxis("kl", "log", 1e-4, 1e-1, (0,), 1e-3)
EPOCHS = LeverAxis("epochs", "int", 1, 4, (), 1)
BATCH = LeverAxis("batch", "pow2", 32, 512, (), 64)
LAMBDA = LeverAxis("lambda", "logit", 0.9, 0.999, (1,), 1.0)
KIND = LeverAxis("kind", "categorical", None, None, ("k2", "k3"), "k2")


def test_places_follow_the_scale_of_the_search() -> None:
    assert lever_scale(RATE).place(1e-4) == pytest.approx(0.5)
    assert lever_scale(BATCH).place(128) == pytest.approx(0.5)
    assert lever_scale(LAMBDA).place(0.99) == pytest.approx(0.509, abs=0.01)
    assert lever_scale(EPOCHS).place(1) == 0
    assert [lever_scale(KIND).place(word) for word in ("k2", "k3")] == [0.25, 0.75]


def test_absent_values_and_those_beside_the_range_lie_below() -> None:
    scale = lever_scale(KL, [1e-3, 0, None])
    assert scale.place(None) == ABSENT
    assert scale.place(0) == BESIDE
    assert lever_scale(LAMBDA, [1.0]).place(1.0) == BESIDE
    assert scale.ticks([0, None])[-2:] == [(ABSENT, "–"), (BESIDE, "0")]


def test_a_base_outside_the_range_widens_the_axis() -> None:
    scale = lever_scale(RATE, [1e-1])
    assert scale.high == 1e-1
    assert scale.place(1e-1) == 1


def test_ticks_of_powers_of_two_are_whole_numbers() -> None:
    assert [text for _, text in sorted(lever_scale(BATCH).ticks())] == ["32", "64", "128", "256", "512"]


def test_ranges_in_words() -> None:
    assert range_words(KL) == "0.0001 … 0.1 (log), or 0"
    assert range_words(BATCH) == "32 … 512 (powers of two)"
    assert range_words(LAMBDA) == "0.9 … 0.999 (logit), or 1"
    assert range_words(KIND) == "k2, k3"


@pytest.mark.parametrize(
    ("axis", "value", "side"),
    [
        (RATE, 1.2e-6, "lower"),
        (RATE, 8e-3, "upper"),
        (RATE, 5e-3, ""),
        (KL, 0, ""),
        (EPOCHS, 4, "upper"),
        (LeverAxis("epochs", "int", 1, 2, (), 1), 2, ""),
        (BATCH, 32, "lower"),
        (BATCH, 64, ""),
        (KIND, "k3", ""),
        (RATE, None, ""),
    ],
)
def test_edges(axis: LeverAxis, value: float | str | None, side: str) -> None:
    assert edge(axis, value, 0.05) == side
