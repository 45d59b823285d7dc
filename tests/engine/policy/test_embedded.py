import hashlib
from pathlib import Path

import pytest
import torch

from leverl.engine.data.prompt import Prompt
from leverl.engine.inference.native import NativeEngine
from leverl.engine.inference.protocol import SamplingParams
from leverl.engine.policy.embedded import EmbeddedSpec, build_embedded, embedded_path
from leverl.engine.policy.load import load_policy
from leverl.engine.policy.tokenizer import ALPHABETS, character_tokenizer, check_alphabet
from leverl.errors import ConfigError

TINY = EmbeddedSpec(hidden_size=16, layers=1, heads=2)


def digest(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def lesson(text: str) -> Prompt:
    return Prompt(text, ({"role": "user", "content": text},), "echo", text)


LESSONS = tuple(lesson(text) for text in "0123")


def test_the_default_model_is_a_small_qwen2_that_starts_near_uniform(tmp_path):
    build_embedded(tmp_path, EmbeddedSpec())
    policy = load_policy(tmp_path)
    assert type(policy.model).__name__ == "Qwen2ForCausalLM"
    assert 90_000 < sum(p.numel() for p in policy.model.parameters()) < 120_000
    assert policy.vocab_size == policy.model.config.vocab_size == 20
    assert (policy.eos_ids, policy.pad_id) == ((1,), 0)
    logits = policy.model(torch.tensor([[7, 8, 9]])).logits
    assert 0.05 < logits.std() < 0.5  # not uniform, not decided


def test_the_same_spec_gives_the_same_bytes_and_another_seed_others(tmp_path):
    before = torch.get_rng_state()
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        build_embedded(tmp_path / name, EmbeddedSpec(16, 1, 2, init_seed=seed))
    assert torch.equal(torch.get_rng_state(), before)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    assert digest(tmp_path / "a")["model.safetensors"] != digest(tmp_path / "c")["model.safetensors"]


def test_the_cache_is_built_once_and_keyed_by_content(monkeypatch, tmp_path):
    monkeypatch.setenv("LEVERL_HOME", str(tmp_path))
    folder = embedded_path(TINY)
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert embedded_path(TINY) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp
    assert embedded_path(EmbeddedSpec(16, 1, 2, init_seed=1)) != folder
    assert len(list((tmp_path / "embedded").iterdir())) == 2  # nothing temporary is left


def test_a_builder_that_comes_second_takes_the_firsts_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LEVERL_HOME", str(tmp_path))

    def build_while_another_wins(folder: Path, spec: EmbeddedSpec, lessons: object = ()) -> None:
        build_embedded(folder, spec)
        other = tmp_path / "embedded" / folder.name.split(".")[0]
        if not other.exists():
            build_embedded(other, spec)

    monkeypatch.setattr("leverl.engine.policy.embedded.build_embedded", build_while_another_wins)
    folder = embedded_path(TINY)
    assert (folder / "model.safetensors").is_file()
    assert [path.name for path in (tmp_path / "embedded").iterdir()] == [folder.name]


def test_a_warm_start_teaches_and_is_deterministic(tmp_path):
    spec = EmbeddedSpec(32, 1, 2, warm_start_steps=100)
    before = torch.get_rng_state()
    for name in ("a", "b"):
        build_embedded(tmp_path / name, spec, LESSONS)
    assert torch.equal(torch.get_rng_state(), before)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    policy = load_policy(tmp_path / "a")
    prompts = [
        policy.tokenizer(
            policy.tokenizer.apply_chat_template(list(p.messages), tokenize=False, add_generation_prompt=True)
        )["input_ids"]
        for p in LESSONS
    ]
    params = SamplingParams(4, stop_ids=policy.eos_ids)
    found = NativeEngine(policy).generate(prompts, 16, params, seed=0, micro_batch_size=64)
    answers = policy.tokenizer.batch_decode(
        [row[mask] for row, mask in zip(found.responses, found.mask, strict=True)], skip_special_tokens=True
    )
    digits = [answer for answer in answers if len(answer) == 1 and answer in "0123"]
    assert len(digits) > 10  # of 64; 0.6 expected when each of 20 ids is as likely


def test_a_warm_start_is_part_of_the_caches_key(monkeypatch, tmp_path):
    monkeypatch.setenv("LEVERL_HOME", str(tmp_path))
    warm = EmbeddedSpec(16, 1, 2, warm_start_steps=1)
    folders = {embedded_path(TINY), embedded_path(warm, LESSONS), embedded_path(warm, LESSONS[:2])}
    assert len(folders) == 3


def test_a_warm_start_without_lessons_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="warm_start_steps is 5"):
        build_embedded(tmp_path, EmbeddedSpec(warm_start_steps=5))


@pytest.mark.parametrize(
    "spec", [EmbeddedSpec(hidden_size=40, heads=3), EmbeddedSpec(hidden_size=24, heads=8)]
)
def test_a_shape_whose_heads_do_not_fit_is_refused(tmp_path, spec):
    with pytest.raises(ConfigError, match=rf"hidden_size {spec.hidden_size} ÷ heads {spec.heads}"):
        build_embedded(tmp_path, spec)


@pytest.mark.parametrize(("alphabet", "size"), [("digits", 20), ("ascii", 102)])
def test_the_tokenizer_knows_every_character_of_its_alphabet_as_one_id(tmp_path, alphabet, size):
    build_embedded(tmp_path, EmbeddedSpec(16, 1, 2, alphabet))
    tokenizer = load_policy(tmp_path).tokenizer
    assert type(tokenizer) is type(character_tokenizer(64, alphabet))  # AutoTokenizer chooses by model type
    text = ALPHABETS[alphabet]
    ids = tokenizer(text)["input_ids"]
    assert ids == list(range(6, size))
    assert tokenizer.decode(ids) == text
    assert tokenizer("é")["input_ids"] == []
    assert tokenizer.decode([*ids[:3], 1], skip_special_tokens=True) == text[:3]


def test_the_chat_template_writes_roles_and_ends_answers_with_eos():
    tokenizer = character_tokenizer(64, "ascii")
    chat = [{"role": "system", "content": "a"}, {"role": "user", "content": "b c"}]
    asked = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert asked == "<|system|>a<|user|>b c<|assistant|>"
    answered = [*chat, {"role": "assistant", "content": "d"}]
    assert tokenizer.apply_chat_template(answered, tokenize=False) == asked + "d<|eos|>"
    assert tokenizer(asked)["input_ids"][0] == 2
    with pytest.raises(Exception, match="unknown role tool"):
        tokenizer.apply_chat_template([{"role": "tool", "content": ""}], tokenize=False)


def test_a_prompt_outside_the_alphabet_is_refused():
    check_alphabet(["1+2", "34"], "digits")
    with pytest.raises(ConfigError, match=r"has no 'S', 'o', 'r', 't', found in the prompt 'Sort 1'.*ascii"):
        check_alphabet(["12", "Sort 1"], "digits")
    with pytest.raises(ConfigError, match=r"has no 'é'.*pretrained"):
        check_alphabet(["é"], "ascii")
