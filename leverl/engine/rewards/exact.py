"""`reward.kind: exact`: 1 if the response is the ground truth and ends there, else 0.

Character by character, white space around it apart: "15" is not "5", "5.0" is not "5". A truncated response
scores 0 whatever it says, for the policy did not end it.
"""

from typing import Any

from leverl.config.schema import Reward
from leverl.engine.rewards.protocol import TRUNCATED, RewardFunction, truth_text


def build(_settings: Reward) -> RewardFunction:
    """The exact reward; it has no settings."""
    return exact_score


def exact_score(*, solution_str: str, ground_truth: Any, extra_info: dict[str, Any], **_unused: Any) -> float:
    """1.0 or 0.0."""
    ended = not extra_info.get(TRUNCATED, False)
    return float(ended and solution_str.strip() == truth_text(ground_truth))
