"""Checklist I88: no inert knobs. Every lever's claimed effect is put to the test on short runs.

A `learning` lever must change what is computed; a `cost` or `logging` lever must not. Levers that need a mode
of their own name it here; what is inert in a mode is refused there (tests/config).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leverl.engine.train.run import Result
from leverl.record.metrics import read_lines
from leverl.vocabulary.catalog import LEVERS, by_name

Train = Callable[..., Result]

SHORT = {"steps": 2, "eval_every": 1, "save_every": 0, "train_size": 200}
PPO = {"recipe": "ppo"}
PENALISED = {"kl_coef": 0.5}
OFF_POLICY = {"actor_learning_rate": 0.02, "ppo_epochs": 2}  # far enough from ratio 1 that clipping binds
FILES = {"task": None}

CHANGED: dict[str, dict[str, Any]] = {
    # lever: {"to": another value, "mode": settings of both runs}
    "seed": {"to": 1},
    "dtype": {"to": "bfloat16"},
    "embedded_hidden_size": {"to": 40},
    "embedded_layers": {"to": 2},
    "embedded_heads": {"to": 4},
    "embedded_alphabet": {"to": "ascii"},
    "embedded_init_seed": {"to": 1},
    "embedded_warm_start_steps": {"to": 2},
    "task": {"to": "reverse"},
    "length": {"to": 1},
    "train_size": {"to": 100},
    "eval_size": {"to": 8},
    "data_seed": {"to": 1},
    "prompt_style": {"to": "instruct", "mode": {"embedded_alphabet": "ascii"}},
    "max_prompt_length": {
        "to": 3,
        "mode": {"task": "add", "length": 1, "prompt_style": "bare"},
        "refused": True,
    },
    "shuffle": {"to": False},
    "reward": {"to": "exact"},
    "batch_size": {"to": 64, "mode": {"mini_batch_size": 32}},
    "group_size": {"to": 8},
    "max_response_length": {"to": 3},
    "temperature": {"to": 0.7},
    "top_p": {"to": 0.8},
    "top_k": {"to": 5},
    "algorithm": {"to": "rloo"},
    "scale_by_std": {"to": False},
    "whiten_advantages": {"to": False, "mode": PPO},
    "gamma": {"to": 0.5, "mode": PPO},
    "gae_lambda": {"to": 0.5, "mode": PPO},
    "clip_range": {"to": 0.01, "mode": OFF_POLICY},
    "clip_range_high": {"to": 0.9, "mode": OFF_POLICY},
    "dual_clip": {"to": 1.01, "mode": OFF_POLICY},
    "kl_in": {"to": "reward", "mode": PENALISED},
    "kl_coef": {"to": 0.5},
    "kl_estimator": {"to": "k3", "mode": PENALISED},
    "entropy_coef": {"to": 0.1},
    "loss_aggregation": {"to": "seq_mean_token_mean"},
    "ppo_epochs": {"to": 2},
    "mini_batch_size": {"to": 8},
    "old_log_probs": {"to": "recompute"},
    "actor_learning_rate": {"to": 1e-2},
    "actor_weight_decay": {"to": 0.5},
    "actor_beta1": {"to": 0.5},
    "actor_beta2": {"to": 0.5},
    "actor_epsilon": {"to": 1.0},
    "actor_grad_clip": {"to": 1e-3, "mode": {"actor_epsilon": 1e-2}},  # Adam alone forgets a scale
    "actor_warmup_steps": {"to": 2},
    "actor_schedule": {"to": "linear"},
    "critic_learning_rate": {"to": 1e-2, "mode": PPO},
    "critic_weight_decay": {"to": 0.5, "mode": PPO},
    "critic_beta1": {"to": 0.5, "mode": PPO},
    "critic_beta2": {"to": 0.5, "mode": PPO},
    "critic_epsilon": {"to": 1.0, "mode": PPO},
    "critic_grad_clip": {"to": 1e-3, "mode": {**PPO, "critic_epsilon": 1e-2}},
    "critic_warmup_steps": {"to": 2, "mode": PPO},
    "critic_schedule": {"to": "linear", "mode": PPO},
    "value_clip": {"to": 1e-3, "mode": {**PPO, "critic_learning_rate": 1e-2}},
    "eval_every": {"to": 2},
    "eval_samples": {"to": 2, "mode": {"eval_temperature": 1.0}},
    "eval_temperature": {"to": 1.0},
    "last_k": {"to": 1},
    "steps": {"to": 3},
    "save_every": {"to": 1},
    "keep": {"to": 1},
    "log_samples": {"to": 2},
    "rollout_micro_batch_size": {"to": 8},
    "num_rollout_batches": {"to": 4},
    "micro_batch_tokens": {"to": 40},
    "reference": {"to": "always", "mode": {"kl_coef": 0.0}},
    "max_error_rate": {"to": 1.0},
}

ELSEWHERE = {
    "model": "loading a model by path: tests/engine/policy, tests/engine/train/test_hf_model.py",
    "device": "needs a GPU",
    "trust_remote_code": "tests/engine/policy",
    "threads": "the number of threads changes the order of sums; two threads on two busy cores prove nothing",
    "task_args": "reasoning_gym tasks: tests/engine/data",
    "train_files": "tests/engine/train/test_files_and_rewards.py",
    "eval_files": "tests/engine/train/test_files_and_rewards.py",
    "prompt_key": "tests/engine/data",
    "function_path": "tests/engine/train/test_files_and_rewards.py",
    "function_name": "tests/engine/rewards",
}


def curve(result: Result, names: Callable[[str], bool]) -> list[tuple[int, dict[str, Any]]]:
    lines = read_lines(Path(result.folder) / "metrics.jsonl")
    return [(step, {name: value for name, value in data.items() if names(name)}) for step, data in lines]


def training(name: str) -> bool:
    return not name.startswith(("timing_s/", "perf/", "eval/"))


def test_every_lever_is_tried_here_or_says_where() -> None:
    names = {lever.name for lever in LEVERS}
    assert names == CHANGED.keys() | ELSEWHERE.keys()


def pair(train: Train, name: str) -> tuple[Result, Result]:
    case = CHANGED[name]
    mode = {**SHORT, **case.get("mode", {})}
    return train("base", **mode), train("changed", **{**mode, name: case["to"]})


@pytest.mark.parametrize("name", [name for name in CHANGED if by_name(name).effect == "learning"])
def test_i88_a_learning_lever_changes_what_is_learnt(train: Train, name: str) -> None:
    if CHANGED[name].get("refused"):
        from leverl.errors import DataError

        with pytest.raises(DataError, match="max_prompt_length"):
            pair(train, name)
        return
    base, changed = pair(train, name)
    assert curve(base, training) != curve(changed, training)


@pytest.mark.parametrize("name", [name for name in CHANGED if by_name(name).effect == "cost"])
def test_i88_a_cost_lever_leaves_the_results_alone_up_to_rounding(train: Train, name: str) -> None:
    base, changed = pair(train, name)
    for (_, before), (_, after) in zip(curve(base, training), curve(changed, training), strict=True):
        for metric in before.keys() & after.keys() - {
            "ratio/histogram",
            "ratio/first",
            "train/skipped_updates",
        }:
            assert after[metric] == pytest.approx(before[metric], rel=1e-3, abs=1e-5), metric


@pytest.mark.parametrize("name", [name for name in CHANGED if by_name(name).effect == "logging"])
def test_i88_a_logging_lever_leaves_training_bit_equal(train: Train, name: str) -> None:
    base, changed = pair(train, name)
    steps = min(base.record.step, changed.record.step)
    assert curve(base, training)[1 : steps + 1] == curve(changed, training)[1 : steps + 1]
