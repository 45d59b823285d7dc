"""The first article's Optuna listing (S1, 3.2) runs, its `train_with_verl` being ours, on the small model."""

import runpy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest

import leverl
from leverl.config import loader
from leverl.engine.policy.embedded import EmbeddedSpec, build_embedded
from leverl.errors import ConfigError, TrainingFailed
from leverl.record.run_record import Outcome, load_record

LISTING = Path(__file__).parents[2] / "examples" / "optuna_listing.py"
SMALL = {"embedded_hidden_size": 16, "embedded_layers": 1, "embedded_heads": 2}
SHORT = {"steps": 2, "max_response_length": 4, "train_size": 64, "eval_size": 8}


@pytest.fixture(autouse=True)
def _quiet_and_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def objective(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Callable[[optuna.Trial], float]:
    """The listing's objective; `settings` only make its runs small."""
    monkeypatch.setattr(leverl, "train_with_verl", partial(leverl.train_with_verl, **settings), raising=False)
    found: Callable[[optuna.Trial], float] = runpy.run_path(str(LISTING))["objective"]
    return found


def test_the_listing_runs_and_its_values_reach_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective(monkeypatch, **SMALL, **SHORT), n_trials=2)

    assert [trial.state for trial in study.trials] == [optuna.trial.TrialState.COMPLETE] * 2
    for trial in study.trials:
        folder = Path(f"checkpoints/trial_{trial.number}")
        record, config = load_record(folder / "run.json"), loader.load(folder).config
        assert record is not None
        assert record.outcome is Outcome.FINISHED
        assert record.score is not None
        assert trial.value == record.score.mean
        assert config.algorithm.name == "ppo"
        assert config.actor.learning_rate == trial.params["learning_rate"]
        assert config.algorithm.kl_coef == trial.params["kl_coef"]
        assert config.algorithm.ppo_epochs == trial.params["ppo_epochs"]
        assert config.rollout.batch_size == trial.params["batch_size"]


def test_a_pretrained_model_gets_settings_for_one(tmp_path: Path) -> None:
    build_embedded(tmp_path / "llama", EmbeddedSpec(hidden_size=16, layers=1, heads=2, alphabet="ascii"))
    config = {"model": str(tmp_path / "llama"), "lr": 2e-6, "kl_coef": 0.1, "ppo_epochs": 1, "batch_size": 32}

    score = leverl.train_with_verl(config, **SHORT, save_path="runs/llama")

    trained = loader.load(Path("runs/llama")).config
    assert 0 <= score <= 1
    assert (trained.actor.learning_rate, trained.critic.learning_rate) == (2e-6, 1e-5)
    assert (trained.algorithm.name, trained.algorithm.kl_in, trained.rollout.group_size) == (
        "ppo",
        "reward",
        1,
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"lr": 1e-3, "learning_rate": 1e-4}, "'learning_rate' is given twice"),
        ({"lr": 1e-3, "kl_ceof": 0.1}, "Did you mean 'kl_coef'"),
    ],
)
def test_wrong_keys_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        leverl.train_with_verl(config)


def test_without_held_out_prompts_there_is_no_score() -> None:
    files = {"task": None, "train_files": [str(LISTING.parent / "prompts.jsonl")]}
    with pytest.raises(TrainingFailed, match="eval_files"):
        leverl.train_with_verl({"batch_size": 32, "save_path": "runs/blind"}, **SMALL, steps=1, **files)
