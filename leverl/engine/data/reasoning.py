"""Tasks of the package reasoning-gym (`data.task: reasoning_gym:NAME`), scored by its own scorers.

The package makes item i of a data set from `seed + i`: two data sets with neighbouring seeds share nearly all
items. Training and held-out prompts are therefore disjoint stretches of *one* data set.
"""

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from leverl.engine.data.prompt import Prompt
from leverl.engine.data.tasks import PromptSet, Style
from leverl.errors import ConfigError
from leverl.plugins import REASONING_GYM, nearest

PREFIX = "reasoning_gym:"
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_SENTENCE = "Give the final answer between <answer> and </answer>."

Arguments = Mapping[str, bool | int | float | str]


def reasoning_prompts(
    task: str, *, train_size: int, eval_size: int, data_seed: int, style: Style, task_args: Arguments
) -> PromptSet:
    """Prompts of `reasoning_gym:NAME`; `task_args` goes to the task's own configuration.

    Questions are distinct within the held-out set and, while the task makes new ones, absent from training.

    Raises:
        ConfigError: unknown task, or an argument that the task does not take.
        EnvironmentProblem: reasoning-gym is not installed.
    """
    name = task.removeprefix(PREFIX)
    settings = _checked_arguments(name, task_args)
    # Neighbouring data seeds must not give shifted copies of the same items.
    seed = int.from_bytes(hashlib.sha256(f"{name}/{data_seed}".encode()).digest()[:4]) // 2
    spare = 2 * (train_size + eval_size)  # bounds the search for questions not met before
    items = _dataset(name, (*settings, ("seed", seed), ("size", spare)))

    held_out: dict[str, dict[str, Any]] = {}
    at = 0
    while len(held_out) < eval_size and at < 2 * eval_size:
        held_out.setdefault(items[at]["question"], items[at])
        at += 1
    fresh: list[dict[str, Any]] = []
    repeated: list[dict[str, Any]] = []
    while len(fresh) < train_size and at < spare:
        entry = items[at]
        (repeated if entry["question"] in held_out else fresh).append(entry)
        at += 1
    train = (fresh + repeated)[:train_size]

    def prompts(entries: list[dict[str, Any]], split: str) -> list[Prompt]:
        return [_prompt(name, settings, entry, style, split, i) for i, entry in enumerate(entries)]

    return PromptSet.of(prompts(train, "train"), prompts(list(held_out.values()), "eval"))


def reasoning_score(solution: str, extra_info: Mapping[str, Any]) -> float:
    """The package's own score, 0 to 1, of the last `<answer>…</answer>`, or of the whole response if none."""
    task = extra_info["reasoning_gym"]
    tagged = _ANSWER.findall(solution)
    answer = (tagged[-1] if tagged else solution).strip()
    return float(_dataset(task["name"], task["settings"]).score_answer(answer, task["entry"]))


def _prompt(
    name: str, settings: "_Settings", entry: dict[str, Any], style: Style, split: str, at: int
) -> Prompt:
    question = entry["question"]
    return Prompt(
        uid=f"{name}-{split}-{at}",
        messages=({"role": "user", "content": question if style == "bare" else f"{question}\n{_SENTENCE}"},),
        data_source=f"{PREFIX}{name}",
        ground_truth=entry["answer"],
        extra_info={
            "split": split,
            "index": at,
            "reasoning_gym": {"name": name, "settings": settings, "entry": entry},
        },
    )


_Settings = tuple[tuple[str, bool | int | float | str], ...]


@lru_cache(maxsize=32)
def _dataset(name: str, settings: _Settings) -> Any:
    factory = REASONING_GYM.require(f"for data.task={PREFIX}{name}")
    try:
        return factory.create_dataset(name, **dict(settings))
    except (AssertionError, TypeError, ValueError) as error:  # how the package refuses a setting
        raise ConfigError(
            f"data.task={PREFIX}{name}: the task refuses data.task_args={dict(settings)}: {error}"
        ) from error


def _checked_arguments(name: str, task_args: Arguments) -> _Settings:
    REASONING_GYM.require(f"for data.task={PREFIX}{name}")
    from reasoning_gym.factory import DATASETS  # optional package, just required

    if name not in DATASETS:
        raise ConfigError(
            f"data.task: reasoning-gym has no task '{name}'.{nearest(name, DATASETS)} "
            f"It has {len(DATASETS)}: {', '.join(sorted(DATASETS))}."
        )
    known = [field.name for field in dataclasses.fields(DATASETS[name][1])]
    for key in task_args:
        if key in ("seed", "size"):
            raise ConfigError(
                f"data.task_args.{key}: set data.data_seed, data.train_size and data.eval_size instead."
            )
        if key not in known:
            raise ConfigError(
                f"data.task_args: '{key}' is not an argument of {PREFIX}{name}.{nearest(key, known)} "
                f"Known: {', '.join(known)}."
            )
    return tuple(sorted(task_args.items()))
