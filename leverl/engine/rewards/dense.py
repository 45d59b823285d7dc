"""`reward.kind: dense`: ½ · share of right characters + ½ · exact.

The end of the response counts as one more character, right when the response ends by itself where the ground
truth ends. From a random policy a task of several symbols is learnt only with partial credit.
On reasoning-gym tasks the dense score is the package's own, which gives partial credit where it makes sense.
"""

from typing import Any

from leverl.config.schema import Reward
from leverl.engine.data.reasoning import PREFIX, reasoning_score
from leverl.engine.rewards.exact import exact_score
from leverl.engine.rewards.protocol import TRUNCATED, RewardFunction, truth_text


def build(_settings: Reward) -> RewardFunction:
    """The dense reward; it has no settings."""
    return dense_score


def dense_score(
    *, data_source: str, solution_str: str, ground_truth: Any, extra_info: dict[str, Any]
) -> float:
    """A score in [0, 1], 1 exactly when the response is exact."""
    if data_source.startswith(PREFIX):
        return reasoning_score(solution_str, extra_info)
    text, truth = solution_str.strip(), truth_text(ground_truth)
    right = sum(got == wanted for got, wanted in zip(text, truth, strict=False))
    right += len(text) == len(truth) and not extra_info.get(TRUNCATED, False)
    exact = exact_score(solution_str=solution_str, ground_truth=ground_truth, extra_info=extra_info)
    return 0.5 * right / (len(truth) + 1) + 0.5 * exact
