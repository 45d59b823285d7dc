"""Procedural tasks with an exact verifier: echo, copy, reverse, sort, add.

A task numbers its distinct prompts 0 … count − 1, so that a training set and a held-out set are two draws of
numbers: exact about what is distinct, and equally quick for 10 prompts and for 10^64.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from leverl.engine.data.prompt import Prompt
from leverl.errors import ConfigError
from leverl.plugins import nearest

Style = Literal["bare", "instruct"]


@dataclass(frozen=True)
class PromptSet:
    """Training and held-out prompts; `overlap` counts held-out ones whose text is trained on too."""

    train: tuple[Prompt, ...]
    eval: tuple[Prompt, ...]
    overlap: int

    @classmethod
    def of(cls, train: Collection[Prompt], held_out: Collection[Prompt]) -> "PromptSet":
        """Both sets, with the overlap counted over whole conversations."""
        seen = {_conversation(prompt) for prompt in train}
        overlap = sum(_conversation(prompt) in seen for prompt in held_out)
        return cls(train=tuple(train), eval=tuple(held_out), overlap=overlap)


def _conversation(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    return tuple((message["role"], message["content"]) for message in prompt.messages)


@dataclass(frozen=True)
class Task:
    """How a task numbers, words and answers its prompts; `length` is digits (per operand for add)."""

    name: str
    count: Callable[[int], int]  # length -> number of distinct prompts
    question: Callable[[int, int], str]  # number, length -> bare prompt
    answer: Callable[[str], str]  # bare prompt -> ground truth
    sentence: str  # instruct style; {} is the bare prompt


def procedural_prompts(
    task: str, *, length: int, train_size: int, eval_size: int, data_seed: int, style: Style
) -> PromptSet:
    """The prompts of a task; the same arguments give the same prompts everywhere.

    Held-out prompts are distinct, so there are fewer than `eval_size` where the task has fewer. They are kept
    out of training where they are at most half of what exists; otherwise both sets draw from all prompts and
    `overlap` says how many are shared. Training prompts repeat (evenly) only once all are used.

    Raises:
        ConfigError: unknown task.
    """
    if task not in TASKS:
        raise ConfigError(
            f"data.task: unknown task '{task}'.{nearest(task, TASKS)} "
            f"Known: {', '.join(TASKS)}, and reasoning_gym:NAME."
        )
    spec = TASKS[task]
    count = spec.count(length)
    rng = random.Random(f"{task}/{length}/{data_seed}")
    held_out = _draw(rng, count, min(eval_size, count), frozenset())
    reserved = frozenset(held_out) if 2 * len(held_out) <= count else frozenset()
    train: list[int] = []
    while len(train) < train_size:
        train += _draw(rng, count, min(train_size - len(train), count - len(reserved)), reserved)

    def prompts(numbers: list[int], split: str) -> list[Prompt]:
        return [_prompt(spec, number, length, style, split, at) for at, number in enumerate(numbers)]

    return PromptSet.of(prompts(train, "train"), prompts(held_out, "eval"))


def _draw(rng: random.Random, count: int, n: int, without: frozenset[int]) -> list[int]:
    """`n` distinct numbers below `count` that are not in `without`, in random order."""
    if 2 * n >= count - len(without):
        pool = [number for number in range(count) if number not in without]
        rng.shuffle(pool)
        return pool[:n]
    # Few of many: drawing again on a repeat is cheap, and needs no list of all (there may be 10^64).
    drawn: dict[int, None] = {}
    while len(drawn) < n:
        number = rng.randrange(count)
        if number not in without:
            drawn[number] = None
    return list(drawn)


def _prompt(task: Task, number: int, length: int, style: Style, split: str, at: int) -> Prompt:
    question = task.question(number, length)
    content = question if style == "bare" else task.sentence.format(question)
    return Prompt(
        uid=f"{task.name}-{split}-{at}",
        messages=({"role": "user", "content": content},),
        data_source=f"leverl/{task.name}",
        ground_truth=task.answer(question),
        extra_info={"split": split, "index": at},
    )


def _digits(number: int, length: int) -> str:
    return f"{number:0{length}d}"


def _operand_range(length: int) -> tuple[int, int]:
    """Lowest operand and how many there are: no leading zeros beyond one digit."""
    low = 0 if length == 1 else 10 ** (length - 1)
    return low, 10**length - low


def _sum_question(number: int, length: int) -> str:
    low, span = _operand_range(length)
    return f"{low + number // span}+{low + number % span}"


def _sum(question: str) -> str:
    return str(sum(int(operand) for operand in question.split("+")))


_DIGITS_ONLY = "Answer with the digits only."

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "echo",
            count=lambda _length: 10,
            question=lambda number, _length: str(number),
            answer=lambda question: question,
            sentence="Repeat the digit {}. Answer with the digit only.",
        ),
        Task(
            "copy",
            count=lambda length: 10**length,
            question=_digits,
            answer=lambda question: question,
            sentence=f"Copy the digits {{}}. {_DIGITS_ONLY}",
        ),
        Task(
            "reverse",
            count=lambda length: 10**length,
            question=_digits,
            answer=lambda question: question[::-1],
            sentence=f"Write the digits {{}} in reverse order. {_DIGITS_ONLY}",
        ),
        Task(
            "sort",
            count=lambda length: 10**length,
            question=_digits,
            answer=lambda question: "".join(sorted(question)),
            sentence=f"Sort the digits {{}} in ascending order. {_DIGITS_ONLY}",
        ),
        Task(
            "add",
            count=lambda length: _operand_range(length)[1] ** 2,
            question=_sum_question,
            answer=_sum,
            sentence="What is {}? Answer with the number only.",
        ),
    )
}
