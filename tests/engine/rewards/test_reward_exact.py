"""The exact and the dense reward."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leverl.config.schema import Reward
from leverl.engine.data.reasoning import reasoning_prompts
from leverl.engine.rewards.protocol import load_reward

EXACT, DENSE = load_reward(Reward(kind="exact")), load_reward(Reward(kind="dense"))


def score(function: Any, text: str, truth: Any, *, truncated: bool = False) -> float:
    value = function(
        data_source="test", solution_str=text, ground_truth=truth, extra_info={"truncated": truncated}
    )
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize(
    ("text", "truth"),
    [("5", "5"), (" 5\n", "5"), ("-5", "-5"), ("1,234", "1,234"), ("15", 15), ("a b", "a b")],
)
def test_h86_exact_positives(text: str, truth: Any) -> None:
    assert score(EXACT, text, truth) == 1.0
    assert score(DENSE, text, truth) == 1.0


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("15", "5"),
        ("5", "15"),
        ("51", "5"),
        ("-5", "5"),
        ("5", "-5"),
        ("5.0", "5"),
        ("1234", "1,234"),
        ("1,234", "1234"),
        ("the answer is 5", "5"),
        ("the answer is not 5", "5"),
        ("5 5", "5"),
        ("a  b", "a b"),
        ("A", "a"),
        ("", "5"),
    ],
)
def test_h86_exact_negatives(text: str, truth: str) -> None:
    assert score(EXACT, text, truth) == 0.0
    assert score(DENSE, text, truth) < 0.5


def test_h86_a_truncated_response_is_never_exact() -> None:
    assert score(EXACT, "5", "5", truncated=True) == 0.0
    assert score(DENSE, "5", "5", truncated=True) == 0.25  # the character is right, the end is not


@pytest.mark.parametrize(
    ("text", "truncated", "expected"),
    [
        ("123", False, 1.0),
        ("123", True, 0.5 * 3 / 4),
        ("1234", False, 0.5 * 3 / 4),  # goes on where the end should be
        ("12", False, 0.5 * 2 / 4),  # ends too early
        ("124", False, 0.5 * 3 / 4),  # two characters and the end
        ("321", False, 0.5 * 2 / 4),
        ("912", False, 0.5 * 1 / 4),  # right characters in wrong places do not count
        ("", False, 0.0),
        ("", True, 0.0),
    ],
)
def test_dense_by_hand(text: str, truncated: bool, expected: float) -> None:
    assert score(DENSE, text, "123", truncated=truncated) == pytest.approx(expected, abs=1e-12)


@given(st.text("123", max_size=5), st.text("123", max_size=5), st.booleans())
def test_dense_is_one_exactly_when_exact_is(text: str, truth: str, truncated: bool) -> None:
    dense, exact = (
        score(DENSE, text, truth, truncated=truncated),
        score(EXACT, text, truth, truncated=truncated),
    )
    assert 0.0 <= dense <= 1.0
    assert (dense == 1.0) == (exact == 1.0)
    assert dense <= 0.5 or exact == 1.0


@given(st.text("0123456789", min_size=1, max_size=6), st.data())
def test_dense_rewards_each_character_made_right(truth: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(truth) - 1))
    wrong = data.draw(st.sampled_from("0123456789"))
    assume(wrong != truth[at])
    worse = truth[:at] + wrong + truth[at + 1 :]
    assert score(DENSE, worse, truth) == pytest.approx(0.5 * len(truth) / (len(truth) + 1))


@pytest.mark.parametrize("truth", [None, ["5"], True, {"value": 5}])
def test_a_ground_truth_that_is_no_text_or_number_raises(truth: Any) -> None:
    for function in (EXACT, DENSE):
        with pytest.raises(TypeError, match="the ground truth must be text or a number, found"):
            score(function, "5", truth)


def test_dense_on_a_reasoning_gym_task_is_the_score_of_the_package() -> None:
    prompts = reasoning_prompts(
        "reasoning_gym:chain_sum", train_size=2, eval_size=1, data_seed=0, style="bare", task_args={}
    )
    prompt = prompts.train[0]

    def dense(text: str) -> Any:
        return DENSE(
            data_source=prompt.data_source,
            solution_str=text,
            ground_truth=prompt.ground_truth,
            extra_info=prompt.extra_info | {"truncated": False},
        )

    assert dense(f"so it is <answer>{prompt.ground_truth}</answer>") == 1.0
    assert dense("<answer>none</answer>") == 0.0
