"""What a reward is, and how a kind is found.

A kind is a module of this folder (or an entry point in the group `leverl.rewards`) with
`build(settings: Reward) -> RewardFunction`.
"""

from typing import Any, Protocol

from leverl.config.schema import Reward
from leverl.errors import ConfigError
from leverl.plugins import load, names, nearest

PACKAGE = "leverl.engine.rewards"
TRUNCATED = "truncated"
"""Key that scoring adds to `extra_info`: the response was cut at the length limit, it has no end token."""

_NOT_KINDS = ("protocol", "score")


class RewardFunction(Protocol):
    """verl's `compute_score`, always called with these keywords.

    Returns the score as a finite number or bool, `None` for "cannot be scored", or a dict with such a `score`
    and whatever else should be logged. Raises when it fails: the row is then unscored and counted, never 0.
    """

    def __call__(
        self, *, data_source: str, solution_str: str, ground_truth: Any, extra_info: dict[str, Any]
    ) -> Any: ...


def reward_kinds() -> list[str]:
    """All values that `reward.kind` can take."""
    return [name for name in names(PACKAGE) if name not in _NOT_KINDS]


def load_reward(settings: Reward) -> RewardFunction:
    """The reward function that `settings` asks for.

    Raises:
        ConfigError: unknown kind, or settings the kind cannot use.
        EnvironmentProblem: an optional package is missing.
    """
    kinds = reward_kinds()
    if settings.kind not in kinds:
        raise ConfigError(
            f"reward.kind: unknown kind '{settings.kind}'.{nearest(settings.kind, kinds)} "
            f"Known: {', '.join(kinds)}."
        )
    function: RewardFunction = load(PACKAGE, settings.kind, "reward").build(settings)
    return function


def truth_text(ground_truth: Any) -> str:
    """The ground truth as text, surrounding white space removed.

    Raises:
        TypeError: it is neither text nor a number.
    """
    if isinstance(ground_truth, bool) or not isinstance(ground_truth, str | int | float):
        raise TypeError(f"the ground truth must be text or a number, found {ground_truth!r}")
    return str(ground_truth).strip()
