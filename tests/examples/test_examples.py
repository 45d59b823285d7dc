"""What lies in examples/ works."""

import runpy
from pathlib import Path
from typing import Any

import pytest

import leverl
from leverl.engine.data.files import load_prompts
from leverl.record.run_record import Outcome
from leverl.tune.plan import check_space_can_run, prepare
from leverl.tune.study_file import load_study

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY = {
    "embedded_hidden_size": 16,
    "embedded_layers": 1,
    "embedded_heads": 2,
    "batch_size": 32,
    "steps": 2,
    "max_response_length": 4,
}


def test_prompts_are_digits_with_their_largest_and_held_out_ones_are_others() -> None:
    train, held_out = (load_prompts([EXAMPLES / name]) for name in ("prompts.jsonl", "held_out.jsonl"))
    assert all(prompt.ground_truth == max(prompt.text) for prompt in (*train, *held_out))
    assert not {prompt.text for prompt in train} & {prompt.text for prompt in held_out}


@pytest.mark.parametrize(
    ("response", "extra", "score"),
    [
        ("8", {"truncated": False}, 1.0),
        ("8", {"truncated": True}, 0.25),
        ("82", None, 0.25),
        ("28", None, 0.0),
        ("", None, 0.0),
    ],
)
def test_reward(response: str, extra: dict[str, Any] | None, score: float) -> None:
    compute_score = runpy.run_path(str(EXAMPLES / "reward.py"))["compute_score"]
    assert compute_score("examples/largest_digit", response, "8", extra) == score
    assert compute_score("elsewhere", response, "8", extra) is None


def test_prompts_and_reward_train_together(tmp_path: Path) -> None:
    result = leverl.train(
        "grpo",
        TINY
        | {
            "train_files": [str(EXAMPLES / "prompts.jsonl")],
            "eval_files": [str(EXAMPLES / "held_out.jsonl")],
            "reward": "function",
            "function_path": str(EXAMPLES / "reward.py"),
        },
        out=tmp_path,
    )
    assert result.outcome is Outcome.FINISHED
    assert result.score is not None


def test_study_can_run(tmp_path: Path) -> None:
    study = load_study(EXAMPLES / "study.yaml")
    plan = prepare(study, tmp_path / study.name)
    check_space_can_run(plan)
    assert study.search_runs == 14
