"""Settings that exclude each other, and settings that do nothing."""

from pathlib import Path

import pytest

from leverl.config import combinations, loader, tree
from leverl.config.loader import load
from leverl.errors import ConfigError
from leverl.vocabulary.catalog import by_path

FILES = ("train_files=[a.jsonl]",)
GYM = ("task=reasoning_gym:chain_sum",)
HUGGING_FACE = ("model=some/model", "actor_learning_rate=1e-6")
FUNCTION = ("reward=function", "function_path=reward.py")
ONE_UPDATE = ("mini_batch_size=256",)

# Path → setting, context (recipe, more settings) in which it does nothing, context in which it acts.
Context = tuple[str, tuple[str, ...]]
CASES: dict[str, tuple[str, Context, Context]] = {
    "algorithm.scale_by_std": ("scale_by_std=false", ("rloo", ()), ("grpo", ())),
    "algorithm.whiten_advantages": ("whiten_advantages=false", ("grpo", ()), ("ppo", ())),
    "algorithm.gamma": ("gamma=0.9", ("rloo", ()), ("ppo", ())),
    "algorithm.gae_lambda": ("gae_lambda=0.9", ("grpo", ()), ("ppo", ())),
    "algorithm.clip_range": ("clip_range=0.1", ("grpo", ONE_UPDATE), ("grpo", ())),
    "algorithm.clip_range_high": ("clip_range_high=0.28", ("grpo", ONE_UPDATE), ("grpo", ())),
    "algorithm.dual_clip": ("dual_clip=3", ("grpo", ONE_UPDATE), ("grpo", (*ONE_UPDATE, "ppo_epochs=2"))),
    "algorithm.kl_coef": ("kl_coef=0.1", ("grpo", ("kl_in=off",)), ("grpo", ())),
    "algorithm.kl_estimator": ("kl_estimator=k3", ("rloo", ()), ("grpo", ())),
    "data.length": ("length=4", ("grpo", ("task=echo",)), ("grpo", ("task=copy",))),
    "data.task_args": ("task_args={max_terms: 3}", ("grpo", ()), ("grpo", GYM)),
    "data.train_size": ("train_size=10", ("grpo", FILES), ("grpo", ())),
    "data.data_seed": ("data_seed=1", ("grpo", FILES), ("grpo", ())),
    "data.prompt_style": ("prompt_style=instruct", ("grpo", GYM), ("grpo", ())),
    "data.prompt_key": ("prompt_key=question", ("grpo", ()), ("grpo", FILES)),
    "reward.function_path": ("function_path=reward.py", ("grpo", ()), ("grpo", ("reward=function",))),
    "reward.function_name": ("function_name=score", ("grpo", ()), ("grpo", FUNCTION)),
    "evaluation.samples": ("eval_samples=4", ("grpo", ()), ("grpo", ("eval_temperature=0.5",))),
    "critic.value_clip": ("value_clip=0.1", ("ppo", ONE_UPDATE), ("ppo", ())),
    "critic.learning_rate": ("critic_learning_rate=1e-5", ("grpo", ()), ("ppo", ())),
    "critic.weight_decay": ("critic_weight_decay=0.1", ("grpo", ()), ("ppo", ())),
    "critic.beta1": ("critic_beta1=0.8", ("grpo", ()), ("ppo", ())),
    "critic.beta2": ("critic_beta2=0.9", ("grpo", ()), ("ppo", ())),
    "critic.epsilon": ("critic_epsilon=1e-6", ("grpo", ()), ("ppo", ())),
    "critic.grad_clip": ("critic_grad_clip=0.5", ("grpo", ()), ("ppo", ())),
    "critic.warmup_steps": ("critic_warmup_steps=3", ("grpo", ()), ("ppo", ())),
    "critic.schedule": ("critic_schedule=cosine", ("grpo", ()), ("ppo", ())),
    "model.embedded.hidden_size": ("embedded_hidden_size=32", ("grpo", HUGGING_FACE), ("grpo", ())),
    "model.embedded.layers": ("embedded_layers=1", ("grpo", HUGGING_FACE), ("grpo", ())),
    "model.embedded.heads": ("embedded_heads=2", ("grpo", HUGGING_FACE), ("grpo", ())),
    "model.embedded.alphabet": ("embedded_alphabet=ascii", ("grpo", HUGGING_FACE), ("grpo", ())),
    "model.embedded.init_seed": ("embedded_init_seed=1", ("grpo", HUGGING_FACE), ("grpo", ())),
    "model.embedded.warm_start_steps": ("embedded_warm_start_steps=5", ("grpo", HUGGING_FACE), ("grpo", ())),
}


def test_every_rule_has_a_case() -> None:
    assert CASES.keys() == combinations.INERT.keys()
    assert CASES.keys() <= tree.leaves().keys()


@pytest.mark.parametrize("path", CASES)
def test_setting_of_the_user_that_does_nothing_is_refused(path: str) -> None:
    setting, (recipe, more), _ = CASES[path]
    with pytest.raises(ConfigError) as caught:
        load(recipe, [setting, *more])
    message = str(caught.value)
    assert message.startswith(f"overrides: {by_path(path).name} = ")
    assert "would have no effect: " in message


@pytest.mark.parametrize("path", CASES)
def test_the_same_setting_where_it_acts(path: str) -> None:
    setting, _, (recipe, more) = CASES[path]
    loaded = load(recipe, [setting, *more])
    assert path in loaded.set_by_user
    assert combinations.inert(loaded.config, path) is None


def test_other_ways_to_be_inert() -> None:
    for overrides in (
        ["kl_estimator=k3", "kl_coef=0"],
        ["length=4", *GYM],
        ["length=4", *FILES],
        ["prompt_style=bare", *FILES],
        ["value_clip=0.1"],
    ):
        with pytest.raises(ConfigError, match="would have no effect"):
            load("grpo", overrides)


def test_even_the_default_value_is_refused_when_it_is_typed() -> None:
    with pytest.raises(ConfigError, match=r"gamma = 1\.0 would have no effect: only ppo has a critic"):
        load("grpo", ["gamma=1.0"])


def test_in_a_file_the_default_value_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("extends: grpo\ngamma: 1.0\n", encoding="utf-8")
    assert load(file).config.algorithm.gamma == 1.0
    file.write_text("extends: grpo\ngamma: 0.9\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"gamma = 0\.9 would have no effect"):
        load(file)


def test_what_a_recipe_sets_is_no_mistake_of_the_user() -> None:
    assert load("ppo", ["algorithm=grpo", "group_size=8"]).config.algorithm.gae_lambda == 0.95


def test_complete_configuration_with_inert_settings_loads_again(tmp_path: Path) -> None:
    """Runs and trials start from dumped files; what is inert in them nobody typed."""
    config = load("grpo-llm", ["model=some/model", *FILES]).config
    file = tmp_path / "trial.yaml"
    file.write_text(loader.dump(config), encoding="utf-8")
    assert load(file).config == config


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["group_size=1"], r"algorithm = grpo .* group_size = 1\. Set group_size ≥ 2, or algorithm=ppo"),
        (["algorithm=rloo", "group_size=1"], "algorithm = rloo"),
        (["kl_estimator=k1"], "kl_estimator = k1 has an expected gradient of zero"),
        (["clip_range_high=0.1"], r"clip_range_high = 0\.1 is below clip_range = 0\.2"),
        (["embedded_heads=5"], "embedded_hidden_size = 64 is not a multiple of 2 × embedded_heads = 10"),
        (["task=null"], "nothing to train on"),
        (["eval_files=[a.jsonl]"], r"data\.eval_files needs data\.train_files"),
        (["reward=function"], r"reward = function needs reward\.function_path"),
    ],
)
def test_impossible_combinations(overrides: list[str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load("grpo", overrides)


def test_one_response_per_prompt_is_fine_with_a_critic() -> None:
    assert load("ppo").config.rollout.group_size == 1


@pytest.mark.parametrize(
    ("overrides", "needed"),
    [
        ([], True),
        (["kl_in=off"], False),
        (["kl_coef=0"], False),
        (["kl_in=off", "reference=always"], True),
        (["kl_in=reward"], True),
    ],
)
def test_when_a_reference_is_needed(overrides: list[str], needed: bool) -> None:
    assert combinations.needs_reference(load("grpo", overrides).config) is needed
