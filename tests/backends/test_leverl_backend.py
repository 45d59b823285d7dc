import signal
import sys
from pathlib import Path

import pytest

from leverl.backends.leverl import LeverlBackend, create
from leverl.backends.protocol import Job
from leverl.config import loader
from leverl.errors import ConfigError
from leverl.record.layout import RunFolder
from leverl.record.process import TOKEN_VARIABLE, Exit
from leverl.record.run_record import Outcome, RunRecord

LIVE = {"batch_size": 256, "mini_batch_size": 128, "ppo_epochs": 1}


def test_levers_and_settings_are_put_on_top_of_the_base() -> None:
    backend = create("grpo", {**LIVE, "kl_coef": 0.02})
    found = backend.resolve({"actor_learning_rate": 3e-4}, {"seed": 7, "train.save_every": 0})
    assert found.config.algorithm.kl_coef == 0.02
    assert found.config.actor.learning_rate == 3e-4
    assert (found.config.seed, found.config.train.save_every) == (7, 0)
    assert found.params == {"actor_learning_rate": 3e-4}


def test_levers_without_effect_are_dropped_and_not_refused() -> None:
    backend = LeverlBackend("grpo", {**LIVE, "clip_range_high": 0.3})
    found = backend.resolve({"clip_range": 0.1, "mini_batch_size": 256})
    assert found.params == {"mini_batch_size": 256}
    assert found.config.algorithm.clip_range == backend.base.algorithm.clip_range
    assert found.config.algorithm.clip_range_high is None  # the user's, which does nothing here either


def test_impossible_combinations_are_refused() -> None:
    backend = LeverlBackend("grpo", LIVE)
    with pytest.raises(ConfigError, match="group_size = 7"):
        backend.resolve({"group_size": 7})


def test_a_base_with_a_setting_without_effect_is_still_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match=r"clip_range = 0.1 would have no effect"):
        LeverlBackend("grpo", {"mini_batch_size": 256, "batch_size": 256, "ppo_epochs": 1, "clip_range": 0.1})


def test_a_rate_for_a_pretrained_model_may_be_searched() -> None:
    backend = LeverlBackend("grpo", {"model": "some/model", "actor_learning_rate": 1e-6})
    assert backend.resolve({"actor_learning_rate": 3e-4}).config.actor.learning_rate == 3e-4


def test_keys_are_paths() -> None:
    assert LeverlBackend("grpo", {}).keys["kl_coef"] == ("algorithm.kl_coef",)


def test_the_command_trains_exactly_the_configuration(tmp_path: Path) -> None:
    backend = LeverlBackend("grpo", LIVE)
    config = backend.resolve({"clip_range": 0.1, "mini_batch_size": 256, "kl_coef": 0.0}, {"seed": 5}).config
    job = Job("001-s5", tmp_path / "trials" / "001-s5", tmp_path / "launch" / "001-s5", "secret")
    command = backend.command(config, job)
    assert command.argv == (
        sys.executable, "-m", "leverl", "train", str(job.launch),
        "--out", str(tmp_path / "trials"), "--name", "001-s5", "--progress", "none",
    )  # fmt: skip
    assert command.env[TOKEN_VARIABLE] == "secret"
    assert command.env["OMP_NUM_THREADS"] == "1"
    assert "leverl.engine.train.run" in command.preload
    assert loader.load(job.launch).config == config  # though its clip_range has no effect
    assert not job.folder.exists()  # `train` refuses a folder that holds a run


def test_the_command_of_a_resumed_run(tmp_path: Path) -> None:
    backend = LeverlBackend("grpo", {})
    command = backend.command(backend.base, Job("r", tmp_path / "r", tmp_path / "l", "t", resume=True))
    assert command.argv[3:] == ("train", str(tmp_path / "r"), "--resume", "--progress", "none")


@pytest.mark.parametrize(
    ("recorded", "exit", "outcome"),
    [
        (Outcome.FINISHED, Exit(code=0), Outcome.FINISHED),
        (Outcome.NON_FINITE, Exit(code=3), Outcome.NON_FINITE),
        (Outcome.OUT_OF_MEMORY, Exit(), Outcome.OUT_OF_MEMORY),
        (Outcome.FINISHED, Exit(signal=signal.SIGKILL), Outcome.FINISHED),  # killed after its last word
        (Outcome.INTERRUPTED, Exit(code=143), Outcome.INTERRUPTED),
        (Outcome.INTERRUPTED, Exit(code=2), Outcome.CRASHED),  # the word of an earlier attempt
        (Outcome.INTERRUPTED, Exit(signal=signal.SIGKILL), Outcome.LOST),
        (None, Exit(), Outcome.LOST),
        (None, Exit(signal=signal.SIGKILL), Outcome.LOST),
        (None, Exit(signal=signal.SIGTERM), Outcome.INTERRUPTED),
        (None, Exit(signal=signal.SIGSEGV), Outcome.CRASHED),
        (None, Exit(code=4), Outcome.CRASHED),
    ],
)
def test_how_a_run_ended(tmp_path: Path, recorded: Outcome | None, exit: Exit, outcome: Outcome) -> None:
    RunRecord("r", 0, 4, "grpo", outcome=recorded).save(RunFolder(tmp_path).record)
    assert LeverlBackend("grpo", {}).outcome(tmp_path, exit) is outcome


def test_a_run_that_wrote_nothing(tmp_path: Path) -> None:
    assert LeverlBackend("grpo", {}).outcome(tmp_path, Exit(code=1)) is Outcome.CRASHED
    assert LeverlBackend("grpo", {}).outcome(tmp_path, Exit()) is Outcome.LOST


def test_portable_settings_can_be_trained_and_hold_what_matters(tmp_path: Path) -> None:
    import yaml

    base = tmp_path / "base.yaml"
    base.write_text(
        "extends: ppo\nbatch_size: 256\nmini_batch_size: 128\nppo_epochs: 1\nclip_range: 0.3\nkl_coef: 0.02\n"
    )
    backend = LeverlBackend(str(base), {"steps": 30})
    settings = backend.portable({"mini_batch_size": 256, "actor_learning_rate": 2e-4})
    assert settings["extends"] == "ppo"
    assert "clip_range" not in settings  # one update per rollout: it would be refused
    best = tmp_path / "best.yaml"
    best.write_text(yaml.safe_dump(dict(settings)))
    config = loader.load(best).config
    expected = backend.resolve({"mini_batch_size": 256, "actor_learning_rate": 2e-4}).config
    assert config == expected
