"""What is written to a run's folder loads to the same configuration."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from leverl.config import loader
from leverl.config.loader import dump, load
from leverl.config.schema import Config
from leverl.errors import ConfigError


def again(config: Config, folder: Path) -> Config:
    file = folder / "config.yaml"
    file.write_text(dump(config, "two\nlines"), encoding="utf-8")
    return load(file).config


@pytest.mark.parametrize("recipe", loader.recipes())
def test_packaged_recipe(recipe: str, tmp_path: Path) -> None:
    config = load(recipe).config
    assert again(config, tmp_path) == config


def test_recipes_are_the_files_in_the_package() -> None:
    assert {"grpo", "rloo", "ppo", "dr-grpo", "grpo-llm", "demo"} <= set(loader.recipes())


TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=8),
    st.sampled_from(
        ["1e5", "-1.5E-3", "1_0", "0x1f", "yes", "null", "~", "1:30", "${a}", r"\${b}", r"\\${c}", "$"]
    ),
)
CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "seed": st.integers(0, 2**31),
    "algorithm": st.sampled_from(["grpo", "rloo", "ppo"]),
    "actor_learning_rate": st.floats(1e-12, 0.999),
    "kl_coef": st.floats(0, 10),
    "kl_in": st.sampled_from(["reward", "loss", "off"]),
    "clip_range": st.floats(1e-6, 0.999),
    "clip_range_high": st.none() | st.floats(1.0),
    "actor_grad_clip": st.floats(1e-3),
    "entropy_coef": st.floats(-1, 1),
    "temperature": st.floats(1e-3, 10) | st.integers(1, 10),
    "group_size": st.sampled_from([1, 2, 4, 8]),
    "batch_size": st.sampled_from([8, 64, 256, 512]),
    "rollout_micro_batch_size": st.sampled_from([8, 16]),
    "mini_batch_size": st.sampled_from([8, 64, 128]),
    "ppo_epochs": st.integers(1, 4),
    "loss_aggregation": st.sampled_from(["token_mean", "seq_mean_token_sum", "token_sum_norm"]),
    "task": st.sampled_from(["sort", "echo", "reasoning_gym:chain_sum"]),
    "task_args": st.dictionaries(
        TEXT, st.booleans() | st.integers() | st.floats(-1e9, 1e9) | TEXT, max_size=2
    ),
    "train_files": st.lists(TEXT, min_size=1, max_size=2),
    "prompt_key": TEXT,
    "model": TEXT,
    "shuffle": st.booleans(),
    "steps": st.integers(1, 10**9),
}


@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(values=st.fixed_dictionaries({}, optional=CHOICES))
def test_any_configuration(values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        config = load("grpo", values).config
    except ConfigError:
        assume(False)
    else:
        assert again(config, tmp_path_factory.mktemp("round-trip")) == config
