"""Runs small enough to repeat many times in a test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leverl
from leverl.engine.train.run import Result
from leverl.record.observer import Observer

SMALL = {
    "embedded_hidden_size": 32,
    "embedded_layers": 1,
    "embedded_heads": 2,
    "task": "copy",
    "length": 2,
    "train_size": 20,  # an epoch ends within a few steps
    "eval_size": 12,
    "batch_size": 32,
    "group_size": 4,
    "mini_batch_size": 16,
    "max_response_length": 4,
    "steps": 6,
    "eval_every": 2,
    "save_every": 2,
}


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Result]:
    """`train("name", recipe="grpo", **settings)` runs a small training in a temporary folder."""

    def run(name: str, recipe: str = "grpo", *, observer: Observer | None = None, **settings: Any) -> Result:
        small = dict(SMALL)
        if recipe == "ppo":
            small.pop("group_size")
        return leverl.train(recipe, {**small, **settings}, name=name, out=tmp_path, observer=observer)

    return run
