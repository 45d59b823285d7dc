"""RL post-training for language models that tunes itself.

The public names below are loaded on first use, so that `import leverl` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leverl.api import evaluate, train, train_with_verl, tune
    from leverl.engine.train.evaluate import Evaluation
    from leverl.engine.train.run import Result
    from leverl.tune.model import Winner
    from leverl.tune.optuna_sampler import LeverlSampler

__version__ = "0.1.0"

__all__ = ["Evaluation", "LeverlSampler", "Result", "Winner", "evaluate", "train", "train_with_verl", "tune"]

_HOME = {
    "train": "leverl.api",
    "tune": "leverl.api",
    "evaluate": "leverl.api",
    "train_with_verl": "leverl.api",
    "Result": "leverl.engine.train.run",
    "Evaluation": "leverl.engine.train.evaluate",
    "Winner": "leverl.tune.model",
    "LeverlSampler": "leverl.tune.optuna_sampler",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'leverl' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
