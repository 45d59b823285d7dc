"""Prompt files in verl's format: what is written is read, and a bad row is reported where it stands."""

import json
import re
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leverl.engine.data.files import load_prompts, parse_row
from leverl.engine.data.prompt import Prompt
from leverl.errors import DataError


def row(number: int = 0, **changes: Any) -> dict[str, Any]:
    whole = {
        "data_source": "openai/gsm8k",
        "prompt": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"What is {number} + {number}?"},
        ],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": str(2 * number)},
        "extra_info": {"split": "train", "index": number},
    }
    return {key: value for key, value in (whole | changes).items() if value is not ...}


ROWS = [row(number) for number in range(3)]


def write_jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def expected(name: str) -> list[Prompt]:
    return [
        Prompt(
            uid=f"{name}:{number + 1}",
            messages=tuple(each["prompt"]),
            data_source="openai/gsm8k",
            ground_truth=str(2 * number),
            extra_info={"split": "train", "index": number},
        )
        for number, each in enumerate(ROWS)
    ]


def test_parquet_round_trip(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "train.parquet")
    assert load_prompts([tmp_path / "train.parquet"]) == expected("train.parquet")


def test_parquet_in_a_folder_named_like_a_partition_gains_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "split=train"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "train.parquet")
    assert load_prompts([folder / "train.parquet"]) == expected("train.parquet")


def test_json_lines_round_trip(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "train.jsonl", ROWS)
    assert load_prompts([str(path)]) == expected("train.jsonl")


@pytest.mark.parametrize("as_lines", [False, True])
def test_json_is_a_list_or_lines(tmp_path: Path, as_lines: bool) -> None:
    path = write_jsonl(tmp_path / "train.json", ROWS)
    if not as_lines:
        path.write_text(json.dumps(ROWS, indent=1))
    assert load_prompts([path]) == expected("train.json")


def test_datasets_folder_round_trip(tmp_path: Path) -> None:
    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "saved")
    assert load_prompts([tmp_path / "saved"]) == expected("saved")


def test_datasets_folder_with_splits(tmp_path: Path) -> None:
    data = datasets.Dataset.from_list(ROWS)
    folder = tmp_path / "saved"
    datasets.DatasetDict(train=data, test=data.select([0])).save_to_disk(folder)
    assert [prompt.text for prompt in load_prompts([f"{folder}:test"])] == ["What is 0 + 0?"]
    with pytest.raises(DataError, match=r"holds the splits \['train', 'test'\]: name one"):
        load_prompts([folder])
    with pytest.raises(DataError, match=r"no split 'tets'\. Did you mean 'test'\?"):
        load_prompts([f"{folder}:tets"])


def test_hub_names_go_through_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "local"  # `datasets` takes a folder wherever it takes a name
    folder.mkdir()
    write_jsonl(folder / "train.jsonl", ROWS)
    assert [prompt.messages for prompt in load_prompts([f"hf:{folder}"])] == [
        prompt.messages for prompt in expected("")
    ]
    with pytest.raises(DataError, match=r"cannot be loaded by `datasets` \(split 'test'\)"):
        load_prompts([f"hf:{folder}:test"])


def test_a_text_prompt_is_a_user_message(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "train.jsonl", [row(prompt=..., question="What is 1 + 1?")])
    (prompt,) = load_prompts([path], prompt_key="question")
    assert prompt.messages == ({"role": "user", "content": "What is 1 + 1?"},)


def test_extra_info_may_be_absent_and_numbers_stay_numbers(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "a.jsonl", [row(extra_info=..., ability=..., reward_model={"ground_truth": 0})]
    )
    (prompt,) = load_prompts([path])
    assert (prompt.extra_info, prompt.ground_truth) == ({}, 0)


def test_fields_that_parquet_fills_with_null_do_not_count(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "name": None}]
    path = write_jsonl(tmp_path / "a.jsonl", [row(prompt=messages)])
    assert load_prompts([path])[0].messages[1] == {"role": "assistant", "content": "b"}


def test_uids_stay_unique_over_files_of_one_name(tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(write_jsonl(tmp_path / name / "train.jsonl", ROWS))
    uids = [prompt.uid for prompt in load_prompts(paths)]
    assert uids[0] == f"{paths[0]}:1"
    assert len(set(uids)) == 6


BAD_ROWS = {
    "not an object": ([1, 2], r"a row must be an object with named fields, found \[1, 2\]"),
    "no data source": (row(data_source=...), r"'data_source' is missing or null; found 'prompt'"),
    "data source not text": (row(data_source=3), r"'data_source' must be text, found 3"),
    "no prompt": (row(prompt=..., promt="hi"), r"'prompt' is missing or null.*Did you mean 'promt'\?"),
    "prompt a number": (row(prompt=3), r"'prompt' must be a text or a list of \{role, content\}, found 3"),
    "prompt empty": (row(prompt=[]), r"'prompt' must be a text or a list .* found \[\]"),
    "prompt empty text": (row(prompt=""), r"'role' and 'content' must not be empty"),
    "message a text": (row(prompt=["hi"]), r"'prompt', message 1 must be \{role, content\}, found 'hi'"),
    "no role": (row(prompt=[{"content": "hi"}]), r"message 1: 'role' must be text, found None"),
    "content a list": (
        row(prompt=[{"role": "user", "content": [{"type": "text"}]}]),
        r"message 1: 'content' must be text, found \[\{'type': 'text'\}\]",
    ),
    "tool calls": (
        row(prompt=[{"role": "user", "content": "hi", "tool_calls": [1]}]),
        r"field 'tool_calls' is not supported",
    ),
    "no reward model": (row(reward_model=...), r"'reward_model' is missing or null"),
    "reward model a text": (row(reward_model="5"), r"'reward_model' must be an object like .* found '5'"),
    "no ground truth": (
        row(reward_model={"style": "rule"}),
        r"in 'reward_model': 'ground_truth' is missing or null; found 'style'.*write an empty text",
    ),
    "extra info a list": (row(extra_info=[1]), r"'extra_info' must be an object, found \[1\]"),
    "images": (row(images=["x.png"]), r"'images' is not empty, but only text prompts are supported"),
}


@pytest.mark.parametrize("case", list(BAD_ROWS))
def test_a_bad_row_is_reported_with_file_and_line(tmp_path: Path, case: str) -> None:
    bad, message = BAD_ROWS[case]
    path = write_jsonl(tmp_path / "train.jsonl", [row(1), row(2), bad, row(3)])
    with pytest.raises(DataError, match=rf"^{re.escape(str(path))}, line 3.*{message}"):
        load_prompts([path])


def test_a_bad_parquet_row_is_reported_with_its_number(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([row(1), row(2, data_source=None)]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet, row 2: 'data_source' is missing or null"):
        load_prompts([tmp_path / "a.parquet"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"a": 1}\n\n{"a": \n', r"a\.jsonl, line 1: 'data_source' is missing"),
        ("a.jsonl", json.dumps(row()).encode() + b'\n\n{"a": \n', r"a\.jsonl, line 3: not JSON"),
        ("a.jsonl", json.dumps(row()).encode() + b'\n"\xff"\n', r"a\.jsonl, line 2: not UTF-8 text"),
        ("a.json", b"[\n{},\n", r"a\.json, line 3: not JSON"),
        ("a.jsonl", b"\n", r"'.*a\.jsonl' has no rows"),
        ("a.json", b"[]", r"'.*a\.json' has no rows"),
        ("a.parquet", b"PAR1 not really", r"cannot be read as Parquet"),
        ("a.csv", b"a,b", r"cannot read '\.csv' files\. Allowed: \.parquet, \.jsonl, \.json"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_prompts([tmp_path / name])


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "train.jsonl", ROWS)
    with pytest.raises(DataError, match=r"trian\.jsonl' does not exist\. Did you mean 'train\.jsonl'\?"):
        load_prompts([tmp_path / "trian.jsonl"])


def test_a_folder_that_datasets_did_not_write(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read as a folder saved by `datasets`"):
        load_prompts([tmp_path])


def test_no_files_and_the_same_file_twice(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "train.jsonl", ROWS)
    with pytest.raises(DataError, match="no prompt files given"):
        load_prompts([])
    with pytest.raises(DataError, match="is listed twice"):
        load_prompts([path, path])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "ground_truth"]), inner)
    ),
    max_leaves=8,
)
FIELDS = ["data_source", "prompt", "reward_model", "extra_info", "images"]


@given(JSON | st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_json_is_a_prompt_or_a_data_error(value: Any) -> None:
    try:
        prompt = parse_row(value, "a.jsonl, line 1", "a.jsonl:1")
    except DataError as error:
        said = str(error)
    else:
        assert all(message["role"] and message["content"] for message in prompt.messages)
        return
    assert said.startswith("a.jsonl, line 1")


TEXT = st.text(min_size=1, max_size=20)


@settings(max_examples=25)
@given(
    st.lists(
        st.builds(
            lambda source, content, truth: row(
                data_source=source,
                prompt=[{"role": "user", "content": content}],
                reward_model={"style": "rule", "ground_truth": truth},
            ),
            TEXT,
            TEXT,
            TEXT,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_text_survives_json_lines_and_parquet(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    (folder / "a.jsonl").write_text(
        "\n".join(json.dumps(each, ensure_ascii=False) for each in rows), encoding="utf-8", newline=""
    )
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        prompts = load_prompts([folder / name])
        assert [(each.data_source, each.text, each.ground_truth) for each in prompts] == [
            (each["data_source"], each["prompt"][0]["content"], each["reward_model"]["ground_truth"])
            for each in rows
        ]
