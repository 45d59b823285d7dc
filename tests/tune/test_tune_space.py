import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leverl.backends.leverl import LeverlBackend
from leverl.errors import ConfigError
from leverl.tune.optuna_log import quiet_optuna
from leverl.tune.space.axis_words import parse_axis
from leverl.tune.space.space import Space, build, key


def make(space: dict[str, Any], constraints: tuple[str, ...] = (), **settings: Any) -> Space:
    backend = LeverlBackend("grpo", {"batch_size": 256, "mini_batch_size": 128, "group_size": 8} | settings)
    return build(space, constraints, backend.base, backend.resolve)


_BASE: dict[str, Any] = {"actor_learning_rate": 1e-3, "ppo_epochs": 1}


def test_aliases_become_short_names() -> None:
    axis = parse_axis("algorithm.kl_coef", {"min": 1e-4, "max": 1e-1, "log": True, "or": 0})
    assert (axis.name, axis.kind, axis.log, axis.other) == ("kl_coef", "float", True, 0.0)


def test_whole_bounds_of_a_whole_lever_are_ints() -> None:
    axis = parse_axis("ppo_epochs", {"min": 1, "max": 4})
    assert axis.kind == "int"
    assert axis.choices() == (1, 2, 3, 4)
    assert parse_axis("temperature", {"min": 1, "max": 2}).kind == "float"


def test_scales_and_steps() -> None:
    assert parse_axis("batch_size", {"min": 32, "max": 512, "pow2": True}).choices() == (
        32,
        64,
        128,
        256,
        512,
    )
    assert parse_axis("ppo_epochs", {"min": 1, "max": 9, "step": 2}).choices() == (1, 3, 5, 7, 9)
    logit = parse_axis("gae_lambda", {"min": 0.9, "max": 0.999, "logit": True, "or": 1})
    assert (logit.scale, logit.other) == ("logit", 1.0)
    assert parse_axis("ppo_epochs", {"min": 2, "max": 8, "step": 2, "or": 1}).choices() == (1, 2, 4, 6, 8)
    assert parse_axis("kl_coef", {"min": 1e-4, "max": 0.1, "log": False}).scale == "linear"


def test_a_list_is_a_choice() -> None:
    assert parse_axis("clip_range", [0.1, 0.2]).values == (0.1, 0.2)
    assert parse_axis("kl_in", {"values": ["loss", "reward"]}).values == ("loss", "reward")


@pytest.mark.parametrize(
    ("word", "content", "message"),
    [
        ("actor_learning_rat", [1e-6], "Did you mean 'actor_learning_rate'"),
        ("actor_learning_rate", {"min": "1e-6", "max": 1e-4}, "without quotes"),
        ("actor_learning_rate", {"min": 0.0, "max": 1e-4}, "must be a number, > 0"),
        ("actor_learning_rate", {"min": 1e-6, "max": 2.0}, "max = 2.0 must be a number"),
        ("actor_learning_rate", {"min": 1e-4, "max": 1e-6}, "must be below max"),
        ("actor_learning_rate", {"min": 1e-4}, "needs min and max"),
        ("actor_learning_rate", {"mn": 1e-4, "max": 1e-3}, "unknown key 'mn'. Did you mean 'min'"),
        ("actor_learning_rate", 1e-4, "must be a range"),
        ("kl_coef", {"min": 0.0, "max": 0.1, "log": True}, "or: 0"),
        ("kl_coef", {"min": 0.01, "max": 0.1, "or": 0.05}, "outside"),
        ("kl_coef", {"values": [0.1], "or": 0}, "stands alone"),
        ("kl_coef", {"min": float("nan"), "max": 0.1}, "not finite"),
        ("ppo_epochs", {"min": 0, "max": 4}, "min = 0 must be a whole number, ≥ 1"),
        ("ppo_epochs", {"min": 1.5, "max": 4}, "whole number"),
        ("ppo_epochs", [], "at least one value"),
        ("ppo_epochs", [1, 1], "listed twice"),
        ("kl_in", ["loss", "los"], "one of reward, loss, off"),
        ("kl_coef", {"min": -6, "max": -1, "distribution": "log_uniform"}, "log_uniform_values"),
        ("kl_in", {"min": "loss", "max": "off"}, "must be a number"),
        ("gae_lambda", {"min": 0.9, "max": 1.0, "logit": True}, "max < 1, found 0.9 and 1.0. To try 0 or 1"),
        (
            "gae_lambda",
            {"min": 0.9, "max": 0.99, "logit": True, "log": True},
            "log and logit exclude each other",
        ),
        (
            "actor_learning_rate",
            {"min": 1e-6, "max": 1e-4, "log": True, "step": 1e-6},
            "step and log exclude",
        ),
        (
            "actor_learning_rate",
            {"min": 1e-6, "max": 1e-4, "log": "yes"},
            "log = 'yes' must be true or false",
        ),
        ("batch_size", {"min": 48, "max": 512, "pow2": True}, "whole powers of two"),
        ("clip_range", {"min": 0.1, "max": 0.4, "pow2": True}, "whole powers of two"),
        ("batch_size", {"min": 32, "max": 512, "pow2": True, "step": 32}, "step and pow2 exclude"),
        ("ppo_epochs", {"min": 1, "max": 8, "step": 2}, "write max: 7"),
        ("ppo_epochs", {"min": 1, "max": 8, "step": "2"}, "step = '2' must be a number"),
        ("ppo_epochs", {"min": 1, "max": 8, "prior": 9}, "prior = 9 must be a number in the range"),
        ("ppo_epochs", {"min": 1, "max": 8, "prior": "five"}, "prior = 'five' must be"),
        ("clip_range", {"values": [0.1, 0.2], "prior": 0.2}, "stands alone"),
    ],
)
def test_wrong_axes_say_what_is_wrong(word: str, content: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_axis(word, content)


def test_what_would_make_scores_incomparable_cannot_be_searched() -> None:
    with pytest.raises(ConfigError, match="steps cannot be searched"):
        make({"steps": [10, 20]})


def test_the_same_lever_twice() -> None:
    with pytest.raises(ConfigError, match="there already"):
        make({"kl_coef": [0.1], "algorithm.kl_coef": [0.2]})


def test_constraints_name_levers() -> None:
    with pytest.raises(ConfigError, match=r"constraint 'kl_cof > 1'.*unknown setting"):
        make({"ppo_epochs": [1, 2]}, ("kl_cof > 1",))


def test_constraints_see_levers_that_are_not_searched_and_sizes_that_follow() -> None:
    space = make(
        {"batch_size": [128, 192, 256]}, ("batch_size // group_size >= 28", "num_rollout_batches == 1")
    )
    admitted = [cell["batch_size"] for cell in space.cells() if space.admit(cell).params]
    assert admitted == [256]
    assert "does not hold for batch_size = 128, group_size = 8" in space.admit({"batch_size": 128}).reason


def test_bounds_on_metrics_are_kept_apart() -> None:
    space = make({"ppo_epochs": [1, 2]}, ("kl_divergence <= 0.1", "ppo_epochs < 2"))
    assert [(bound.metric, bound.bound) for bound in space.metric_constraints] == [("kl_divergence", 0.1)]
    assert [constraint.text for constraint in space.constraints] == ["ppo_epochs < 2"]


def test_what_is_believed_counts_only_levers_with_effect() -> None:
    space = make({"kl_coef": {"min": 1e-4, "max": 1e-2, "log": True}, "clip_range": {"min": 0.1, "max": 0.3}})
    priors = [axis.prior for axis in space.axes]
    assert None not in priors
    near, far = {"kl_coef": 1e-3, "clip_range": 0.2}, {"kl_coef": 1e-2, "clip_range": 0.2}
    assert space.log_prior(near) > space.log_prior(far)
    assert space.log_prior({"kl_coef": 1e-3}) == pytest.approx(space.log_prior(near) / 2)


def test_levers_without_effect_are_dropped() -> None:
    space = make({"clip_range": [0.1, 0.3], "mini_batch_size": [128, 256]})
    assert space.admit({"clip_range": 0.1, "mini_batch_size": 256}).params == {"mini_batch_size": 256}
    assert space.admit({"clip_range": 0.1, "mini_batch_size": 128}).params == {
        "clip_range": 0.1,
        "mini_batch_size": 128,
    }


def test_a_value_beside_the_range_is_a_categorical_of_its_own() -> None:
    space = make({"kl_coef": {"min": 1e-4, "max": 1e-1, "log": True, "or": 0}})
    assert sorted(space.distributions()) == ["kl_coef", "kl_coef.on"]
    assert space.encode({"kl_coef": 0.0}) == {"kl_coef.on": False}
    assert space.encode({"kl_coef": 0.01}) == {"kl_coef.on": True, "kl_coef": 0.01}
    assert space.decode({"kl_coef.on": False, "kl_coef": 0.03}) == {"kl_coef": 0.0}


def test_the_base_may_lie_outside() -> None:
    space = make(
        {"actor_learning_rate": {"min": 1e-2, "max": 1e-1, "log": True}, "ppo_epochs": [1, 2]}, **_BASE
    )
    assert space.base_params() == {"actor_learning_rate": 1e-3, "ppo_epochs": 1}
    assert space.fill(space.base_params()) is None
    assert space.encode(space.base_params()) == {"ppo_epochs": 1}


def test_a_lever_without_effect_takes_the_value_of_the_base() -> None:
    space = make({"clip_range": {"min": 0.1, "max": 0.3}, "ppo_epochs": [1, 2]}, clip_range=0.2)
    assert space.fill({"ppo_epochs": 2}) == {"clip_range": 0.2, "ppo_epochs": 2}


_SPACE = {
    "actor_learning_rate": {"min": 1e-5, "max": 1e-2, "log": True},
    "kl_coef": {"min": 1e-4, "max": 1e-1, "log": True, "or": 0},
    "ppo_epochs": {"min": 1, "max": 4},
    "group_size": {"min": 2, "max": 64, "log": True},
    "kl_in": ["loss", "reward"],
    "scale_by_std": [True, False],
    "mini_batch_size": {"min": 32, "max": 256, "pow2": True},
    "actor_warmup_steps": {"min": 2, "max": 20, "step": 3, "or": 0},
    "gae_lambda": {"min": 0.9, "max": 0.999, "logit": True, "or": 1},
    "temperature": {"min": 0.7, "max": 1.2, "step": 0.1},
    "clip_range": [0.3, 0.1, 0.2],
}
_CUBE = make(_SPACE)
_CONSTRAINED = make(_SPACE, ("group_size >= 4", "batch_size % group_size == 0"))
_UNITS = st.lists(st.floats(0, 1), min_size=len(_SPACE), max_size=len(_SPACE))


@given(_UNITS)
def test_every_point_of_the_cube_is_in_the_space_and_survives_optuna(units: list[float]) -> None:
    space = _CUBE
    params = space.at(units)
    assert all(axis.contains(params[axis.name]) for axis in space.axes)
    encoded = space.encode(params)
    low = {axis.name: axis.low for axis in space.axes if axis.other is not None} | encoded
    assert space.decode(low) == params
    distributions = space.distributions()
    for name, value in encoded.items():
        distribution = distributions[name]
        internal = distribution.to_internal_repr(value)
        assert distribution._contains(internal)
        assert distribution.to_external_repr(internal) == value
    assert space.encode(space.decode(low)) == encoded


def test_what_optuna_proposes_is_in_the_space_and_comes_back() -> None:
    import optuna

    with quiet_optuna():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(50):
            params = _CUBE.decode(study.ask(_CUBE.distributions()).params)
            assert all(axis.contains(params[axis.name]) for axis in _CUBE.axes)
            study.add_trial(
                optuna.trial.create_trial(
                    value=0.0,
                    params=(encoded := _CUBE.encode(params)),
                    distributions={name: _CUBE.distributions()[name] for name in encoded},
                )
            )
    assert {trial.params["mini_batch_size"] for trial in study.trials[1::2]} == {32, 64, 128, 256}


def test_a_resumed_study_has_the_same_distributions() -> None:
    assert make(_SPACE).distributions() == _CUBE.distributions()
    assert make(_CUBE.in_words()).distributions() == _CUBE.distributions()


@given(_UNITS, _UNITS)
def test_distance_is_a_distance(one: list[float], two: list[float]) -> None:
    space = _CUBE
    a, b = space.at(one), space.at(two)
    assert space.distance(a, b) == pytest.approx(space.distance(b, a))
    assert 0 <= space.distance(a, b) <= math.sqrt(len(space.axes)) + 1e-9
    assert (space.distance(a, b) == 0) == (key(a) == key(b))


@settings(max_examples=40)
@given(_UNITS)
def test_what_is_admitted_can_run(units: list[float]) -> None:
    space = _CONSTRAINED
    admitted = space.admit(space.at(units)).params
    if admitted is not None:
        config = space.resolve(admitted).config
        assert config.rollout.group_size >= 4
        assert config.rollout.batch_size % config.rollout.group_size == 0
