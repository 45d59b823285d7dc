"""A reward function of your own, with verl's signature; the prompts are in prompts.jsonl.

    leverl train grpo train_files=[examples/prompts.jsonl] eval_files=[examples/held_out.jsonl] \
        reward=function function_path=examples/reward.py max_response_length=4
"""

from typing import Any


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None
) -> float | None:
    """1 for the right digit and nothing else, a quarter if more follows it. None leaves a response unscored."""
    if data_source != "examples/largest_digit":
        return None
    answer = solution_str.strip()
    truncated = bool(extra_info and extra_info.get("truncated"))
    if answer == ground_truth and not truncated:
        return 1.0
    return 0.25 if answer.startswith(ground_truth) else 0.0
