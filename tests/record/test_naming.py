"""Names of runs and folders."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from leverl.config.loader import load
from leverl.errors import ConfigError
from leverl.record.naming import check_name, free_name, occupied, run_name, slug, taken


def test_default_name() -> None:
    when = datetime(2026, 11, 30, 12, 5)
    assert run_name(load().config, when=when, token="7f3a") == "grpo-sort-1130-7f3a"
    assert re.fullmatch(r"ppo-sort-\d{4}-[0-9a-f]{4}", run_name(load("ppo").config))


def test_name_of_a_run_on_files_or_another_package() -> None:
    files = load("grpo", ["train_files=[data/GSM8K train.parquet]"]).config
    assert run_name(files, token="0000").startswith("grpo-gsm8k-train-")
    gym = load("rloo", ["task=reasoning_gym:chain_sum"]).config
    assert run_name(gym, token="0000").startswith("rloo-reasoning-gym-chain-sum-")


@pytest.mark.parametrize(
    ("text", "expected"), [("A b/c", "a-b-c"), ("数据", "data"), ("x" * 40, "x" * 32), ("--a--", "a")]
)
def test_slug(text: str, expected: str) -> None:
    assert slug(text) == expected


@pytest.mark.parametrize("name", ["a", "012-s1", "grpo-sort-1130-7f3a", "läuft", "a b"])
def test_good_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "a/b", "a\\b", "-a", ".a", "a\nb", "a\0b"])
def test_bad_name(name: str) -> None:
    with pytest.raises(ConfigError, match="must be a plain folder name"):
        check_name(name)


def test_three_choices(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a-2").mkdir()
    assert free_name(tmp_path, "a") == "a-3"
    assert free_name(tmp_path, "b") == "b"
    message = taken(tmp_path / "a", "train")
    assert f"leverl train --resume {tmp_path / 'a'}" in message
    assert "--name a-3" in message
    assert "--clean" in message


def test_what_a_launcher_left_does_not_occupy_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not occupied(folder)
    folder.mkdir()
    assert not occupied(folder)
    (folder / "log.txt").touch()
    (folder / "process.json").touch()
    assert not occupied(folder)
    (folder / "notes.md").touch()
    assert occupied(folder)
