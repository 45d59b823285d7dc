"""`space: default` and `lever: default`: which levers, and which ranges."""

from typing import Any

import pytest

from leverl.backends.leverl import LeverlBackend
from leverl.config.loader import recipes
from leverl.errors import ConfigError
from leverl.tune.space.default_space import default_range
from leverl.tune.space.priors import Prior
from leverl.tune.space.space import Space, build, key


def default(recipe: str = "grpo", **settings: Any) -> Space:
    backend = LeverlBackend(recipe, settings)
    return build("default", [], backend.base, backend.resolve)


def names(space: Space) -> list[str]:
    return [axis.name for axis in space.axes]


def test_grpo_searches_the_levers_that_matter() -> None:
    space = default()
    assert names(space) == ["actor_learning_rate", "kl_coef", "clip_range", "ppo_epochs", "group_size"]
    assert space.left_out == {
        "critic_learning_rate": "only ppo has a critic",
        "gae_lambda": "only ppo has a critic",
    }


def test_ppo_has_a_critic_and_no_groups() -> None:
    space = default("ppo")
    assert set(names(space)) >= {"critic_learning_rate", "gae_lambda", "clip_range"}
    assert "group_size" not in names(space)
    assert "does not compare" in space.left_out["group_size"]


@pytest.mark.parametrize("recipe", recipes())
def test_the_base_of_every_recipe_lies_inside(recipe: str) -> None:
    settings: dict[str, Any] = {"task": "add"} if recipe == "grpo-llm" else {}
    space = default(recipe, **settings)
    assert 4 <= len(space.axes) <= 6
    assert space.fill(space.base_params()) is not None
    for axis in space.axes:
        assert axis.prior == Prior(pytest.approx(axis.unit(space.base[axis.name])))


def test_a_lever_that_another_one_brings_to_life_stays() -> None:
    space = default(mini_batch_size=256)  # one update per rollout: clipping acts from ppo_epochs = 2 on
    assert "clip_range" in names(space)
    whole = {axis.name: axis.middle() for axis in space.axes}
    once = space.admit({**whole, "ppo_epochs": 1}).params
    twice = space.admit({**whole, "ppo_epochs": 2}).params
    assert once is not None
    assert twice is not None
    assert "clip_range" not in once
    assert "clip_range" in twice


def test_a_lever_without_effect_anywhere_is_left_out_with_the_reason() -> None:
    space = default(kl_in="off")
    assert "kl_coef" not in names(space)
    assert space.left_out["kl_coef"] == "kl_in is off"


def test_it_is_the_same_each_time_and_after_being_written_out() -> None:
    backend = LeverlBackend("ppo", {})
    first = build("default", [], backend.base, backend.resolve)
    again = build(first.in_words(), [], backend.base, backend.resolve)
    assert first.axes == default("ppo").axes
    assert first.distributions() == again.distributions()


def test_one_lever_can_be_default_beside_others() -> None:
    backend = LeverlBackend("grpo", {})
    space = build({"lr": "default", "ppo_epochs": [1, 2]}, [], backend.base, backend.resolve)
    assert (space.axes[0].low, space.axes[0].high, space.axes[0].scale) == (5e-5, 5e-3, "log")
    assert space.left_out == {}


def test_any_other_word_is_refused() -> None:
    backend = LeverlBackend("grpo", {})
    with pytest.raises(ConfigError, match="space = 'defualt' must be 'default'"):
        build("defualt", [], backend.base, backend.resolve)
    with pytest.raises(ConfigError, match="top_p has no range of its own"):
        build({"top_p": "default"}, [], backend.base, backend.resolve)


@pytest.mark.parametrize(
    ("word", "base", "expected"),
    [
        # log: as described, if the base lies well inside; else around the base
        ("actor_learning_rate", 1e-6, {"min": 1e-7, "max": 1e-5, "log": True}),
        ("actor_learning_rate", 5e-4, {"min": 5e-5, "max": 5e-3, "log": True}),
        ("actor_learning_rate", 9e-6, {"min": 9e-7, "max": 9e-5, "log": True}),
        ("actor_learning_rate", 0.3, {"min": 0.03, "max": 0.6, "log": True}),  # ≥ 1 is not allowed
        ("kl_coef", 0.0, {"min": 1e-4, "max": 1e-1, "log": True, "or": 0}),
        ("kl_coef", 1e-3, {"min": 1e-4, "max": 1e-1, "log": True, "or": 0}),
        ("kl_coef", 0.1, {"min": 0.01, "max": 1.0, "log": True, "or": 0}),
        ("entropy_coef", -0.1, {"min": 1e-4, "max": 1e-2, "log": True, "or": 0}),  # has no logarithm
        # other scales: widened
        ("ppo_epochs", 8, {"min": 1, "max": 8}),
        ("temperature", 0.5, {"min": 0.5, "max": 1.2}),
        ("group_size", 2, {"min": 2, "max": 32, "pow2": True}),
        ("gae_lambda", 0.5, {"min": 0.5, "max": 0.999, "logit": True, "or": 1}),
        ("gae_lambda", 0.0, {"min": 0.9, "max": 0.999, "logit": True, "or": 1}),  # has no logit
        ("clip_range_high", None, {"min": 0.2, "max": 0.4}),
        # sizes that are no power of two
        ("batch_size", 192, [48, 96, 192, 384, 768]),
        ("group_size", 6, [3, 6, 12, 24]),
        # words
        ("kl_in", "off", ["reward", "loss", "off"]),
        (
            "loss_aggregation",
            "seq_mean_token_sum",
            ["token_mean", "seq_mean_token_mean", "token_sum_norm", "seq_mean_token_sum"],
        ),
    ],
)
def test_default_ranges(word: str, base: Any, expected: Any) -> None:
    found = default_range(word, base)
    if isinstance(expected, dict):
        assert found == pytest.approx(expected)
    else:
        assert found == expected


def test_a_sampled_default_can_run() -> None:
    import numpy as np

    space = default("ppo", mini_batch_size=256)
    found = space.sample(np.random.default_rng(0), 30)
    assert len({key(params) for params in found}) > 25
    assert all(space.resolve(params).config.algorithm.name == "ppo" for params in found)
