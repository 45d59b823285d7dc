"""Axes: every kind of range, there and back between values and the unit interval."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leverl.errors import ConfigError
from leverl.tune.space.axis import OTHER_SHARE, Axis

LOG = Axis("rate", low=1e-5, high=1e-1, scale="log")
LOGIT = Axis("lambda", low=0.9, high=0.999, scale="logit", other=1.0)
POW2 = Axis("size", kind="int", low=32, high=512, scale="pow2")
STEPPED = Axis("epochs", kind="int", low=1, high=9, step=2)
WARM = Axis("temperature", low=0.7, high=1.2, step=0.1)


def _finite_axes() -> st.SearchStrategy[Axis]:
    low = st.integers(-50, 50)
    plain = st.builds(
        lambda a, n, k, other: Axis(
            "n", kind="int", low=a, high=a + n * k, step=k, other=a - 7 if other else None
        ),
        low,
        st.integers(0, 60),
        st.integers(1, 9),
        st.booleans(),
    )
    log = st.builds(
        lambda a, n, other: Axis("n", kind="int", low=a, high=a + n, scale="log", other=0 if other else None),
        st.integers(1, 40),
        st.integers(0, 300),
        st.booleans(),
    )
    pow2 = st.builds(
        lambda a, n, other: Axis(
            "n", kind="int", low=2**a, high=2 ** (a + n), scale="pow2", other=0 if other else None
        ),
        st.integers(0, 8),
        st.integers(0, 12),
        st.booleans(),
    )
    steps = st.builds(
        lambda a, n, k: Axis("x", low=a / 100, high=float(f"{(a + n * k) / 100:.12g}"), step=k / 100),
        low,
        st.integers(0, 60),
        st.integers(1, 30),
    )
    words = st.lists(st.sampled_from(["a", "b", "c", True, False]), min_size=1, unique_by=repr)
    numbers = st.lists(st.integers(-9, 9) | st.floats(-9, 9), min_size=1, unique=True)
    lists = st.builds(lambda values: Axis("c", kind="categorical", values=tuple(values)), words | numbers)
    return plain | log | pow2 | steps | lists


def _float_axes() -> st.SearchStrategy[Axis]:
    def build(scale: Any, low: float, width: float, other: bool) -> Axis:
        if scale == "logit":
            return Axis(
                "x", low=low, high=low + (0.999 - low) * width, scale=scale, other=1.0 if other else None
            )
        return Axis("x", low=low, high=low * (1 + 99 * width), scale=scale, other=0.0 if other else None)

    return st.builds(
        build,
        st.sampled_from(["linear", "log", "logit"]),
        st.floats(1e-6, 0.9),
        st.floats(1e-3, 1),
        st.booleans(),
    )


@given(_finite_axes())
def test_every_countable_value_comes_back(axis: Axis) -> None:
    choices = axis.choices()
    assert len(choices) == axis.count == len({repr(choice) for choice in choices})
    for value in choices:
        assert axis.contains(value)
        back = axis.at(axis.unit(value))
        assert (back, type(back)) == (value, type(value))
        assert axis.snap(value) == value
    assert sum(axis.share(value) for value in choices) == pytest.approx(1)


@given(_finite_axes(), st.floats(0, 1))
def test_a_unit_lies_in_the_cell_of_its_value(axis: Axis, unit: float) -> None:
    value = axis.at(unit)
    assert any(value == choice and type(value) is type(choice) for choice in axis.choices())
    assert abs(axis.unit(value) - unit) <= axis.share(value) / 2 + 1e-9


@given(_float_axes(), st.floats(0, 1))
def test_floats_come_back_up_to_rounding(axis: Axis, unit: float) -> None:
    value = axis.at(unit)
    assert axis.contains(value)
    if axis.is_other(value):
        assert axis.unit(value) == OTHER_SHARE / 2
    else:
        assert axis.unit(value) == pytest.approx(unit, abs=1e-9)
        assert axis.at(axis.unit(value)) == pytest.approx(value, rel=1e-9)


@given(_float_axes() | _finite_axes(), st.floats(0, 1), st.floats(0, 1))
def test_distance_is_one_between_the_ends_and_symmetric(axis: Axis, one: float, two: float) -> None:
    a, b = axis.at(one), axis.at(two)
    assert axis.distance(a, b) == pytest.approx(axis.distance(b, a))
    assert 0 <= axis.distance(a, b) <= 1 + 1e-9
    if axis.kind != "categorical" and axis.high > axis.low:
        assert axis.distance(axis.low, axis.high) == pytest.approx(1)


def test_powers_of_two_are_evenly_spaced_in_their_logarithm() -> None:
    assert POW2.choices() == (32, 64, 128, 256, 512)
    positions = [POW2.position(value) for value in POW2.choices()]
    assert [b - a for a, b in itertools.pairwise(positions)] == pytest.approx([0.2] * 4)
    assert not POW2.contains(48)
    assert POW2.snap(90) == 64
    assert POW2.snap(91) == 128  # nearer in log2
    assert POW2.snap(10_000) == 512


def test_stepped_values() -> None:
    assert STEPPED.choices() == (1, 3, 5, 7, 9)
    assert not STEPPED.contains(2)
    assert WARM.choices() == (0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
    assert WARM.contains(0.7 + 0.1 + 0.1)
    assert WARM.snap(0.96) == 1.0
    assert WARM.finite


def test_logit_gives_the_upper_end_its_room() -> None:
    assert LOGIT.value(0.5) == pytest.approx(1 / (1 + math.exp(-(math.log(9) + math.log(999)) / 2)))
    assert LOGIT.contains(1.0)
    assert not LOGIT.contains(0.9995)
    assert LOGIT.distance(1.0, 0.999) == 1.0


def test_a_list_of_numbers_is_ordered_by_size_and_keeps_its_order_in_a_grid() -> None:
    axis = Axis("size", kind="categorical", values=(512, 128, 256))
    assert axis.ordered
    assert axis.choices() == (512, 128, 256)
    assert [axis.at(unit) for unit in (0.1, 0.5, 0.9)] == [128, 256, 512]
    assert axis.distance(128, 256) == pytest.approx(0.5)
    assert axis.snap(300) == 256
    assert not Axis("kl_in", kind="categorical", values=("loss", "off")).ordered
    assert not Axis("flag", kind="categorical", values=(True, False)).ordered


@pytest.mark.parametrize(
    ("axis", "scale"),
    [
        (Axis("x"), "linear"),
        (LOG, "log"),
        (LOGIT, "logit"),
        (POW2, "pow2"),
        (STEPPED, "int"),
        (WARM, "linear"),
        (Axis("n", kind="int", low=1, high=64, scale="log"), "log"),
        (Axis("c", kind="categorical", values=("a", "b")), "categorical"),
    ],
)
def test_views_name_the_scale(axis: Axis, scale: str) -> None:
    assert axis.view(None).scale == scale


def test_a_value_outside_has_no_place() -> None:
    for axis, value in (
        (LOG, 1.0),
        (POW2, 48),
        (LOG, "much"),
        (Axis("c", kind="categorical", values=("a",)), "b"),
    ):
        with pytest.raises(ConfigError, match="lies outside its range"):
            axis.unit(value)
    assert LOG.snap("much") is None
    assert LOG.snap(7.0) == 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"low": 1.0, "high": 0.0}, "must be below max"),
        ({"low": 0.0, "high": math.inf}, "must be below max"),
        ({"low": 0.0, "high": 1.0, "scale": "log"}, "no logarithm"),
        ({"low": 0.5, "high": 1.0, "scale": "logit"}, "logit needs 0 < min and max < 1"),
        ({"low": 0.0, "high": 0.5, "scale": "logit"}, "logit needs 0 < min and max < 1"),
        ({"kind": "int", "low": 24, "high": 96, "scale": "pow2"}, "whole powers of two"),
        ({"low": 2.0, "high": 8.0, "scale": "pow2"}, "whole powers of two"),
        ({"kind": "int", "low": 2, "high": 9, "scale": "log", "step": 2}, "step and log exclude each other"),
        ({"kind": "int", "low": 1, "high": 10, "step": 2}, "write max: 9"),
        ({"low": 0.1, "high": 0.75, "step": 0.2}, r"write max: 0\.7"),
        ({"kind": "int", "low": 1, "high": 9, "step": 0.5}, "a whole number above 0"),
        ({"low": 0.0, "high": 1.0, "step": -0.5}, "above 0"),
        ({"low": 0.1, "high": 1.0, "other": 0.5}, "outside"),
        ({"kind": "categorical"}, "at least one value"),
    ],
)
def test_what_does_not_fit_together_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Axis("x", **settings)
