"""Procedural tasks: right answers, exact sizes, held-out prompts that are held out."""

from collections import Counter

import pytest

from leverl.engine.data.tasks import TASKS, PromptSet, procedural_prompts
from leverl.errors import ConfigError


def make(task: str, **changes: object) -> PromptSet:
    arguments: dict[str, object] = {
        "length": 3,
        "train_size": 40,
        "eval_size": 8,
        "data_seed": 0,
        "style": "bare",
    }
    return procedural_prompts(task, **(arguments | changes))  # type: ignore[arg-type]


def texts(prompts: tuple) -> list[str]:
    return [prompt.text for prompt in prompts]


@pytest.mark.parametrize(
    ("task", "question", "answer"),
    [
        ("echo", "7", "7"),
        ("copy", "012", "012"),
        ("reverse", "120", "021"),
        ("sort", "312", "123"),
        ("sort", "900", "009"),
        ("add", "3+4", "7"),
        ("add", "95+87", "182"),
    ],
)
def test_answer(task: str, question: str, answer: str) -> None:
    assert TASKS[task].answer(question) == answer


def test_numbers_give_distinct_questions_of_the_given_length() -> None:
    for task in TASKS.values():
        for length in (1, 2):
            count = task.count(length)
            questions = {task.question(number, length) for number in range(count)}
            assert len(questions) == count
            operands = {len(operand) for question in questions for operand in question.split("+")}
            assert operands == {1 if task.name == "echo" else length}


@pytest.mark.parametrize("task", list(TASKS))
def test_every_prompt_has_its_answer_and_a_unique_uid(task: str) -> None:
    prompts = make(task)
    both = prompts.train + prompts.eval
    assert [prompt.ground_truth for prompt in both] == [TASKS[task].answer(text) for text in texts(both)]
    assert len({prompt.uid for prompt in both}) == len(both)
    assert prompts.train[17].uid == f"{task}-train-17"
    assert prompts.train[0].messages == ({"role": "user", "content": prompts.train[0].text},)


def test_same_arguments_same_prompts_and_another_seed_others() -> None:
    assert make("sort") == make("sort")
    assert texts(make("sort").train) != texts(make("sort", data_seed=1).train)


def test_held_out_prompts_do_not_depend_on_the_training_size() -> None:
    assert make("sort").eval == make("sort", train_size=900).eval


@pytest.mark.parametrize("train_size", [10, 900, 4096])
def test_held_out_prompts_are_disjoint_where_they_can_be(train_size: int) -> None:
    prompts = make("sort", train_size=train_size, eval_size=256)
    assert len(prompts.train) == train_size
    assert len(set(texts(prompts.eval))) == 256
    assert not set(texts(prompts.train)) & set(texts(prompts.eval))
    assert prompts.overlap == 0
    repeats = Counter(texts(prompts.train)).values()
    assert max(repeats) - min(repeats) <= 1  # each of the 744 left is used before any is used again


def test_overlap_is_reported_where_they_cannot_be() -> None:
    prompts = make("echo", train_size=100, eval_size=64)
    assert sorted(texts(prompts.eval)) == list("0123456789")  # ten exist, and none is held out twice
    assert prompts.overlap == 10


def test_the_longest_task_draws_without_listing_all_prompts() -> None:
    prompts = make("reverse", length=64)
    assert {len(text) for text in texts(prompts.train)} == {64}
    assert prompts.overlap == 0


def test_instruct_style_wraps_the_bare_prompt() -> None:
    bare, instruct = make("sort"), make("sort", style="instruct")
    assert instruct.train[0].text == (
        f"Sort the digits {bare.train[0].text} in ascending order. Answer with the digits only."
    )
    assert instruct.train[0].ground_truth == bare.train[0].ground_truth


def test_unknown_task_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"unknown task 'srot'\. Did you mean 'sort'\?"):
        make("srot")
