"""The user's own function from a file: found, checked before the run, and called like verl's."""

from pathlib import Path
from typing import Any

import pytest

from leverl.config.schema import Reward
from leverl.engine.data.prompt import Prompt
from leverl.engine.rewards.protocol import RewardFunction, load_reward
from leverl.engine.rewards.score import score_batch
from leverl.errors import ConfigError, RewardFailed

GOOD = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Parts:
    length: int

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    parts = Parts(len(solution_str))
    score = float(solution_str == ground_truth)
    return {"score": score, "length": parts.length, "split": extra_info["split"]}

def half(data_source, solution_str, ground_truth, extra_info, **kwargs):
    return 0.5

answer = 42

async def later(data_source, solution_str, ground_truth, extra_info):
    return 1.0

def narrow(solution_str, ground_truth):
    return 1.0

def greedy(data_source, solution_str, ground_truth, extra_info, model):
    return 1.0

def chatty(data_source, solution_str, ground_truth, extra_info):
    return "very good"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "my_reward.py"
    file.write_text(GOOD)
    return file


def load(path: Path | None, name: str = "compute_score") -> RewardFunction:
    function_path = None if path is None else str(path)
    return load_reward(Reward(kind="function", function_path=function_path, function_name=name))


def score(function: RewardFunction, text: str = "5") -> Any:
    prompt = Prompt("p", ({"role": "user", "content": "q"},), "source", "5", {"split": "train"})
    return score_batch(function, [prompt], [text], [False], max_error_rate=0.0)


def test_a_function_with_the_signature_of_verl(path: Path) -> None:
    result = score(load(path))
    assert result.scores.tolist() == [1.0]
    assert result.extra == ({"length": 1, "split": "train"},)
    assert score(load(path, "half")).scores.tolist() == [0.5]


def test_two_files_of_one_name_do_not_meet(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / path.name
    other.parent.mkdir()
    other.write_text(GOOD.replace("return 0.5", "return 0.25"))
    first, second = load(path, "half"), load(other, "half")
    assert (score(first).scores.tolist(), score(second).scores.tolist()) == ([0.5], [0.25])


def test_no_path() -> None:
    with pytest.raises(ConfigError, match=r"reward\.kind=function needs reward\.function_path"):
        load(None)


def test_a_missing_file_names_the_nearest(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no file '.*my_rewards\.py'\. Did you mean 'my_reward\.py'\?"):
        load(path.with_name("my_rewards.py"))
    with pytest.raises(ConfigError, match=r"no file '.*none.a\.py'\.$"):
        load(path.parent / "none" / "a.py")


def test_a_file_that_is_not_python(path: Path) -> None:
    text = path.with_suffix(".txt")
    text.write_text(GOOD)
    with pytest.raises(ConfigError, match=r"is not a Python file \(its name must end in \.py\)"):
        load(text)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def compute_score(:", r"fails when run: SyntaxError: .*line 1"),
        ("import no_such_package_here", "ModuleNotFoundError: No module named 'no_such_package_here'"),
        ("raise KeyError('token')", "KeyError: 'token'"),
    ],
)
def test_a_file_that_does_not_run(path: Path, source: str, message: str) -> None:
    path.write_text(source)
    with pytest.raises(ConfigError, match=message):
        load(path)


def test_a_missing_function_names_the_nearest(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no function 'compute_scor' .*Did you mean 'compute_score'\?"):
        load(path, "compute_scor")
    with pytest.raises(ConfigError, match=r"no function 'answer' \(it is 42\)"):
        load(path, "answer")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("narrow", r"cannot be called: .*'data_source'.*narrow\(data_source=…, solution_str=…"),
        ("greedy", r"cannot be called: missing a required argument: 'model'"),
        ("later", r"'later' in '.*' is async; write a plain function"),
    ],
)
def test_a_wrong_signature(path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(path, name)


def test_h84_a_wrong_type_fails_the_run_with_the_value(path: Path) -> None:
    with pytest.raises(RewardFailed, match=r"returned 'very good' \(str\)\. Allowed: a number"):
        score(load(path, "chatty"))


def test_h84_an_exception_shows_the_line_of_the_users_file(path: Path) -> None:
    path.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n    return 1 / 0\n"
    )
    with pytest.raises(
        RewardFailed, match=r'(?s)my_reward\.py", line 2, in compute_score.*ZeroDivisionError'
    ):
        score(load(path))
