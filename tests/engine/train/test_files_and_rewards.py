"""A verl user's files and reward function work unchanged; a broken one fails the run and says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leverl
from leverl.engine.train.run import Result
from leverl.errors import DataError
from leverl.record.metrics import read_lines
from leverl.record.run_record import Outcome

Train = Callable[..., Result]

FILES: dict[str, Any] = {"task": None, "length": None, "train_size": None, "eval_size": 12}


def rows(n: int, offset: int = 0) -> list[dict[str, Any]]:
    """Prompts in verl's row format: say the digit."""
    return [
        {
            "data_source": "digits",
            "prompt": [{"role": "user", "content": f"{(i + offset) % 10}"}],
            "ability": "echo",
            "reward_model": {"style": "rule", "ground_truth": f"{(i + offset) % 10}"},
            "extra_info": {"split": "train", "index": i},
        }
        for i in range(n)
    ]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    train, held_out = tmp_path / "train.parquet", tmp_path / "test.jsonl"
    pq.write_table(pa.Table.from_pylist(rows(30)), train)
    held_out.write_text("".join(json.dumps(row) + "\n" for row in rows(10)))
    return {"train_files": [str(train)], "eval_files": [str(held_out)]}


def run(tmp_path: Path, **settings: Any) -> Result:
    from leverl.config.loader import load

    small = {
        "embedded_hidden_size": 32, "embedded_layers": 1, "embedded_heads": 2, "batch_size": 32, "group_size": 4,
        "mini_batch_size": 16, "max_response_length": 4, "steps": 2, "eval_every": 1,
    }  # fmt: skip
    load("grpo", {**small, **settings})
    return leverl.train("grpo", {**small, **settings}, name="run", out=tmp_path)


def test_files_in_verls_format_train_and_evaluate(tmp_path: Path, files: dict[str, Any]) -> None:
    result = run(tmp_path, **files)
    assert result.outcome is Outcome.FINISHED
    assert result.score is not None
    sample = json.loads((result.folder / "samples" / "000002.jsonl").read_text().splitlines()[0])
    assert sample["prompt"] == sample["ground_truth"]


def test_a_users_reward_function_with_verls_signature_is_called(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    function = tmp_path / "reward.py"
    function.write_text(
        "def longer(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    assert data_source == 'digits' and 'index' in extra_info\n"
        "    return {'score': float(len(solution_str)), 'seen': solution_str}\n"
    )
    result = run(tmp_path, **files, reward="function", function_path=str(function), function_name="longer")
    last = dict(read_lines(result.folder / "metrics.jsonl"))[2]
    assert last["critic/score/max"] > 1


def test_h84_a_reward_function_that_raises_is_counted_and_fails_the_run(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    function = tmp_path / "reward.py"
    function.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    raise KeyError('no such key')\n"
    )
    result = run(tmp_path, **files, reward="function", function_path=str(function))
    assert result.outcome is Outcome.CRASHED
    assert "no such key" in result.record.message
    assert "reward.max_error_rate" in result.record.message
    assert result.score is None


def test_h84_rare_failures_are_counted_and_the_run_goes_on(tmp_path: Path, files: dict[str, Any]) -> None:
    function = tmp_path / "reward.py"
    function.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    if ground_truth == '3':\n"
        "        raise ValueError('three')\n"
        "    return 0.0\n"
    )
    result = run(tmp_path, **files, reward="function", function_path=str(function), max_error_rate=0.9)
    assert result.outcome is Outcome.FINISHED
    lines = dict(read_lines(result.folder / "metrics.jsonl"))
    errors = sum(lines[step]["reward/errors"] for step in (1, 2))
    assert errors > 0
    assert errors % 4 == 0, "whole groups of the prompt 3"


def test_a_bad_row_is_named_before_anything_trains(tmp_path: Path, files: dict[str, Any]) -> None:
    broken = Path(files["eval_files"][0])
    broken.write_text(broken.read_text() + '{"data_source": "digits"}\n')
    with pytest.raises(DataError, match=r"test\.jsonl, line 11: .reward_model."):
        run(tmp_path, **files)


def test_a_run_folder_that_holds_something_is_never_overwritten(train: Train) -> None:
    train("run")
    with pytest.raises(leverl.errors.ConfigError, match="--resume"):  # type: ignore[attr-defined]
        train("run")
