"""Batch arithmetic: which sizes follow from which, and what they mean in plain words.

`batch_size = num_rollout_batches × rollout_micro_batch_size`, all counted in responses.
Updates per rollout = `batch_size ÷ mini_batch_size × ppo_epochs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from leverl.config.schema import Config
from leverl.errors import ConfigError

BATCH = "rollout.batch_size"
MICRO = "rollout.rollout_micro_batch_size"
COUNT = "rollout.num_rollout_batches"
MINI = "algorithm.mini_batch_size"


@dataclass(frozen=True)
class Given:
    """A value and the layer that set it (higher wins; 0 is the lowest)."""

    value: int
    layer: int


def complete(given: Mapping[str, Given]) -> dict[str, int]:
    """Fill in the sizes that were not given, or complain about those that disagree.

    Higher layers decide first, so that a recipe's `batch_size` never fights what the user wrote. When only
    `rollout_micro_batch_size` or only `num_rollout_batches` is changed, the recipe's `batch_size` is held.

    Raises:
        ConfigError: three sizes of one layer that disagree, or sizes that do not divide.
    """
    fixed = _two_that_decide(given)
    batch, micro, count = fixed.get(BATCH), fixed.get(MICRO), fixed.get(COUNT)
    if batch is None:
        micro = micro if micro is not None else Config().rollout.batch_size
        count = count if count is not None else 1
        batch = micro * count
    elif micro is not None:
        count = _divide(BATCH, batch, MICRO, micro)
    elif count is not None:
        micro = _divide(BATCH, batch, COUNT, count)
    else:
        micro, count = batch, 1
    return {BATCH: batch, MICRO: micro, COUNT: count, MINI: _mini_batch(given, batch)}


def _two_that_decide(given: Mapping[str, Given]) -> dict[str, int]:
    sizes = {key: given[key] for key in (BATCH, MICRO, COUNT) if key in given}
    fixed: dict[str, int] = {}
    for layer in sorted({size.layer for size in sizes.values()}, reverse=True):
        here = {key: size.value for key, size in sizes.items() if size.layer == layer}
        if len(here) == 3 and here[BATCH] != here[MICRO] * here[COUNT]:
            raise ConfigError(
                f"batch_size = {here[BATCH]}, rollout_micro_batch_size = {here[MICRO]} and num_rollout_batches = "
                f"{here[COUNT]} disagree: {here[MICRO]} × {here[COUNT]} = {here[MICRO] * here[COUNT]}. "
                "Set any two; the third follows."
            )
        for key in (BATCH, MICRO, COUNT):
            if key in here and len(fixed) < 2:
                fixed[key] = here[key]
    return fixed


def _divide(whole_name: str, whole: int, part_name: str, part: int) -> int:
    if whole % part:
        raise ConfigError(
            f"{_short(whole_name)} = {whole} is not a multiple of {_short(part_name)} = {part} "
            "(batch_size = num_rollout_batches × rollout_micro_batch_size). "
            f"Nearest that fit: {_nearest_divisors(whole, part)}."
        )
    return whole // part


def _mini_batch(given: Mapping[str, Given], batch: int) -> int:
    """The given mini-batch; a lower layer's one is scaled so that the number of mini-batches stays."""
    if MINI not in given:
        return batch
    mini = given[MINI]
    below = given.get(BATCH)
    if below is not None and mini.layer < below.layer and mini.value != batch and batch % mini.value:
        return batch
    return mini.value


def _nearest_divisors(whole: int, part: int) -> str:
    divisors = [n for n in range(1, whole + 1) if whole % n == 0]
    near = sorted(divisors, key=lambda n: abs(n - part))[:2]
    return ", ".join(str(n) for n in sorted(near))


def _short(path: str) -> str:
    return path.rsplit(".", 1)[-1]


def updates_per_rollout(config: Config) -> int:
    """Optimizer steps taken on the responses of one iteration."""
    return (config.rollout.batch_size // config.algorithm.mini_batch_size) * config.algorithm.ppo_epochs


def describe(config: Config, seconds_per_iteration: float | None = None) -> str:
    """The batch arithmetic in plain words, ending with the articles' "freshness" line."""
    rollout, algorithm = config.rollout, config.algorithm
    updates = updates_per_rollout(config)
    tokens = rollout.batch_size * rollout.max_response_length
    pace = "measured once the run has started"
    if seconds_per_iteration is not None:
        pace = f"{seconds_per_iteration:.2f} s"
    return "\n".join(
        [
            f"responses per iteration   {rollout.batch_size} = {rollout.num_rollout_batches} × "
            f"{rollout.rollout_micro_batch_size} (num_rollout_batches × rollout_micro_batch_size)",
            f"prompts per iteration     {rollout.prompts_per_iteration} = {rollout.batch_size} ÷ "
            f"{rollout.group_size} (batch_size ÷ group_size)",
            f"updates per rollout       {updates} = {rollout.batch_size} ÷ {algorithm.mini_batch_size} × "
            f"{algorithm.ppo_epochs} (batch_size ÷ mini_batch_size × ppo_epochs)",
            f"responses in the run      {rollout.batch_size * config.train.steps} in {config.train.steps} steps",
            f"freshness                 up to {tokens} rollout tokens per iteration, {updates} "
            f"update{'s' if updates != 1 else ''} per rollout, seconds per policy version: {pace}",
        ]
    )
