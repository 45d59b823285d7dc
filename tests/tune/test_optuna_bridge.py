from typing import Any

import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from leverl.tune.bridge.conditions import Condition, active, learn_conditions
from leverl.tune.bridge.parameters import Parameter, parameters
from leverl.tune.space.axis import Axis


def parameter(distribution: BaseDistribution, *seen: BaseDistribution) -> Parameter:
    return parameters({"p": seen}, {"p": distribution})["p"]


@pytest.mark.parametrize(
    ("distribution", "axis"),
    [
        (FloatDistribution(-1, 2), Axis("p", low=-1.0, high=2.0)),
        (FloatDistribution(1e-7, 1, log=True), Axis("p", low=1e-7, high=1.0, scale="log")),
        (FloatDistribution(0, 1, step=0.25), Axis("p", low=0.0, high=1.0, step=0.25)),
        (IntDistribution(1, 9), Axis("p", kind="int", low=1, high=9)),
        (IntDistribution(1, 9, step=2), Axis("p", kind="int", low=1, high=9, step=2)),
        (IntDistribution(1, 100, log=True), Axis("p", kind="int", low=1, high=100, scale="log")),
        (CategoricalDistribution([8, 2, 4]), Axis("p", kind="categorical", values=(8, 2, 4))),
        (CategoricalDistribution(["a", None]), Axis("p", kind="categorical", values=("0", "1"))),
        (CategoricalDistribution([True, False]), Axis("p", kind="categorical", values=("0", "1"))),
        (CategoricalDistribution([1, 1.0]), Axis("p", kind="categorical", values=("0", "1"))),
    ],
)
def test_distributions_become_axes(distribution: BaseDistribution, axis: Axis) -> None:
    found = parameter(distribution)
    assert found.axis == found.allowed == axis


@pytest.mark.parametrize(
    ("distribution", "values"),
    [
        (FloatDistribution(1e-7, 1, log=True), [1e-7, 3e-4, 1.0]),
        (FloatDistribution(-10.2, 10.2, step=0.1), [-10.2 + k * 0.1 for k in (0, 1, 77, 203)]),
        (IntDistribution(3, 9, step=3), [3, 6, 9]),
        (CategoricalDistribution(["a", None, 2.5, True]), ["a", None, 2.5, True]),
        (CategoricalDistribution([16, 4]), [16, 4]),
    ],
)
def test_values_go_there_and_back(distribution: BaseDistribution, values: list[Any]) -> None:
    found = parameter(distribution)
    for value in values:
        encoded = found.encode(value)
        assert encoded is not None
        assert found.decode(encoded) == value
        assert type(found.decode(encoded)) is type(value)
        assert distribution._contains(distribution.to_internal_repr(found.decode(encoded)))


def test_every_step_is_one_that_optuna_knows() -> None:
    distribution = FloatDistribution(-10.2, 10.2, step=0.1)
    found = parameter(distribution)
    for value in found.axis.choices():
        assert distribution._contains(distribution.to_internal_repr(found.decode(value)))


def test_values_outside_are_none() -> None:
    assert parameter(FloatDistribution(0, 1)).encode(1.5) is None
    assert parameter(CategoricalDistribution(["a"])).encode("b") is None


def test_an_axis_spans_all_ranges_and_allows_the_present_one() -> None:
    found = parameter(FloatDistribution(0, 5), FloatDistribution(0, 10), FloatDistribution(-1, 1))
    assert (found.axis.low, found.axis.high) == (-1, 10)
    assert (found.allowed.low, found.allowed.high) == (0, 5)


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (FloatDistribution(1, 5, log=True), FloatDistribution(0, 10)),
        (IntDistribution(0, 6, step=3), IntDistribution(0, 10, step=5)),
        (CategoricalDistribution(["a"]), CategoricalDistribution(["a", "b"])),
    ],
)
def test_ranges_that_differ_in_more_than_their_ends_are_not_joined(
    now: BaseDistribution, before: BaseDistribution
) -> None:
    found = parameter(now, before)
    assert found.axis == found.allowed


A = {"kind": "0", "x": 0.5}
B = {"kind": "1", "n": 2, "m": 3}


def test_conditions_are_learnt_from_what_trials_ask_for() -> None:
    found = learn_conditions([A, B, B], {"kind": 2, "n": 4, "m": 4})
    assert found == {
        "x": Condition("kind", frozenset({"1"})),
        "n": Condition("kind", frozenset({"0"})),
        "m": Condition("kind", frozenset({"0"})),
    }


def test_what_will_not_be_asked_for_is_dropped() -> None:
    found = learn_conditions([A, B, B], {"kind": 2, "n": 4})
    everything = {"kind": "0", "x": 0.1, "n": 3, "m": 1}
    assert active(everything, found) == {"kind": "0", "x": 0.1}
    assert active({**everything, "kind": "1"}, found) == {"kind": "1", "n": 3, "m": 1}
    assert active({**everything, "kind": "2"}, found) == {**everything, "kind": "2"}  # never seen: all stay


def test_conditions_may_depend_on_conditions() -> None:
    deep = {"kind": "1", "n": 2, "depth": 0.1}
    found = learn_conditions([A, {"kind": "1", "n": 1}, deep], {"kind": 2, "n": 2})
    assert found["depth"] == Condition("n", frozenset({1}))
    assert active({"kind": "0", "x": 0.1, "n": 2, "depth": 0.3}, found) == {"kind": "0", "x": 0.1}
    assert active({"kind": "1", "x": 0.1, "n": 2, "depth": 0.3}, found) == {"kind": "1", "n": 2, "depth": 0.3}


def test_what_no_choice_explains_stays() -> None:
    """The parameter is asked for at random: nothing tells when."""
    asked = [{"kind": "0", "x": 0.1}, {"kind": "0"}, {"kind": "1", "x": 0.1}, {"kind": "1"}]
    assert learn_conditions(asked, {"kind": 2}) == {}
    assert learn_conditions([], {"kind": 2}) == {}
