"""`reward.kind: math`: 1 if the final answer of the response equals the ground truth, else 0.

The answer is looked for in this order (`_answers.py`): the last `<answer>` tag, the last `\\boxed{}`, the
last `#### …`, the last "answer is …" or "answer: …", the last line. A ground truth that is a number wants a
number ("12+3" is a question, not the answer 15); text wants the same text; any other expression is compared
by math-verify, for which equivalent forms are equal.
"""

from typing import Any

from leverl.config.schema import Reward
from leverl.engine.rewards._answers import final_answer, same_answer
from leverl.engine.rewards._verifier import Verifier
from leverl.engine.rewards.protocol import RewardFunction, truth_text
from leverl.plugins import MATH_VERIFY


def build(_settings: Reward) -> RewardFunction:
    """The math reward; its verifier process starts at the first expression that needs it.

    Raises:
        EnvironmentProblem: math-verify is not installed.
    """
    MATH_VERIFY.require("for reward.kind=math")
    return MathReward()


class MathReward:
    """Scores by the final answer; callable from any thread."""

    def __init__(self, verifier: Verifier | None = None) -> None:
        self.verifier = verifier or Verifier()

    def __call__(self, *, solution_str: str, ground_truth: Any, **_unused: Any) -> float:
        """1.0 or 0.0.

        Raises:
            TypeError, ValueError: the ground truth is not text or a number, or is not an expression.
            TimeoutError: the comparison took too long.
            RuntimeError: the verifier failed.
        """
        truth = truth_text(ground_truth)
        if not truth:
            raise ValueError("the ground truth is empty")
        answer = final_answer(solution_str)
        return float(answer is not None and same_answer(answer, truth, self.verifier.equal))
