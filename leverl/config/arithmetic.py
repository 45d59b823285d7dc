"""Batch arithmetic: which sizes follow from which, and what they mean in plain words.

`batch_size = num_rollout_batches × rollout_micro_batch_size`, all counted in responses.
Updates per rollout = `batch_size ÷ mini_batch_size × ppo_epochs`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from leverl.config.schema import Config
from leverl.errors import ConfigError

BATCH: Final = "rollout.batch_size"
MICRO: Final = "rollout.rollout_micro_batch_size"
COUNT: Final = "rollout.num_rollout_batches"
MINI: Final = "algorithm.mini_batch_size"
SIZES: Final = (BATCH, MICRO, COUNT, MINI)


def complete(layers: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Fill in the sizes that were not given, or complain about those that disagree.

    `layers` hold the sizes that each layer sets, lowest first. Higher layers decide first, so that a recipe's
    `batch_size` never fights what the user wrote:
    - `rollout_micro_batch_size` or `num_rollout_batches` set above `batch_size`: `batch_size` is held;
    - `batch_size` set above them: the largest sampler call that still divides it, but no larger than before
      (results do not depend on it);
    - `batch_size` set above `mini_batch_size`: the number of mini-batches is held.

    Raises:
        ConfigError: three sizes of one layer that disagree, or sizes that do not divide.
    """
    fixed = _two_that_decide(layers)
    batch = fixed.get(BATCH)
    if batch is None:
        micro = fixed.get(MICRO, Config().rollout.batch_size)
        count = fixed.get(COUNT, 1)
        batch = micro * count
    elif MICRO in fixed:
        micro = _part(layers, MICRO, batch, fixed[MICRO])
        count = batch // micro
    else:
        count = _part(layers, COUNT, batch, fixed.get(COUNT, 1))
        micro = batch // count
    return {BATCH: batch, MICRO: micro, COUNT: count, MINI: _mini_batch(layers, batch)}


def _two_that_decide(layers: Sequence[Mapping[str, int]]) -> dict[str, int]:
    fixed: dict[str, int] = {}
    for here in reversed(layers):
        given = [key for key in (BATCH, MICRO, COUNT) if key in here]
        if len(given) == 3 and here[BATCH] != here[MICRO] * here[COUNT]:
            raise ConfigError(
                f"batch_size = {here[BATCH]}, rollout_micro_batch_size = {here[MICRO]} and "
                f"num_rollout_batches = {here[COUNT]} disagree: "
                f"{here[MICRO]} × {here[COUNT]} = {here[MICRO] * here[COUNT]}. "
                "Set any two; the third follows."
            )
        for key in given:
            if len(fixed) < 2:
                fixed.setdefault(key, here[key])
    return fixed


def _part(layers: Sequence[Mapping[str, int]], name: str, batch: int, size: int) -> int:
    """`size`, which must divide `batch`; one from a layer below the batch's gives way."""
    if batch % size == 0:
        return size
    if _level(layers, name) < _level(layers, BATCH):
        return next(smaller for smaller in range(min(size, batch), 0, -1) if batch % smaller == 0)
    raise ConfigError(
        f"batch_size = {batch} is not a multiple of {_short(name)} = {size} "
        f"(batch_size = num_rollout_batches × rollout_micro_batch_size). {nearest_divisors(batch, size)}"
    )


def _mini_batch(layers: Sequence[Mapping[str, int]], batch: int) -> int:
    """The mini-batch given; below a layer that changed the batch, as large a share of the new one."""
    level = _level(layers, MINI)
    if level < 0:
        return batch
    mini = layers[level][MINI]
    before = complete([{k: v for k, v in layer.items() if k != MINI} for layer in layers[: level + 1]])[BATCH]
    if before == batch or before % mini:
        return mini
    parts = before // mini
    return batch // next(fewer for fewer in range(parts, 0, -1) if batch % fewer == 0)


def _level(layers: Sequence[Mapping[str, int]], name: str) -> int:
    """Number of the highest layer that sets `name`; −1 when none does."""
    return max((number for number, layer in enumerate(layers) if name in layer), default=-1)


def nearest_divisors(whole: int, part: int, name: str = "") -> str:
    """A sentence with the divisors of `whole` closest to `part`, below and above: values for `name`."""
    divisors = [n for n in range(1, whole + 1) if whole % n == 0]
    below, above = [n for n in divisors if n <= part], [n for n in divisors if n >= part]
    return f"Nearest {f'{name} ' if name else ''}that fit: {', '.join(str(n) for n in [*below[-1:], *above[:1]])}."


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
    responses = rollout.batch_size * config.train.steps
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
            f"responses in the run      {responses} in {config.train.steps} steps",
            f"freshness                 up to {tokens} rollout tokens per iteration, {updates} "
            f"update{'s' if updates != 1 else ''} per rollout, seconds per policy version: {pace}",
        ]
    )
