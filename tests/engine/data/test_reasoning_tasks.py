"""Tasks of reasoning-gym, scored by the package."""

import pytest

from leverl.engine.data.reasoning import reasoning_prompts, reasoning_score
from leverl.engine.data.tasks import PromptSet
from leverl.errors import ConfigError


def make(task: str, **changes: object) -> PromptSet:
    arguments: dict[str, object] = {
        "train_size": 12,
        "eval_size": 4,
        "data_seed": 0,
        "style": "bare",
        "task_args": {},
    }
    return reasoning_prompts(f"reasoning_gym:{task}", **(arguments | changes))  # type: ignore[arg-type]


def questions(prompts: PromptSet) -> tuple[set[str], set[str]]:
    return {prompt.text for prompt in prompts.train}, {prompt.text for prompt in prompts.eval}


@pytest.mark.parametrize("task", ["chain_sum", "countdown", "leg_counting"])
def test_the_ground_truth_scores_one(task: str) -> None:
    prompts = make(task)
    assert (len(prompts.train), len(prompts.eval), prompts.overlap) == (12, 4, 0)
    assert prompts.train[3].uid == f"{task}-train-3"
    for prompt in prompts.train + prompts.eval:
        assert prompt.data_source == f"reasoning_gym:{task}"
        assert reasoning_score(prompt.ground_truth, prompt.extra_info) == 1.0


def test_the_package_decides_what_is_right() -> None:
    prompt = make("countdown").train[0]
    assert reasoning_score(f"({prompt.ground_truth})", prompt.extra_info) == 1.0  # another right expression
    assert reasoning_score("1", prompt.extra_info) < 0.1


def test_the_last_answer_tag_counts() -> None:
    prompt = make("chain_sum", style="instruct").train[0]
    assert prompt.text.endswith("\nGive the final answer between <answer> and </answer>.")
    wrong = f"<answer>{int(prompt.ground_truth) + 1}</answer>"
    right = f"<answer> {prompt.ground_truth}\n</answer>"
    assert reasoning_score(wrong + right, prompt.extra_info) == 1.0
    assert reasoning_score(right + wrong, prompt.extra_info) < 1.0


def test_same_arguments_same_prompts_and_neighbouring_seeds_share_none() -> None:
    assert make("chain_sum") == make("chain_sum")
    first, second = questions(make("chain_sum"))[0], questions(make("chain_sum", data_seed=1))[0]
    assert not first & second  # the package makes item i of seed s from s + i


def test_held_out_questions_are_not_trained_on_while_there_are_others() -> None:
    few = make("chain_sum", task_args={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1})
    assert few.overlap == 0
    train, held_out = questions(few)
    assert len(held_out) == 4
    assert not train & held_out


def test_task_args_reach_the_task() -> None:
    prompts = make("chain_sum", task_args={"min_terms": 2, "max_terms": 2})
    terms = {prompt.extra_info["reasoning_gym"]["entry"]["metadata"]["num_terms"] for prompt in prompts.train}
    assert terms == {2}


@pytest.mark.parametrize(
    ("task", "task_args", "message"),
    [
        ("chain_sun", {}, r"has no task 'chain_sun'\. Did you mean 'chain_sum'\?"),
        ("chain_sum", {"min_term": 2}, r"'min_term' is not an argument .* Did you mean 'min_terms'\?"),
        ("chain_sum", {"seed": 2}, r"task_args\.seed: set data\.data_seed"),
        ("chain_sum", {"min_terms": 9, "max_terms": 2}, r"the task refuses data\.task_args=.*'min_terms': 9"),
    ],
)
def test_what_cannot_be_made_is_a_config_error(task: str, task_args: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(task, task_args=task_args)
