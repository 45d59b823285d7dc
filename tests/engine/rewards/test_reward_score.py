"""Scoring a batch: failures are counted and shown, 0.0 is a score, None is not."""

from typing import Any

import numpy as np
import pytest
import torch

from leverl.config.schema import Reward
from leverl.engine.data.prompt import Prompt
from leverl.engine.rewards.protocol import load_reward, reward_kinds
from leverl.engine.rewards.score import Scores, score_batch
from leverl.errors import ConfigError, RewardFailed


def score(
    function: Any, texts: list[str], *, max_error_rate: float = 1.0, failed: list[bool] | None = None
) -> Scores:
    prompts = [
        Prompt(f"p{row}", ({"role": "user", "content": "q"},), "test", "truth", {"index": row})
        for row in range(len(texts))
    ]
    truncated = [text == "cut" for text in texts]
    return score_batch(function, prompts, texts, truncated, max_error_rate=max_error_rate, failed=failed)


def fails_on_bad(*, solution_str: str, **_rest: Any) -> float:
    if solution_str == "bad":
        raise KeyError("no such unit")
    return 1.0


def test_h84_an_exception_is_counted_shown_and_unscored() -> None:
    result = score(fails_on_bad, ["good", "bad", "good", "bad"], max_error_rate=0.5)
    assert result.errors == 2
    assert result.scored.tolist() == [True, False, True, False]
    assert result.scores[result.scored].tolist() == [1.0, 1.0]
    assert result.first_error.startswith("prompt p1, response 'bad':\nTraceback")
    assert "KeyError: 'no such unit'" in result.first_error
    assert "in fails_on_bad" in result.first_error  # the line of the user's file


@pytest.mark.parametrize(("bad", "rate", "fails"), [(1, 0.1, False), (2, 0.1, True), (1, 0.0, True)])
def test_h84_errors_above_the_rate_fail_the_run(bad: int, rate: float, fails: bool) -> None:
    texts = ["bad"] * bad + ["good"] * (10 - bad)
    if not fails:
        assert score(fails_on_bad, texts, max_error_rate=rate).errors == bad
        return
    with pytest.raises(
        RewardFailed, match=rf"failed on {bad} of the first {bad}.*reward\.max_error_rate={rate}"
    ) as raised:
        score(fails_on_bad, texts, max_error_rate=rate)
    assert "KeyError: 'no such unit'" in str(raised.value)


def test_h84_a_broken_function_is_not_called_to_the_end() -> None:
    calls = 0

    def broken(**_rest: Any) -> float:
        nonlocal calls
        calls += 1
        raise OSError("judge is down")

    with pytest.raises(RewardFailed, match="judge is down"):
        score(broken, ["x"] * 100, max_error_rate=0.1)
    assert calls == 11


def test_h84_failed_generations_are_neither_called_nor_part_of_the_rate() -> None:
    result = score(fails_on_bad, ["good", "bad", "good"], max_error_rate=0.0, failed=[False, True, False])
    assert (result.errors, result.scored.tolist()) == (0, [True, False, True])
    with pytest.raises(RewardFailed):  # 1 of 2, not 1 of 4
        score(fails_on_bad, ["bad", "good", "x", "x"], max_error_rate=0.4, failed=[False, False, True, True])


def test_h84_stopping_the_program_is_not_a_reward_error() -> None:
    def interrupted(**_rest: Any) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(interrupted, ["x"])


def test_h85_zero_is_a_score_and_none_is_not() -> None:
    returned = iter([0.0, None, 0, False, {"score": 0.0}, {"score": None, "why": "no judge"}])
    result = score(lambda **_rest: next(returned), ["x"] * 6)
    assert result.scored.tolist() == [True, False, True, True, True, False]
    assert result.scores.tolist() == [0.0] * 6
    assert (result.errors, result.first_error) == (0, "")
    assert result.extra[5] == {"why": "no judge"}


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (0.25, 0.25),
        (True, 1.0),
        (-3, -3.0),
        (np.float32(0.5), 0.5),
        (np.bool_(True), 1.0),
        (np.array(0.5), 0.5),
        (torch.tensor(0.5), 0.5),
        ({"score": np.int64(2), "acc": True}, 2.0),
    ],
)
def test_numbers_of_every_make(returned: Any, expected: float) -> None:
    result = score(lambda **_rest: returned, ["x"], max_error_rate=0.0)
    assert (result.scores.dtype, result.scores.tolist()) == (torch.float32, [expected])
    assert result.extra == (({"acc": True},) if isinstance(returned, dict) else ({},))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("1.0", r"returned '1\.0' \(str\)\. Allowed: a number, a bool, None"),
        ([1.0], r"returned \[1\.0\] \(list\)"),
        (torch.tensor([1.0]), r"returned tensor\(\[1\.\]\) \(Tensor\)"),
        (1j, r"returned 1j \(complex\)"),
        ({"reward": 1.0}, r"a dict without 'score': \{'reward': 1\.0\}"),
        ({"score": "high"}, r"returned 'high' \(str\)"),
        (float("nan"), "returned nan; a score must be finite"),
        (float("inf"), "returned inf; a score must be finite"),
    ],
)
def test_a_wrong_type_is_an_error_like_an_exception(returned: Any, message: str) -> None:
    with pytest.raises(RewardFailed, match=message):
        score(lambda **_rest: returned, ["x", "x"], max_error_rate=0.1)
    result = score(lambda **_rest: returned, ["x", "x"], max_error_rate=1.0)
    assert (result.errors, result.scored.tolist()) == (2, [False, False])


def test_the_function_sees_its_row_and_cannot_change_the_prompt() -> None:
    seen: list[dict[str, Any]] = []

    def spoils(**call: Any) -> float:
        seen.append({**call, "extra_info": dict(call["extra_info"])})
        call["extra_info"]["index"] = "spoilt"
        return 0.0

    prompt = Prompt("p", ({"role": "user", "content": "q"},), "source", "truth", {"index": 3})
    score_batch(spoils, [prompt, prompt], ["a", "b"], [False, True], max_error_rate=0.0)
    assert seen == [
        {
            "data_source": "source",
            "solution_str": text,
            "ground_truth": "truth",
            "extra_info": {"index": 3, "truncated": truncated},
        }
        for text, truncated in (("a", False), ("b", True))
    ]
    assert prompt.extra_info == {"index": 3}


def test_rows_must_match() -> None:
    with pytest.raises(ValueError, match="is longer"):
        score_batch(fails_on_bad, [], ["a"], [False], max_error_rate=0.0)


def test_the_folder_is_the_registry() -> None:
    assert {"dense", "exact", "function", "math"} <= set(reward_kinds())
    assert not {"protocol", "score"} & set(reward_kinds())
    wrong = Reward().model_copy(update={"kind": "exakt"})
    with pytest.raises(
        ConfigError, match=r"unknown kind 'exakt'\. Did you mean 'exact'\? Known: dense, exact"
    ):
        load_reward(wrong)
