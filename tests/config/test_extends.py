"""`extends`: recipes and files on top of each other."""

from pathlib import Path

import pytest

from leverl.config.loader import load
from leverl.errors import ConfigError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_chain_of_files_down_to_a_recipe(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "extends: rloo\nsteps: 5\nkl_coef: 0.1\nseed: 1\n")
    write(tmp_path / "b.yaml", "extends: a.yaml\nkl_coef: 0.2\nseed: 2\n")
    config = load(write(tmp_path / "c.yaml", "extends: b.yaml\nseed: 3\n")).config
    assert config.algorithm.name == "rloo"
    assert (config.train.steps, config.algorithm.kl_coef, config.seed) == (5, 0.2, 3)


def test_file_is_found_beside_the_file_that_extends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "configs" / "base.yaml", "extends: grpo\nsteps: 5\n")
    write(tmp_path / "configs" / "deep" / "own.yaml", "extends: ../base.yaml\n")
    monkeypatch.chdir(tmp_path)
    assert load("configs/deep/own.yaml").config.train.steps == 5


@pytest.mark.parametrize("first", ["a.yaml", "./a.yaml"])
def test_circle_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    write(tmp_path / "a.yaml", "extends: b.yaml\n")
    write(tmp_path / "b.yaml", "extends: a.yaml\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"goes round in a circle: .*a\.yaml → b\.yaml → "):
        load(first)


def test_file_that_extends_itself(tmp_path: Path) -> None:
    file = write(tmp_path / "grpo.yaml", "extends: grpo.yaml\n")
    with pytest.raises(ConfigError, match="circle"):
        load(file)


def test_parent_that_does_not_exist(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", "extends: gropo\n")
    with pytest.raises(ConfigError, match=r"'gropo' is neither .* Did you mean 'grpo'\?"):
        load(file)


@pytest.mark.parametrize("value", ["3", "[grpo, ppo]", "{a: 1}"])
def test_parent_that_is_no_name(tmp_path: Path, value: str) -> None:
    file = write(tmp_path / "a.yaml", f"extends: {value}\n")
    with pytest.raises(ConfigError, match="must be the name of a recipe or a file"):
        load(file)
