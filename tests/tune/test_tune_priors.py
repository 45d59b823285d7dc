import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leverl.tune.space.axis_words import axis_in_words, parse_axis
from leverl.tune.space.priors import WIDTH, Prior

RATE = {"min": 1e-5, "max": 1e-1, "log": True}


@settings(max_examples=25)
@given(st.floats(0, 1), st.floats(0.05, 2))
def test_the_density_integrates_to_one(center: float, width: float) -> None:
    units = (np.arange(800) + 0.5) / 800
    density = [math.exp(Prior(center, width).log_density(unit)) for unit in units]
    assert np.mean(density) == pytest.approx(1, rel=1e-3)


def test_the_peak_is_at_the_center_and_the_ends_stay_possible() -> None:
    prior = Prior(0.5)
    densities = [prior.log_density(unit) for unit in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert densities == pytest.approx(densities[::-1])
    assert densities[2] - densities[0] == pytest.approx(0.5 * (0.5 / WIDTH) ** 2)
    assert math.exp(densities[0] - densities[2]) == pytest.approx(0.135, abs=1e-3)


def test_the_base_is_the_centre_when_it_lies_in_the_range() -> None:
    axis = parse_axis("actor_learning_rate", RATE, 1e-3)
    assert axis.prior == Prior(axis.unit(1e-3))


def test_a_base_outside_the_range_leaves_the_recommended_value_or_nothing() -> None:
    low = {"min": 1e-7, "max": 1e-5, "log": True}
    assert parse_axis("actor_learning_rate", low, 1e-3).prior == Prior(pytest.approx(0.5))
    assert parse_axis("actor_learning_rate", {"min": 1e-4, "max": 1e-3, "log": True}, 1.0).prior is None
    assert parse_axis("actor_learning_rate", RATE).prior is None  # 1e-6, the recommended, lies outside


def test_a_study_names_its_own_centre_or_none() -> None:
    axis = parse_axis("actor_learning_rate", RATE | {"prior": 3e-4}, 1e-3)
    assert axis.prior == Prior(axis.unit(3e-4))
    for word in ("none", None, False):
        assert parse_axis("actor_learning_rate", RATE | {"prior": word}, 1e-3).prior is None


def test_zero_beside_a_range_can_be_the_centre() -> None:
    axis = parse_axis("kl_coef", {"min": 1e-4, "max": 1e-1, "log": True, "or": 0}, 0.0)
    assert axis.prior is not None
    assert axis.at(axis.prior.center) == 0.0


def test_the_centre_of_countable_values_is_the_nearest_of_them() -> None:
    axis = parse_axis("batch_size", {"min": 32, "max": 512, "pow2": True}, 100)
    assert axis.prior == Prior(axis.unit(128))


def test_lists_have_no_prior() -> None:
    assert parse_axis("clip_range", [0.1, 0.2], 0.2).prior is None


@pytest.mark.parametrize(
    ("word", "content", "base"),
    [
        ("actor_learning_rate", RATE, 1e-3),
        ("actor_learning_rate", RATE | {"prior": "none"}, 1e-3),
        ("kl_coef", {"min": 1e-4, "max": 1e-1, "log": True, "or": 0}, 0.0),
        ("gae_lambda", {"min": 0.9, "max": 0.999, "logit": True, "or": 1}, 0.95),
        ("batch_size", {"min": 32, "max": 512, "pow2": True}, 256),
        ("ppo_epochs", {"min": 1, "max": 9, "step": 2}, 1),
        ("temperature", {"min": 0.7, "max": 1.2, "step": 0.1}, 1.0),
        ("kl_in", ["loss", "off"], "loss"),
    ],
)
def test_an_axis_written_out_is_read_back(word: str, content: object, base: object) -> None:
    axis = parse_axis(word, content, base)
    again = parse_axis(word, axis_in_words(axis), "another base")
    assert (again.kind, again.low, again.high, again.scale, again.step, again.values, again.other) == (
        axis.kind, axis.low, axis.high, axis.scale, axis.step, axis.values, axis.other,
    )  # fmt: skip
    if axis.prior is None:
        assert again.prior is None
    else:
        assert again.prior == Prior(pytest.approx(axis.prior.center))
