"""Constraints when sampling: draws, points of the cube and repairs keep them."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leverl.backends.leverl import LeverlBackend
from leverl.errors import ConfigError
from leverl.tune.samplers._draw import random_new
from leverl.tune.space.axis import Axis
from leverl.tune.space.expressions import parse
from leverl.tune.space.space import Space, build, free, key

SIZES: dict[str, Any] = {
    "batch_size": {"min": 32, "max": 4096, "pow2": True},
    "mini_batch_size": {"min": 8, "max": 4096, "pow2": True},
    "group_size": {"min": 2, "max": 1024, "pow2": True},
    "actor_learning_rate": {"min": 1e-5, "max": 1e-2, "log": True},
}
TIGHT = ["mini_batch_size * 32 == batch_size", "batch_size / group_size == 16"]


def make(space: dict[str, Any], constraints: list[str]) -> Space:
    backend = LeverlBackend("grpo", {})
    return build(space, constraints, backend.base, backend.resolve)


def grid(*constraints: str, **ranges: tuple[int, int]) -> Space:
    axes = [Axis(name, kind="int", low=low, high=high) for name, (low, high) in ranges.items()]
    return free(axes, [parse(text) for text in constraints])


def test_constraints_that_hardly_anything_keeps() -> None:
    space = make(SIZES, TIGHT)
    assert space.size is None
    found = space.sample(np.random.default_rng(0), 40)
    for params in found:
        rollout = space.resolve(params).config.rollout
        assert params["mini_batch_size"] * 32 == rollout.batch_size == 16 * rollout.group_size  # type: ignore[operator]
    assert len({params["batch_size"] for params in found}) == 5  # all there are


def test_draws_are_those_of_rejection_only_faster() -> None:
    space = grid("a * b <= 8", "c >= a", a=(1, 4), b=(1, 4), c=(1, 3), d=(0, 1))
    generator = np.random.default_rng(1)
    drawn = Counter(key(space.draw(generator)) for _ in range(6000))
    admissible = {key(cell) for cell in space.cells() if space.admit(cell).params is not None}
    assert drawn.keys() == admissible
    expected = 6000 / len(admissible)
    assert sum((count - expected) ** 2 / expected for count in drawn.values()) < 2 * len(admissible)


def test_uneven_cells_keep_their_weight() -> None:
    axes = [
        Axis("a", kind="int", low=1, high=8, scale="log", other=0),
        Axis("b", kind="int", low=0, high=1),
    ]
    space = free(axes, [parse("a != 3 or b == 0")])
    generator = np.random.default_rng(2)
    share = sum(space.draw(generator)["a"] == 0 for _ in range(4000)) / 4000
    lost = 0.5 * axes[0].share(3)
    assert share == pytest.approx(0.25 / (1 - lost), abs=0.03)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_points_of_the_cube_keep_constraints_on_countable_levers(units: list[float]) -> None:
    space = _GRID
    params = space.at(units)
    assert space.admit(params).params is not None
    assert params["d"] == space.axes[3].at(units[3])  # free levers are where they would be


_GRID = grid("(a + b) % 7 == 3", "b > c", a=(1, 9), b=(1, 9), c=(0, 4), d=(0, 9))


def test_an_even_spread_stays_even() -> None:
    space = grid("a <= b", a=(0, 9), b=(0, 9))
    steps = [(i + 0.5) / 40 for i in range(40)]
    found = Counter(key(space.at((x, y))) for x in steps for y in steps)
    assert len(found) == 55
    assert max(found.values()) < 2.5 * min(found.values())


def test_constraints_over_floats_are_drawn_without_resolving() -> None:
    resolved: list[Any] = []
    axes = (Axis("x"), Axis("y"), Axis("n", kind="int", low=1, high=50))
    narrow = free(axes, [parse("x > y * 100"), parse("n % 25 == 0")])

    def resolve(params: Any) -> Any:
        resolved.append(params)
        return narrow.resolve(params)

    space = Space(axes, narrow.constraints, {}, resolve)
    for params in space.sample(np.random.default_rng(0), 20):
        assert params["x"] > 100 * params["y"]  # type: ignore[operator]
        assert params["n"] in (25, 50)
    assert len(resolved) < 25


def test_what_no_values_keep_is_said() -> None:
    with pytest.raises(ConfigError, match=r"can run.*no values of a keep the constraint 'a > 9'"):
        grid("a > 9", a=(0, 4)).sample(np.random.default_rng(0), 1)
    space = free([Axis("x"), Axis("y")], [parse("x + y > 3")])
    with pytest.raises(ConfigError, match="no values of x, y keep"):
        space.draw(np.random.default_rng(0))


def test_what_the_trainer_refuses_everywhere_is_said() -> None:
    space = make({"batch_size": [100, 50], "clip_range": {"min": 0.1, "max": 0.3}}, [])
    with pytest.raises(ConfigError, match=r"no configuration of the space can run.*not a multiple"):
        space.sample(np.random.default_rng(0), 1)


def test_sizes_that_follow_others_are_left_to_the_trainer() -> None:
    backend = LeverlBackend("grpo", {"batch_size": 1024, "rollout_micro_batch_size": 256})
    content = {"batch_size": {"min": 64, "max": 1024, "pow2": True}, "ppo_epochs": {"min": 1, "max": 4}}
    space = build(content, ["num_rollout_batches * ppo_epochs <= 4"], backend.base, backend.resolve)
    assert space.blocks == ()
    found = space.sample(np.random.default_rng(0), 80)
    assert {params["batch_size"] for params in found if params["ppo_epochs"] == 4} == {64, 128, 256}
    assert {params["ppo_epochs"] for params in found if params["batch_size"] == 1024} == {1}


def test_a_large_space_gives_new_configurations_until_it_has_no_more() -> None:
    space = grid("a * b == c", "c == 64", a=(1, 64), b=(1, 64), c=(1, 64))
    tried: set[Any] = set()
    generator = np.random.default_rng(0)
    for _ in range(7):
        params = random_new(space, generator, tried)
        assert params is not None
        tried.add(key(params))
    assert len(tried) == 7
    assert random_new(space, generator, tried) is None


def test_a_repair_is_the_nearest_there_is() -> None:
    space = grid("a * b == 12", a=(1, 12), b=(1, 12))
    for a, b in ((5, 5), (1, 1), (12, 12), (7, 1)):
        wanted = {"a": a, "b": b}
        admissible = [cell for cell in space.cells() if space.admit(cell).params is not None]
        nearest = min(space.distance(cell, wanted) for cell in admissible)
        found = space.repair(wanted)
        assert found is not None
        assert space.distance(found, wanted) == pytest.approx(nearest)


def test_a_repair_of_what_the_trainer_refuses_is_the_nearest_there_is() -> None:
    sizes = {"min": 32, "max": 320, "step": 32}
    space = make({"batch_size": sizes, "mini_batch_size": sizes, "ppo_epochs": {"min": 1, "max": 4}}, [])
    admissible = [cell for cell in space.cells() if space.admit(cell).params is not None]
    for batch, mini in ((224, 96), (96, 128), (320, 192)):
        wanted = {"batch_size": batch, "mini_batch_size": mini, "ppo_epochs": 2}
        assert space.admit(wanted).params is None
        found = space.repair(wanted)
        assert found is not None
        nearest = min(space.distance(cell, wanted) for cell in admissible)
        assert space.distance(found, wanted) == pytest.approx(nearest)


def test_a_repair_leaves_what_is_not_tied() -> None:
    space = make(SIZES, TIGHT)
    wanted = {"batch_size": 512, "mini_batch_size": 64, "group_size": 8, "actor_learning_rate": 3e-4}
    found = space.repair(wanted)
    assert found is not None
    assert found["actor_learning_rate"] == 3e-4
    assert space.admit(found).params == found


def test_what_can_run_is_repaired_to_itself_and_values_outside_are_brought_in() -> None:
    space = make({"ppo_epochs": {"min": 1, "max": 4}, "group_size": {"min": 4, "max": 32, "pow2": True}}, [])
    assert space.repair({"ppo_epochs": 2, "group_size": 8}) == {"ppo_epochs": 2, "group_size": 8}
    assert space.repair({"ppo_epochs": 9, "group_size": 11}) == {"ppo_epochs": 4, "group_size": 8}


def test_floats_are_led_back_to_the_edge() -> None:
    space = free([Axis("x"), Axis("y")], [parse("y >= 2 * x")])
    wanted = {"x": 0.5, "y": 0.6}
    found = space.repair(wanted)
    assert found is not None
    assert found["y"] >= 2 * found["x"]  # type: ignore[operator]
    assert found["y"] == pytest.approx(2 * found["x"], abs=1e-3)  # type: ignore[operator]
    assert space.distance(found, wanted) == pytest.approx(0.4 / 5**0.5, abs=0.05)


def test_a_repair_needs_something_to_repair_to() -> None:
    backend = LeverlBackend("grpo", {"batch_size": 100, "mini_batch_size": 100, "group_size": 10})
    space = build({"group_size": [7, 9]}, [], backend.base, backend.resolve)
    assert space.repair({"group_size": 7}) is None


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_every_point_can_be_repaired(units: list[float]) -> None:
    space = _REPAIRED
    params = {axis.name: axis.at(unit) for axis, unit in zip(space.axes, units, strict=True)}
    found = space.repair(params)
    assert found is not None
    assert space.admit(found).params == found


_REPAIRED = make(SIZES | {"group_size": {"min": 2, "max": 64, "log": True}}, ["batch_size % group_size == 0"])


def test_a_space_without_a_trainer() -> None:
    space = free([Axis("x"), Axis("k", kind="categorical", values=("a", "b"))])
    (params,) = space.sample(np.random.default_rng(0), 1)
    assert space.admit(params).params == params
    assert space.base_params() == {}
    assert space.fill({"x": 0.25}) == {"x": 0.25, "k": "b"}
    assert space.decode(space.encode(params)) == params
    assert space.repair({"x": 2.0, "k": "c"}) == {"x": 1.0, "k": "b"}
    assert space.log_prior(params) == 0.0


def test_its_constraints_name_its_axes() -> None:
    with pytest.raises(ConfigError, match="no axis is called 'xs'"):
        free([Axis("x")], [parse("xs > 0")])
