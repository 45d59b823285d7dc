"""Numbers for people."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leverl.report import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.08e-06, "3.08e-6"),
        (1e-6, "1e-6"),
        (0.001, "0.001"),
        (1e-3 / 3, "0.0003333333333333333"),
        (256, "256"),
        (2.0, "2"),
        (1e16, "1e16"),
        (True, "true"),
        ("k2", "k2"),
        (None, "–"),
        (math.nan, "NaN"),
        (-math.inf, "−∞"),
    ],
)
def test_exact(value: float | None, text: str) -> None:
    assert numbers.exact(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_reads_back_as_the_same_value(value: float) -> None:
    assert float(numbers.exact(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0))
def test_nothing_is_rounded_to_zero(value: float) -> None:
    assert float(numbers.short(value)) != 0
    assert float(numbers.setting(value)) != 0


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (0.6123, 0.0312, "0.61 ± 0.03"),
        (0.6123, 0.0142, "0.612 ± 0.014"),
        (12.34, 2.2, "12 ± 2"),
        (0.6123, None, "0.612"),
        (0.5, 0.0, "0.5 ± 0"),
        (-0.19, 0.03, "−0.19 ± 0.03"),
        (0.5, math.nan, "0.5"),
        (None, 0.1, "–"),
    ],
)
def test_with_error_shows_as_many_places_as_are_known(
    mean: float | None, error: float | None, text: str
) -> None:
    assert numbers.with_error(mean, error) == text


def test_one_seed_has_no_error() -> None:
    assert numbers.seeds_text(0.71, None, 1) == "0.71 (1 seed)"
    assert numbers.seeds_text(0.71, 0.03, 3) == "0.71 ± 0.03 (3 seeds)"
    assert numbers.seeds_text(None, None, 0) == "–"


def test_signs_and_intervals() -> None:
    assert numbers.signed(0.19) == "+0.19"
    assert numbers.signed(-0.19) == "−0.19"
    assert numbers.signed(0.0) == "0"
    assert numbers.interval(0.1134, 0.2711) == "+0.113 … +0.271"
    assert numbers.interval(-0.02, 0.05) == "−0.020 … +0.050"
    assert numbers.interval(0.0069, 0.2411) == "+0.007 … +0.241"  # an end that is above 0 looks it
    assert numbers.interval(0.0, 0.2411) == "0.00 … +0.24"
    assert numbers.within(0.79, (0.664, 0.79)) == "0.790"  # as many places as its ends
    assert numbers.signed_within(-0.00749, (-0.066, 0.051)) == "−0.007"
    assert numbers.signed_within(0.25, None) == "+0.25"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.123, "12 %"), (0.004, "0.4 %"), (0.99999, "99.9 %"), (1.0, "100 %"), (None, "–")],
)
def test_percent_keeps_little_apart_from_none(share: float | None, text: str) -> None:
    assert numbers.percent(share) == text


def test_amounts_and_times() -> None:
    assert [numbers.amount(n) for n in (950, 3123, 999.9, 1e6, 2.5e9)] == ["950", "3.1k", "1k", "1M", "2.5G"]
    assert [numbers.clock(s) for s in (52, 250, 3723, None)] == ["0:52", "4:10", "1:02:03", "–"]
    assert [numbers.duration(s) for s in (8.2, 720, 5.8 * 3600, 3 * 86400)] == [
        "8.2 s",
        "12 min",
        "5.8 h",
        "3 d",
    ]


def test_sparkline() -> None:
    assert numbers.sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert numbers.sparkline([]) == ""
    assert numbers.sparkline([0.5, 0.5]) == "▁▁"
    assert numbers.sparkline([0.0, math.nan, 1.0]) == "▁ █"
    assert len(numbers.sparkline(list(range(1000)), 12)) == 12
