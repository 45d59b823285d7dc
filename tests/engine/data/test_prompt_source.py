"""The prompt stream: lengths in tokens, every prompt once per epoch, resume anywhere."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from leverl.config.schema import Data
from leverl.engine.data.prompt import Prompt
from leverl.engine.data.source import PromptSource, encode_prompt, encode_prompts, read_prompt_set
from leverl.errors import CheckpointError, ConfigError, DataError

SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>", "<user>", "<assistant>"]
BOS, EOS, USER, ASSISTANT = 1, 2, 4, 5
TEMPLATE = (
    "<bos>{% for m in messages %}"
    "{% if m['role'] != 'user' %}{{ raise_exception('only user messages') }}{% endif %}"
    "<user>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def build_tokenizer(template: str | None = TEMPLATE, *, ends: bool = False) -> PreTrainedTokenizerFast:
    """One token per character, BOS in front of plain text, EOS behind it if `ends`."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *map(chr, range(32, 127)), "\n"])}
    core = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    core.post_processor = TemplateProcessing(
        single="<bos> $A <eos>" if ends else "<bos> $A", special_tokens=[("<bos>", BOS), ("<eos>", EOS)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        extra_special_tokens=["<user>", "<assistant>"],
    )
    tokenizer.chat_template = template
    return tokenizer


TOKENIZER = build_tokenizer()


def prompt(content: str, uid: str = "p", role: str = "user") -> Prompt:
    return Prompt(uid, ({"role": role, "content": content},), "test", "x")


def numbered(size: int) -> list[Prompt]:
    return [prompt(str(number), uid=f"p{number}") for number in range(size)]


def source(size: int = 5, seed: int = 0, *, shuffle: bool = True) -> PromptSource:
    return PromptSource(numbered(size), TOKENIZER, max_prompt_length=20, seed=seed, shuffle=shuffle)


def uids(prompts: list[Prompt]) -> list[str]:
    return [each.uid for each in prompts]


def test_the_chat_template_writes_the_special_tokens_once() -> None:
    ids = encode_prompt(prompt("ab"), TOKENIZER)
    assert ids == (BOS, USER, *TOKENIZER.convert_tokens_to_ids(["a", "b"]), ASSISTANT)


@pytest.mark.parametrize("ends", [False, True])
def test_without_a_template_contents_are_joined_by_newlines_and_not_ended(ends: bool) -> None:
    two = Prompt("p", ({"role": "system", "content": "a"}, {"role": "user", "content": "b"}), "test", "x")
    tokenizer = build_tokenizer(None, ends=ends)
    assert encode_prompt(two, tokenizer) == (BOS, *tokenizer.convert_tokens_to_ids(["a", "\n", "b"]))


def test_messages_that_the_template_refuses_are_a_data_error() -> None:
    with pytest.raises(DataError, match="prompt p: the chat template refuses it: only user messages"):
        encode_prompt(prompt("a", role="system"), TOKENIZER)


def test_a_prompt_without_tokens_is_a_data_error() -> None:
    with pytest.raises(DataError, match="prompt p: it has no tokens"):
        encode_prompt(prompt("a"), build_tokenizer("{{ '' }}"))


def test_h66_over_long_prompts_are_dropped_whole_and_counted_in_tokens() -> None:
    prompts = [prompt("a" * length, uid=f"p{length}") for length in range(1, 7)]
    kept, dropped = encode_prompts(prompts, TOKENIZER, max_prompt_length=6)  # 3 special tokens + 3 letters
    assert uids(kept) == ["p1", "p2", "p3"]
    assert dropped == 3
    for each in kept:  # nothing is cut on either side
        assert each.token_ids == encode_prompt(each, TOKENIZER)
    long = PromptSource(prompts, TOKENIZER, max_prompt_length=6, seed=0)
    assert (long.size, long.dropped) == (3, 3)


def test_h66_no_prompt_left_is_an_error_with_the_lengths() -> None:
    prompts = [prompt("a" * length, uid=f"p{length}") for length in (5, 9)]
    with pytest.raises(
        DataError, match=r"all 2 have 8 to 12 tokens, and data\.max_prompt_length is 7 tokens"
    ):
        encode_prompts(prompts, TOKENIZER, max_prompt_length=7)
    with pytest.raises(DataError, match="no prompt is left: there are none"):
        encode_prompts([], TOKENIZER, max_prompt_length=7)


def test_uids_must_be_unique() -> None:
    with pytest.raises(DataError, match="two prompts have the uid 'p'"):
        PromptSource([prompt("a"), prompt("b")], TOKENIZER, max_prompt_length=9, seed=0)


def test_epochs_have_orders_of_their_own_that_depend_on_the_seed_only() -> None:
    def stream(seed: int) -> list[str]:
        return uids(source(20, seed).next(40))

    assert stream(3) == stream(3)
    assert stream(3) != stream(4)
    assert stream(3)[:20] != stream(3)[20:]
    assert stream(3)[:20] != uids(numbered(20))


def test_without_shuffling_the_order_is_that_of_the_file() -> None:
    assert uids(source(3, shuffle=False).next(7)) == ["p0", "p1", "p2", "p0", "p1", "p2", "p0"]


@given(st.integers(1, 7), st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 5))
def test_h78_every_prompt_exactly_once_per_epoch(size: int, batches: list[int], seed: int) -> None:
    stream = source(size, seed)
    consumed = [uid for n in batches for uid in uids(stream.next(n))]
    assert len(consumed) == sum(batches)
    for start in range(0, len(consumed) - size + 1, size):
        assert Counter(consumed[start : start + size]) == Counter(uids(numbered(size)))
    assert (stream.epoch, stream.position) == divmod(len(consumed), size)


@given(st.integers(1, 7), st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_h78_a_resumed_stream_goes_on_as_if_it_had_not_stopped(
    size: int, batches: list[int], data: st.DataObject
) -> None:
    whole = source(size)
    expected = [uids(whole.next(n)) for n in batches]
    stop = data.draw(st.integers(0, len(batches)))
    before = source(size)
    consumed = [uids(before.next(n)) for n in batches[:stop]]
    after = source(size)
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert consumed + [uids(after.next(n)) for n in batches[stop:]] == expected
    assert after.state_dict() == whole.state_dict()


def test_h78_resume_exactly_at_the_edge_of_an_epoch() -> None:
    whole, before, after = source(6), source(6), source(6)
    expected = uids(whole.next(6)), uids(whole.next(6))
    assert uids(before.next(6)) == expected[0]
    state = before.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    after.load_state_dict(state)
    assert uids(after.next(6)) == expected[1]


def test_a_position_in_another_stream_is_refused() -> None:
    stream = source(5)
    for other, what in (
        (source(6), "size was 6 and is now 5"),
        (source(5, seed=1), "seed was 1 and is now 0"),
    ):
        with pytest.raises(CheckpointError, match=what):
            stream.load_state_dict(other.state_dict())
    changed = [*numbered(4), prompt("x", uid="p4")]
    state = PromptSource(changed, TOKENIZER, max_prompt_length=20, seed=0).state_dict()
    with pytest.raises(CheckpointError, match="prompts was"):
        stream.load_state_dict(state)


@pytest.mark.parametrize("wrong", [{"position": 5}, {"position": -1}, {"epoch": None}, {"epoch": "1"}])
def test_a_position_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    stream = source(5)
    with pytest.raises(CheckpointError, match="is not valid"):
        stream.load_state_dict(stream.state_dict() | wrong)
    with pytest.raises(CheckpointError, match="seed was None"):
        stream.load_state_dict({})


def test_a_batch_needs_a_prompt() -> None:
    with pytest.raises(ConfigError, match="asked for 0"):
        source().next(0)


def test_read_prompt_set_auto_style_is_bare_for_the_embedded_policy_only() -> None:
    data = Data(task="sort", train_size=3, eval_size=2)
    bare, instruct = read_prompt_set(data, embedded=True), read_prompt_set(data, embedded=False)
    assert instruct.train[0].text != bare.train[0].text
    assert bare.train[0].text in instruct.train[0].text
    asked = data.model_copy(update={"prompt_style": "instruct"})
    assert read_prompt_set(asked, embedded=True) == instruct


def test_read_prompt_set_from_files(tmp_path: Path) -> None:
    rows = [
        {"data_source": "a", "prompt": f"q{number}", "reward_model": {"ground_truth": "1"}}
        for number in range(3)
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(json.dumps(each) for each in rows))
    (tmp_path / "eval.jsonl").write_text(json.dumps(rows[2]))
    files = {"train_files": [str(tmp_path / "train.jsonl")], "eval_files": [str(tmp_path / "eval.jsonl")]}
    prompts = read_prompt_set(Data(task=None, **files), embedded=True)
    assert (len(prompts.train), len(prompts.eval), prompts.overlap) == (3, 1, 1)
    no_eval = read_prompt_set(Data(train_files=files["train_files"]), embedded=True)
    assert (len(no_eval.train), no_eval.eval) == (3, ())


def test_read_prompt_set_from_reasoning_gym() -> None:
    data = Data(task="reasoning_gym:chain_sum", train_size=3, eval_size=2, task_args={"max_terms": 2})
    assert len(read_prompt_set(data, embedded=True).train) == 3


def test_read_prompt_set_refuses_what_it_cannot_use() -> None:
    with pytest.raises(ConfigError, match=r"set data\.task, or data\.train_files"):
        read_prompt_set(Data(task=None), embedded=True)
    with pytest.raises(ConfigError, match=r"data\.task_args=\{'a': 1\}: the task 'sort' takes none"):
        read_prompt_set(Data(task_args={"a": 1}), embedded=True)
