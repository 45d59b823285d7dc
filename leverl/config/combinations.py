"""Settings that exclude each other, and settings that do nothing in the mode chosen."""

from collections.abc import Callable, Iterator
from typing import Final

from leverl.config.arithmetic import nearest_divisors, updates_per_rollout
from leverl.config.schema import Config
from leverl.errors import ConfigError

Rule = Callable[[Config], str | None]

GROUP_ESTIMATORS: Final = ("grpo", "rloo")


def needs_reference(config: Config) -> bool:
    """Whether log-probs of the reference policy are computed."""
    penalised = config.algorithm.kl_in != "off" and config.algorithm.kl_coef > 0
    return penalised or config.algorithm.reference == "always"


def check(config: Config) -> None:
    """Refuse impossible combinations.

    Raises:
        ConfigError: names the keys, their values and what would fit.
    """
    for message in _impossible(config):
        raise ConfigError(message)


def _impossible(config: Config) -> Iterator[str]:
    rollout, algorithm = config.rollout, config.algorithm
    if algorithm.name in GROUP_ESTIMATORS and rollout.group_size < 2:
        yield (
            f"algorithm = {algorithm.name} compares the responses of one prompt, but group_size = "
            f"{rollout.group_size}. Set group_size ≥ 2, or algorithm=ppo."
        )
    if rollout.batch_size % rollout.group_size:
        yield (
            f"batch_size = {rollout.batch_size} is not a multiple of group_size = {rollout.group_size} "
            f"(batch_size counts responses). {nearest_divisors(rollout.batch_size, rollout.group_size, 'group_size')}"
        )
    if rollout.batch_size != rollout.num_rollout_batches * rollout.rollout_micro_batch_size:
        yield (
            f"batch_size = {rollout.batch_size} ≠ num_rollout_batches {rollout.num_rollout_batches} × "
            f"rollout_micro_batch_size {rollout.rollout_micro_batch_size}. Set any two; the third follows."
        )
    if rollout.batch_size % algorithm.mini_batch_size:
        yield (
            f"batch_size = {rollout.batch_size} is not a multiple of mini_batch_size = "
            f"{algorithm.mini_batch_size} (both count responses). "
            f"{nearest_divisors(rollout.batch_size, algorithm.mini_batch_size)}"
        )
    if algorithm.kl_in == "loss" and algorithm.kl_estimator == "k1":
        yield (
            "kl_estimator = k1 has an expected gradient of zero inside the loss. "
            "Use kl_estimator=k2 or k3, or kl_in=reward."
        )
    if algorithm.clip_range_high is not None and algorithm.clip_range_high < algorithm.clip_range:
        yield (
            f"clip_range_high = {algorithm.clip_range_high} is below clip_range = {algorithm.clip_range} "
            "(clip_range is the lower side: the ratio is kept in [1 − clip_range, 1 + clip_range_high])."
        )
    yield from _impossible_sources(config)


def _impossible_sources(config: Config) -> Iterator[str]:
    embedded, data, reward = config.model.embedded, config.data, config.reward
    if embedded.hidden_size % (2 * embedded.heads):
        yield (
            f"embedded_hidden_size = {embedded.hidden_size} is not a multiple of 2 × embedded_heads = "
            f"{2 * embedded.heads} (rotary positions need an even head size)."
        )
    if data.task is None and not data.train_files:
        yield "neither data.task nor data.train_files is set: there is nothing to train on."
    if data.task is not None and data.train_files:
        yield f"data.task = {data.task} and data.train_files = {data.train_files} are both set: choose one."
    if data.eval_files and not data.train_files:
        yield "data.eval_files needs data.train_files (a procedural task holds out its own prompts)."
    if reward.kind == "function" and not reward.function_path:
        yield "reward = function needs reward.function_path, the Python file that defines it."


def _when(condition: Callable[[Config], bool], reason: str) -> Rule:
    return lambda config: reason if condition(config) else None


def _ratio_is_one(config: Config) -> bool:
    return updates_per_rollout(config) == 1


_NO_CRITIC = _when(lambda c: c.algorithm.name != "ppo", "only ppo has a critic")
_ONE_UPDATE = _when(
    _ratio_is_one,
    "with one update per rollout the ratio is always 1; lower mini_batch_size or raise ppo_epochs to use it",
)
_KL_OFF = _when(lambda c: c.algorithm.kl_in == "off", "kl_in is off")
_NOT_EMBEDDED = _when(lambda c: c.model.path != "embedded", "model is not the embedded one")
_FILES = _when(lambda c: c.data.task is None, "prompts come from files, not from a task")
_TASK = _when(lambda c: c.data.task is not None, "prompts come from a task, not from files")
_NOT_FUNCTION = _when(lambda c: c.reward.kind != "function", "reward is not 'function'")

INERT: Final[dict[str, Rule]] = {
    "algorithm.scale_by_std": _when(
        lambda c: c.algorithm.name != "grpo", "only grpo scales by the group's std"
    ),
    "algorithm.whiten_advantages": _NO_CRITIC,
    "algorithm.gamma": _NO_CRITIC,
    "algorithm.gae_lambda": _NO_CRITIC,
    "algorithm.clip_range": _ONE_UPDATE,
    "algorithm.clip_range_high": _ONE_UPDATE,
    "algorithm.dual_clip": _ONE_UPDATE,
    "algorithm.kl_coef": _KL_OFF,
    "algorithm.kl_estimator": _when(
        lambda c: c.algorithm.kl_in != "loss" or c.algorithm.kl_coef == 0,
        "the estimator is a choice only inside the loss (kl_in=loss, kl_coef > 0); in the reward it is k1",
    ),
    "data.length": _when(
        lambda c: c.data.task is None or c.data.task == "echo" or c.data.task.startswith("reasoning_gym:"),
        "only copy, reverse, sort and add have a length",
    ),
    "data.task_args": _when(
        lambda c: not (c.data.task or "").startswith("reasoning_gym:"),
        "only reasoning_gym tasks take arguments",
    ),
    "data.train_size": _FILES,
    "data.data_seed": _FILES,
    "data.prompt_style": _when(
        lambda c: c.data.task is None or c.data.task.startswith("reasoning_gym:"),
        "only procedural tasks have a prompt style",
    ),
    "data.prompt_key": _TASK,
    "reward.function_path": _NOT_FUNCTION,
    "reward.function_name": _NOT_FUNCTION,
    "evaluation.samples": _when(
        lambda c: c.evaluation.temperature == 0, "greedy evaluation (eval_temperature=0) gives equal samples"
    ),
    "critic.value_clip": _when(
        lambda c: c.algorithm.name != "ppo" or _ratio_is_one(c),
        "it needs a critic (ppo) and more than one update per rollout",
    ),
    **{
        f"critic.{name}": _NO_CRITIC
        for name in (
            "learning_rate", "weight_decay", "beta1", "beta2", "epsilon", "grad_clip", "warmup_steps",
            "schedule",
        )
    },
    **{
        f"model.embedded.{name}": _NOT_EMBEDDED
        for name in ("hidden_size", "layers", "heads", "alphabet", "init_seed", "warm_start_steps")
    },
}  # fmt: skip
"""Path of a lever → rule that says why it has no effect under a configuration, or None when it has."""


def inert(config: Config, path: str) -> str | None:
    """Why the lever at `path` does nothing under `config`; None when it is live."""
    rule = INERT.get(path)
    return rule(config) if rule else None
