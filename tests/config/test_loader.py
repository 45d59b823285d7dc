"""Layers, names, types and messages of `leverl.config.loader`."""

from pathlib import Path

import pytest

from leverl.config import loader, tree
from leverl.config.loader import load
from leverl.config.schema import Config
from leverl.errors import ConfigError
from leverl.vocabulary.catalog import LEVERS


def refusal(source: str | Path = "grpo", *overrides: str) -> str:
    """The message with which `source` and `overrides` are refused."""
    with pytest.raises(ConfigError) as caught:
        load(source, overrides)
    return str(caught.value)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_of_the_recipe() -> None:
    loaded = load()
    assert loaded.source == "grpo"
    assert loaded.config.algorithm.name == "grpo"
    assert loaded.set_by_user == frozenset()


def test_overrides_beat_the_file_and_the_file_beats_its_recipe(tmp_path: Path) -> None:
    file = write(tmp_path / "own.yaml", "extends: grpo\nkl_coef: 0.02\nsteps: 7\n")
    loaded = load(file, ["steps=9"])
    assert (loaded.config.algorithm.kl_coef, loaded.config.train.steps) == (0.02, 9)
    assert loaded.config.data.task == "sort"
    assert loaded.set_by_user == {"algorithm.kl_coef", "train.steps"}


@pytest.mark.parametrize(
    "text",
    [
        "kl_coef: 0.25",
        "algorithm.kl_coef: 0.25",
        "algorithm: {kl_coef: 0.25}",
        "beta: 0.25",
        "algorithm: {kl_coef: 0.25}\nkl_coef: 0.25",
    ],
)
def test_every_spelling_of_a_setting(tmp_path: Path, text: str) -> None:
    assert load(write(tmp_path / "c.yaml", text)).config.algorithm.kl_coef == 0.25


def test_section_and_setting_of_the_same_name(tmp_path: Path) -> None:
    short = load(write(tmp_path / "a.yaml", "algorithm: rloo\nmodel: embedded\nreward: exact\n")).config
    full = load(
        write(tmp_path / "b.yaml", "algorithm: {name: rloo}\nmodel: {path: embedded}\nreward: {kind: exact}")
    )
    assert short == full.config


def test_every_lever_is_accepted_by_name_path_and_alias() -> None:
    for lever in LEVERS:
        for word in (lever.name, lever.path, *lever.aliases):
            assert loader.canonical({word: 1}, "here") == {lever.path: 1}, word


def test_hydra_plus_is_accepted() -> None:
    assert load("grpo", ["+kl_coef=0.02"]).config.algorithm.kl_coef == 0.02


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("kl_coeff_=1", "Did you mean"),
        ("batchsize=1", "Did you mean 'batch_size'?"),
        ("algorithm.kl_ceof=1", "Did you mean"),
    ],
)
def test_unknown_setting_is_answered_with_the_nearest(override: str, expected: str) -> None:
    message = refusal("grpo", override)
    assert message.startswith("overrides: unknown")
    assert override.split("=")[0] in message
    assert expected in message


def test_unknown_key_in_a_section_names_file_and_path(tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", "rollout:\n  temprature: 0.5\n")
    message = refusal(file)
    assert message == f"{file}: unknown key 'rollout.temprature'. Did you mean 'rollout.temperature'?"


def test_word_that_could_mean_several_settings() -> None:
    assert "Write actor_warmup_steps or critic_warmup_steps." in refusal("grpo", "warmup_steps=3")


def test_numbers_with_exponents_are_numbers(tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", "actor_learning_rate: 1e-6\n")
    assert load(file).config.actor.learning_rate == 1e-6
    assert load("grpo", ["actor_learning_rate=1e-6"]).config.actor.learning_rate == 1e-6


def test_quoted_number_is_text_and_the_message_says_so(tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", 'actor_learning_rate: "1e-6"\n')
    assert refusal(file) == (
        f"{file}: actor.learning_rate = '1e-6' must be a number, > 0, < 1. "
        "It is text here; write the number without quotes."
    )


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("group_size=true", "rollout.group_size = True must be a whole number, ≥ 1, ≤ 1024"),
        ("group_size=4.0", "rollout.group_size = 4.0 must be a whole number, ≥ 1, ≤ 1024"),
        ("batch_size=256.0", "rollout.batch_size = 256.0 must be a whole number, ≥ 1"),
        ("mini_batch_size=true", "algorithm.mini_batch_size = True must be a whole number, ≥ 1"),
        ("batch_size=0", "rollout.batch_size = 0 must be a whole number, ≥ 1"),
        ("kl_coef=true", "algorithm.kl_coef = True must be a number, ≥ 0, ≤ 10"),
        ("kl_coef=null", "algorithm.kl_coef = None must be a number, ≥ 0, ≤ 10"),
        ("shuffle=1", "data.shuffle = 1 must be true or false"),
        ("clip_range=1.0", "algorithm.clip_range = 1.0 must be a number, > 0, < 1"),
        ("clip_range=0", "algorithm.clip_range = 0 must be a number, > 0, < 1"),
        ("kl_coef=-0.1", "algorithm.kl_coef = -0.1 must be a number, ≥ 0, ≤ 10"),
        ("gae_lambda=1.5", "algorithm.gae_lambda = 1.5 must be a number, ≥ 0, ≤ 1"),
        ("algorithm=dpo", "algorithm.name = 'dpo' must be one of grpo, rloo, ppo"),
        ("embedded_hidden_size=20", "model.embedded.hidden_size = 20 must be a whole number, multiple of 8"),
        ("train_files=a.jsonl", "data.train_files = 'a.jsonl' must be a list of texts"),
        ("model=3", "model.path = 3 must be text"),
        ("temperature=.nan", "rollout.temperature = nan must be a number, > 0, ≤ 10"),
    ],
)
def test_wrong_type_or_out_of_bounds(override: str, expected: str) -> None:
    message = refusal("grpo", override)
    assert message.startswith("overrides: ")
    for part in expected.split(", multiple"):  # the order of bounds is pydantic's
        assert part in message


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "nan"])
def test_numbers_with_bounds_refuse_what_is_not_finite(value: str) -> None:
    assert "algorithm.kl_coef = " in refusal("grpo", f"kl_coef={value}")


def test_word_off_is_not_false(tmp_path: Path) -> None:
    assert load("grpo", ["kl_in=off"]).config.algorithm.kl_in == "off"
    assert load(write(tmp_path / "c.yaml", "kl_in: off\n")).config.algorithm.kl_in == "off"
    assert load("grpo", {"kl_in": "off"}).config.algorithm.kl_in == "off"
    assert "must be one of reward, loss, off" in refusal("grpo", "kl_in=on")


def test_whole_number_is_fine_where_a_number_is_expected() -> None:
    temperature = load("grpo", ["temperature=2"]).config.rollout.temperature
    assert temperature == 2.0
    assert isinstance(temperature, float)


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", "kl_coef: -1\nclip_range: 2\n")
    assert len(refusal(file).splitlines()) == 2


def test_one_setting_given_twice(tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", "kl_coef: 0.1\nalgorithm: {kl_coef: 0.2}\n")
    assert (
        refusal(file) == f"{file}: 'algorithm.kl_coef' sets algorithm.kl_coef to 0.2, but it is already 0.1."
    )
    assert "already 0.1" in refusal("grpo", "kl_coef=0.1", "beta=0.2")
    assert refusal("grpo", "kl_coef=0.1", "kl_coef=0.2") == "'kl_coef' is set twice: to 0.1 and to 0.2."


@pytest.mark.parametrize("text", ["kl_coef", "=3", "--kl_coef", "--actor-learning-rate"])
def test_override_without_key_or_value(text: str) -> None:
    message = refusal("grpo", text)
    assert f"'{text}' is not of the form key=value." in message
    assert ("Write " in message) == ("c" in text)


@pytest.mark.parametrize("text", ["prompt_key=[", "task_args={a:", "task=a: b: c"])
def test_override_that_is_no_yaml(text: str) -> None:
    assert f"{text} cannot be read" in refusal("grpo", text)


def test_source_that_does_not_exist() -> None:
    message = refusal("grop")
    assert message.startswith("'grop' is neither a recipe, a YAML file nor the folder of a run.")
    assert "Did you mean 'grpo'?" in message
    assert "Recipes: " in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n- b\n", "must hold `key: value` lines"),
        ("a: [", "is not valid YAML"),
        ("a: ${b}", "is not valid YAML"),
    ],
)
def test_file_that_is_no_mapping(tmp_path: Path, text: str, expected: str) -> None:
    file = write(tmp_path / "c.yaml", text)
    message = refusal(file)
    assert str(file) in message
    assert expected in message


def test_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert (
        load(write(tmp_path / "c.yaml", "# nothing yet\n")).config
        == load(write(tmp_path / "d.yaml", "{}")).config
    )


def test_run_folder_is_a_source(tmp_path: Path) -> None:
    config = load("ppo", ["kl_coef=0.02"]).config
    write(tmp_path / "run" / "config.yaml", loader.dump(config))
    assert load(tmp_path / "run").config == config
    assert load(tmp_path / "run", ["kl_coef=0.03"]).config.algorithm.kl_coef == 0.03


def test_files_replace_the_task_of_the_recipe() -> None:
    data = load("grpo", ["train_files=[a.parquet, b.jsonl]"]).config.data
    assert (data.task, data.train_files) == (None, ["a.parquet", "b.jsonl"])
    assert "choose one" in refusal("grpo", "train_files=[a.jsonl]", "task=copy")


def test_pretrained_model_needs_a_learning_rate_of_its_own() -> None:
    message = refusal("grpo", "model=some/model")
    assert f"actor_learning_rate = {load().config.actor.learning_rate:g}" in message
    assert "grpo-llm" in message
    assert load("grpo", ["model=some/model", "actor_learning_rate=1e-6"]).config.model.path == "some/model"
    assert load("grpo-llm", ["model=some/model"]).config.actor.learning_rate == 1e-6


def test_tree_knows_every_setting() -> None:
    flat = tree.flat(Config())
    assert flat.keys() == tree.leaves().keys()
    assert Config.model_validate(tree.nested(flat)) == Config()
    assert tree.allowed("algorithm.clip_range_high") == "a number or null, > 0"
