"""The levers: one for each setting, found by every name users type, described completely."""

import re
import types
from collections import Counter
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from leverl.config.schema import Config
from leverl.errors import ConfigError
from leverl.vocabulary import catalog
from leverl.vocabulary.catalog import LEVERS, by_name, by_path
from leverl.vocabulary.lever import Lever, SearchRange


def _leaves(model: type[BaseModel], prefix: str = "") -> dict[str, tuple[type[BaseModel], str]]:
    found: dict[str, tuple[type[BaseModel], str]] = {}
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= _leaves(kind, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = (model, name)
    return found


LEAVES = _leaves(Config)


def _value_types(path: str) -> set[Any]:
    model, name = LEAVES[path]
    kind = model.model_fields[name].annotation
    if get_origin(kind) in (Union, types.UnionType):
        return set(get_args(kind)) - {type(None)}
    return {kind}


def _is_number(path: str) -> bool:
    return bool(_value_types(path) & {int, float})


def test_every_setting_has_exactly_one_lever():
    assert Counter(lever.path for lever in LEVERS) == Counter(list(LEAVES))


def test_no_word_means_two_levers():
    words = Counter(word for lever in LEVERS for word in {lever.path, lever.name, *lever.aliases})
    assert [word for word, count in words.items() if count > 1] == []
    for lever in LEVERS:
        assert len({lever.name, *lever.aliases}) == 1 + len(lever.aliases)


def test_an_alias_is_never_the_last_part_of_another_lever():
    exceptions = {"learning_rate": "actor.learning_rate", "epsilon": "algorithm.clip_range"}
    for lever in LEVERS:
        for word in (lever.name, *lever.aliases):
            others = [path for path in LEAVES if path.rsplit(".", 1)[-1] == word and path != lever.path]
            if others and word != "temperature":
                assert exceptions.get(word) == lever.path, (word, others)


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_a_lever_is_described(lever: Lever):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", lever.name)
    assert lever.text.endswith(".")
    assert re.search(r"[\u4e00-\u9fff]", lever.zh)
    assert lever.effect in ("learning", "cost", "logging")
    for text in (lever.text, lever.too_low, lever.too_high, lever.advice):
        assert "  " not in text
        assert text == "" or text[-1] in ".)"
    if lever.effect == "learning" and _is_number(lever.path) and not lever.name.endswith("seed"):
        assert lever.too_low
        assert lever.too_high


def _accepts(path: str, value: Any) -> None:
    """The schema's own bounds decide: validating the section with only this value raises outside them."""
    model, name = LEAVES[path]
    model.model_validate({name: value})


@pytest.mark.parametrize("lever", [lever for lever in LEVERS if lever.search], ids=lambda lever: lever.name)
def test_the_search_range_lies_within_the_schema(lever: Lever):
    search = lever.search
    assert isinstance(search, SearchRange)
    if search.scale == "categorical":
        assert len(search.values) > 1
        for value in search.values:
            _accepts(lever.path, value)
        return
    assert search.low is not None
    assert search.high is not None
    assert search.low < search.high
    whole = _value_types(lever.path) == {int}
    assert whole == (search.scale in ("int", "pow2"))
    for bound in (search.low, search.high):
        _accepts(lever.path, int(bound) if whole else bound)
        assert search.scale != "pow2" or int(bound) & (int(bound) - 1) == 0
        assert search.scale != "logit" or 0 < bound < 1
    beside = [] if search.other is None else [search.other]
    for value in beside:
        assert not search.low <= value <= search.high
    for value in [*beside, *([] if search.recommended is None else [search.recommended])]:
        _accepts(lever.path, int(value) if whole else float(value))
        assert value == search.other or search.low <= value <= search.high


def test_zero_is_a_value_beside_the_range():
    assert SearchRange("log", 1e-4, 1e-1, other=0).zero
    assert not SearchRange("logit", 0.9, 0.999, other=1).zero
    assert not SearchRange("linear", 0.7, 1.2).zero


def test_choices_of_a_search_are_the_schema_s():
    estimators = set(get_args(next(iter(_value_types("algorithm.name")))))
    assert get_origin(next(iter(_value_types("algorithm.name")))) is Literal
    search = by_name("algorithm").search
    assert search is not None
    assert set(search.values) == estimators


def test_effects_that_other_parts_rely_on():
    assert {lever.name for lever in LEVERS if lever.effect == "cost"} == {
        "rollout_micro_batch_size",
        "num_rollout_batches",
        "micro_batch_tokens",
        "threads",
        "device",
        "reference",
    }
    for lever in LEVERS:
        if lever.path.startswith("evaluation."):
            assert lever.effect == "logging"


@pytest.mark.parametrize(
    ("word", "path"),
    [
        # the articles' names
        ("rollout_micro_batch_size", "rollout.rollout_micro_batch_size"),
        ("num_rollout_batches", "rollout.num_rollout_batches"),
        ("kl_coef", "algorithm.kl_coef"),
        ("clip_range", "algorithm.clip_range"),
        ("actor_learning_rate", "actor.learning_rate"),
        ("critic_learning_rate", "critic.learning_rate"),
        ("max_prompt_length", "data.max_prompt_length"),
        ("max_response_length", "rollout.max_response_length"),
        ("learning_rate", "actor.learning_rate"),
        ("lr", "actor.learning_rate"),
        ("ppo_epochs", "algorithm.ppo_epochs"),
        ("batch_size", "rollout.batch_size"),
        ("model", "model.path"),
        # verl's and TRL's
        ("clip_ratio", "algorithm.clip_range"),
        ("kl_loss_coef", "algorithm.kl_coef"),
        ("beta", "algorithm.kl_coef"),
        ("epsilon", "algorithm.clip_range"),
        ("epsilon_high", "algorithm.clip_range_high"),
        ("num_generations", "rollout.group_size"),
        ("n", "rollout.group_size"),
        ("max_completion_length", "rollout.max_response_length"),
        ("lam", "algorithm.gae_lambda"),
        # short names
        ("temperature", "rollout.temperature"),
        ("eval_temperature", "evaluation.temperature"),
        ("eval_every", "evaluation.every"),
        ("actor_epsilon", "actor.epsilon"),
        ("embedded_layers", "model.embedded.layers"),
        ("algorithm", "algorithm.name"),
        ("reward", "reward.kind"),
        ("seed", "seed"),
        ("algorithm.kl_coef", "algorithm.kl_coef"),
    ],
)
def test_found_by_name_alias_and_path(word: str, path: str):
    assert by_name(word).path == path
    assert catalog.is_lever(word)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("kl_ceof", "Did you mean 'kl_coef'?"),
        ("actor_learning_rat", "Did you mean 'actor_learning_rate'?"),
        ("algorithm.clip_rang", "Did you mean 'algorithm.clip_range'?"),
        # a word of two sections, a word that counts something else, another framework's key
        ("weight_decay", "Write actor_weight_decay or critic_weight_decay."),
        ("train_batch_size", "Here it is batch_size; what its values mean can differ"),
        ("data.train_batch_size", "Here it is batch_size; what its values mean can differ"),
        ("ppo_mini_batch_size", "Here it is mini_batch_size; what its values mean can differ"),
        ("max_grad_norm", "Here it is actor_grad_clip;"),
        ("num_iterations", "Here it is ppo_epochs;"),
        ("save_path", "A run's folder is chosen with --name and --out."),
        ("rollout_batch_size", "Write rollout_micro_batch_size"),
        ("xyzzy", "`leverl levers` lists all."),
    ],
)
def test_an_unknown_word_is_refused_with_a_hint(word: str, says: str):
    assert not catalog.is_lever(word)
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        by_name(word)
    assert f"'{word}'" in str(caught.value)


def test_by_path_takes_only_paths():
    assert by_path("actor.learning_rate").name == "actor_learning_rate"
    with pytest.raises(ConfigError, match=re.escape("Did you mean 'algorithm.kl_coef'?")):
        by_path("algorithm.kl_coeff")
    with pytest.raises(ConfigError, match="unknown path 'kl_coef'"):
        by_path("kl_coef")


def test_verl_keys_that_have_to_be_written_together():
    actor = "actor_rollout_ref.actor"
    assert by_name("clip_range").verl == (
        f"{actor}.clip_ratio",
        f"{actor}.clip_ratio_low",
        f"{actor}.clip_ratio_high",
    )
    assert by_name("kl_in").verl == ("algorithm.use_kl_in_reward", f"{actor}.use_kl_loss")
    assert by_name("kl_coef").verl == ("algorithm.kl_ctrl.kl_coef", f"{actor}.kl_loss_coef")
    dead = {
        f"{actor}.grad_clip",
        "critic.grad_clip",
        "custom_reward_function.path",
        "reward_model.reward_manager",
    }
    assert not dead & {key for lever in LEVERS for key in lever.verl}


def test_corrected_advice_keeps_the_article_s_own():
    corrected = (
        "rollout_micro_batch_size num_rollout_batches kl_coef clip_range actor_learning_rate "
        "critic_learning_rate max_prompt_length max_response_length ppo_epochs batch_size"
    )
    for name in corrected.split():
        assert "article" in by_name(name).advice
