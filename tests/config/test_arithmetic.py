"""Batch arithmetic: any two sizes fix the third, and what the user writes beats what is below."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leverl.config import arithmetic, loader
from leverl.config.arithmetic import BATCH, COUNT, MICRO, MINI, complete
from leverl.config.loader import load
from leverl.errors import ConfigError


def sizes(source: str | Path, *overrides: str) -> tuple[int, int, int, int]:
    """batch, sampler call, number of calls, mini-batch."""
    config = load(source, overrides).config
    rollout = config.rollout
    return (
        rollout.batch_size,
        rollout.rollout_micro_batch_size,
        rollout.num_rollout_batches,
        config.algorithm.mini_batch_size,
    )


@pytest.mark.parametrize(
    "given_two",
    [
        {BATCH: 128, MICRO: 16},
        {BATCH: 128, COUNT: 8},
        {MICRO: 16, COUNT: 8},
        {BATCH: 128, MICRO: 16, COUNT: 8},
    ],
)
def test_any_two_fix_the_third(given_two: dict[str, int]) -> None:
    assert complete([given_two]) == {BATCH: 128, MICRO: 16, COUNT: 8, MINI: 128}


def test_one_alone() -> None:
    assert complete([{BATCH: 96}]) == {BATCH: 96, MICRO: 96, COUNT: 1, MINI: 96}
    assert complete([{MICRO: 16}])[BATCH] == 16
    assert complete([{COUNT: 4}])[COUNT] == 4
    assert complete([]) == complete([{}])


def test_three_that_disagree_are_all_named() -> None:
    with pytest.raises(ConfigError) as caught:
        complete([{BATCH: 128, MICRO: 16, COUNT: 4}])
    message = str(caught.value)
    for part in (
        "batch_size = 128",
        "rollout_micro_batch_size = 16",
        "num_rollout_batches = 4",
        "16 × 4 = 64",
    ):
        assert part in message


def test_sampler_call_that_does_not_divide_the_batch() -> None:
    with pytest.raises(ConfigError, match=r"batch_size = 256 .* rollout_micro_batch_size = 100 .* 64, 128\."):
        load("grpo", ["rollout_micro_batch_size=100"])
    with pytest.raises(ConfigError, match=r"num_rollout_batches = 300 .*Nearest that fit: 256\."):
        load("grpo", ["num_rollout_batches=300"])


def test_users_keys_beat_the_recipes() -> None:
    assert sizes("grpo") == (256, 256, 1, 128)
    assert sizes("grpo", "rollout_micro_batch_size=32") == (256, 32, 8, 128)
    assert sizes("grpo", "num_rollout_batches=4") == (256, 64, 4, 128)
    assert sizes("grpo", "rollout_micro_batch_size=16", "num_rollout_batches=8")[:3] == (128, 16, 8)


def test_users_batch_beats_a_complete_configuration(tmp_path: Path) -> None:
    """A run's config.yaml sets all three sizes; a fork may still change one."""
    file = tmp_path / "config.yaml"
    file.write_text(loader.dump(load("grpo", ["rollout_micro_batch_size=64"]).config), encoding="utf-8")
    assert sizes(file) == (256, 64, 4, 128)
    assert sizes(file, "batch_size=512") == (512, 64, 8, 256)
    assert sizes(file, "batch_size=32") == (32, 32, 1, 16)
    assert sizes(file, "batch_size=80") == (80, 40, 2, 40)
    assert sizes(file, "num_rollout_batches=2") == (256, 128, 2, 128)


def test_number_of_calls_from_below_gives_way_to_a_new_batch() -> None:
    assert complete([{BATCH: 256, COUNT: 8}, {BATCH: 250}])[COUNT] == 5


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (("batch_size=512",), 256),  # two mini-batches below, two above
        (("batch_size=64",), 32),
        (("rollout_micro_batch_size=16", "num_rollout_batches=4"), 32),
        (("batch_size=512", "mini_batch_size=128"), 128),  # said is said
        (("mini_batch_size=64",), 64),
        (("rollout_micro_batch_size=64",), 128),  # the batch stays
    ],
)
def test_mini_batch_of_the_recipe_is_scaled_with_the_batch(overrides: tuple[str, ...], expected: int) -> None:
    assert sizes("grpo", *overrides)[3] == expected


def test_mini_batch_when_the_number_of_mini_batches_no_longer_fits() -> None:
    assert complete([{BATCH: 12, MINI: 4}, {BATCH: 10}])[MINI] == 5  # three do not fit, two do
    assert complete([{BATCH: 12, MINI: 4}, {BATCH: 7}])[MINI] == 7


def test_batch_that_group_or_mini_batch_does_not_divide() -> None:
    with pytest.raises(
        ConfigError, match=r"batch_size = 256 .* group_size = 7 .*Nearest group_size that fit: 4, 8\."
    ):
        load("grpo", ["group_size=7"])
    with pytest.raises(
        ConfigError, match=r"batch_size = 256 .* mini_batch_size = 100 .*Nearest that fit: 64, 128\."
    ):
        load("grpo", ["mini_batch_size=100"])


@given(
    st.lists(
        st.dictionaries(st.sampled_from([BATCH, MICRO, COUNT, MINI]), st.integers(1, 64), max_size=4),
        max_size=4,
    )
)
def test_whatever_is_completed_agrees(layers: list[dict[str, int]]) -> None:
    try:
        done = complete(layers)
    except ConfigError:
        return
    assert done[BATCH] == done[MICRO] * done[COUNT]
    top: dict[str, int] = {}
    for layer in layers:
        top |= layer
    if layers and BATCH in layers[-1]:
        assert done[BATCH] == top[BATCH]
    if layers and MINI in layers[-1]:
        assert done[MINI] == top[MINI]
    assert complete([done]) == done


def test_description_in_plain_words() -> None:
    text = arithmetic.describe(load("grpo", ["rollout_micro_batch_size=64", "ppo_epochs=2"]).config)
    for part in (
        "256 = 4 × 64",
        "32 = 256 ÷ 8",
        "4 = 256 ÷ 128 × 2",
        "51200 in 200 steps",
        "1536 rollout tokens",
    ):
        assert part in text
    assert "seconds per policy version: 1.50 s" in arithmetic.describe(load("grpo").config, 1.5)
