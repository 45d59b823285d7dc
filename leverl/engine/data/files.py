"""Prompt files in verl's row format: Parquet, JSON lines, JSON and HF `datasets`.

A row is {data_source, prompt, reward_model: {ground_truth, style?}, extra_info?, ability?}; `prompt` is a
list of {role, content} or one string (a user message). Other columns are not read.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from leverl.engine.data.prompt import Message, Prompt
from leverl.errors import DataError
from leverl.plugins import DATASETS, nearest

HUB = "hf:"
_MEDIA = ("images", "videos", "audios")

Rows = Iterator[tuple[str, int, Any]]
"""Unit ("line" or "row"), 1-based number, row."""


def load_prompts(paths: Sequence[str | Path], *, prompt_key: str = "prompt") -> list[Prompt]:
    """All prompts of `paths`, in order.

    A path is a .parquet, .jsonl or .json file, a folder written by `Dataset.save_to_disk` (`FOLDER:SPLIT`
    if it holds several splits), or `hf:NAME[:SPLIT]` (split `train` if not given).
    A prompt's `uid` is "train.parquet:17", the path in full where two files have the same name.

    Raises:
        DataError: a path cannot be read, or a row is not in the format; names file and 1-based line or row.
    """
    if not paths:
        raise DataError("no prompt files given: data.train_files is empty.")
    given = [str(path) for path in paths]
    twice = [path for path, times in Counter(given).items() if times > 1]
    if twice:
        raise DataError(f"'{twice[0]}' is listed twice: give each prompt file once.")
    short_names = Counter(Path(path).name for path in given)
    prompts: list[Prompt] = []
    for path in given:
        short = Path(path).name
        label = short if short_names[short] == 1 else path
        before = len(prompts)
        for unit, number, row in _rows(path):
            prompts.append(parse_row(row, f"{path}, {unit} {number}", f"{label}:{number}", prompt_key))
        if len(prompts) == before:
            raise DataError(f"'{path}' has no rows.")
    return prompts


def parse_row(row: Any, where: str, uid: str, prompt_key: str = "prompt") -> Prompt:
    """One row as a `Prompt`; `where` starts the message of the `DataError` when it is not in the format."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: a row must be an object with named fields, found {_quote(row)}.")
    for media in _MEDIA:
        if row.get(media):
            raise DataError(f"{where}: '{media}' is not empty, but only text prompts are supported.")
    source = _field(row, "data_source", where)
    if not isinstance(source, str):
        raise DataError(f"{where}: 'data_source' must be text, found {_quote(source)}.")
    reward_model = _field(row, "reward_model", where)
    if not isinstance(reward_model, dict):
        raise DataError(
            f"{where}: 'reward_model' must be an object like {{'ground_truth': '5'}}, "
            f"found {_quote(reward_model)}."
        )
    extra_info = row.get("extra_info")
    if extra_info is not None and not isinstance(extra_info, dict):
        raise DataError(f"{where}: 'extra_info' must be an object, found {_quote(extra_info)}.")
    return Prompt(
        uid=uid,
        messages=_messages(_field(row, prompt_key, where), f"{where}: '{prompt_key}'"),
        data_source=source,
        ground_truth=_field(reward_model, "ground_truth", f"{where}, in 'reward_model'"),
        extra_info=dict(extra_info or {}),
    )


def _field(row: dict[str, Any], key: str, where: str) -> Any:
    # Columns of Parquet cannot tell a missing field from null, so null counts as missing everywhere.
    if row.get(key) is None:
        found = ", ".join(f"'{name}'" for name in row) or "nothing"
        hint = " Where the reward needs none, write an empty text." if key == "ground_truth" else ""
        raise DataError(
            f"{where}: '{key}' is missing or null; found {found}.{nearest(key, map(str, row))}{hint}"
        )
    return row[key]


def _messages(value: Any, where: str) -> tuple[Message, ...]:
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise DataError(f"{where} must be a text or a list of {{role, content}}, found {_quote(value)}.")
    return tuple(_message(message, f"{where}, message {at}") for at, message in enumerate(value, start=1))


def _message(value: Any, where: str) -> Message:
    if not isinstance(value, dict):
        raise DataError(f"{where} must be {{role, content}}, found {_quote(value)}.")
    for key in ("role", "content"):
        if not isinstance(value.get(key), str):
            raise DataError(f"{where}: '{key}' must be text, found {_quote(value.get(key))}.")
    other = [key for key, content in value.items() if key not in ("role", "content") and content is not None]
    if other:
        raise DataError(f"{where}: field '{other[0]}' is not supported, only 'role' and 'content' are.")
    if not value["role"] or not value["content"]:
        raise DataError(f"{where}: 'role' and 'content' must not be empty, found {_quote(value)}.")
    return {"role": value["role"], "content": value["content"]}


def _quote(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _rows(path: str) -> Rows:
    if path.startswith(HUB):
        return _hub_rows(path)
    file = Path(path)
    if file.is_dir():
        return _folder_rows(path, file, None)
    folder, _, split = path.rpartition(":")
    if not file.exists() and folder and Path(folder).is_dir():
        return _folder_rows(path, Path(folder), split)
    if not file.is_file():
        siblings = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        raise DataError(f"prompt file '{path}' does not exist.{nearest(file.name, siblings)}")
    readers: dict[str, Callable[[Path], Rows]] = {
        ".parquet": _parquet_rows,
        ".jsonl": _json_lines,
        ".json": _json_rows,
    }
    if file.suffix not in readers:
        raise DataError(
            f"prompt file '{path}': cannot read '{file.suffix}' files. Allowed: {', '.join(readers)}, "
            "a folder saved by `datasets`, or hf:NAME[:SPLIT]."
        )
    return readers[file.suffix](file)


def _parquet_rows(path: Path) -> Rows:
    import pyarrow.parquet  # here, for it starts a thread, and a process with threads cannot be forked safely

    try:
        table = pyarrow.parquet.read_table(path, partitioning=None)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"'{path}' cannot be read as Parquet: {error}") from error
    return _numbered(row for batch in table.to_batches(max_chunksize=1024) for row in batch.to_pylist())


def _json_lines(path: Path) -> Rows:
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield "line", number, json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}, line {number}: not JSON ({error}): {_quote(line)}") from error


def _json_rows(path: Path) -> Rows:
    text = _text(path)
    if not text.lstrip().startswith("["):  # many .json files are JSON lines in truth
        return _json_lines(path)
    try:
        return _numbered(json.loads(text))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error}).") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(
            f"{path}, line {line}: not UTF-8 text ({error.reason} at byte {error.start})."
        ) from error


def _folder_rows(path: str, folder: Path, split: str | None) -> Rows:
    import pyarrow

    datasets = DATASETS.require(f"to read the folder '{path}'")
    try:
        data = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"'{folder}' cannot be read as a folder saved by `datasets`: {error}") from error
    if isinstance(data, datasets.DatasetDict):
        splits = list(data)
        if split is None and len(splits) > 1:
            raise DataError(f"'{folder}' holds the splits {splits}: name one, as in '{folder}:{splits[0]}'.")
        split = split or splits[0]
        if split not in splits:
            raise DataError(f"'{folder}' has no split '{split}'.{nearest(split, splits)} It has {splits}.")
        data = data[split]
    elif split is not None:
        raise DataError(f"'{folder}' is one data set without splits: leave out ':{split}'.")
    return _numbered(data)


def _hub_rows(path: str) -> Rows:
    import pyarrow

    datasets = DATASETS.require(f"to read '{path}'")
    name, _, split = path.removeprefix(HUB).partition(":")
    try:
        data = datasets.load_dataset(name, split=split or "train")
    except (OSError, ValueError, datasets.exceptions.DatasetsError, pyarrow.ArrowException) as error:
        raise DataError(
            f"'{path}' cannot be loaded by `datasets` (split '{split or 'train'}'): {error} "
            "Check the name and the split, and that the hub can be reached."
        ) from error
    return _numbered(data)


def _numbered(rows: Iterable[Any]) -> Rows:
    return (("row", number, row) for number, row in enumerate(rows, start=1))
