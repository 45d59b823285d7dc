"""`leverl train`: what reaches the API, what is said, how it exits. A recorder stands in for the engine."""

import errno
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from leverl import api
from leverl.cli.main import main
from leverl.config.loader import dump, load
from leverl.errors import EnvironmentProblem, NonFiniteLoss
from leverl.record.layout import RunFolder
from leverl.record.run_record import Outcome, RunRecord, Score, own_process


@dataclass(frozen=True)
class Result:
    folder: Path
    record: RunRecord
    checkpoint: Path | None = None

    @property
    def outcome(self) -> Outcome:
        return self.record.outcome or Outcome.LOST


@dataclass
class Engine:
    """Stands in for `api.train`: remembers the call and ends as told."""

    outcome: Outcome = Outcome.FINISHED
    message: str = ""
    score: Score | None = field(default_factory=lambda: Score(0.61, 0.03, 3))
    act: Callable[[], None] = lambda: None
    calls: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, config: str, overrides: tuple[str, ...], **how: Any) -> Result:
        self.calls.append({"config": config, "overrides": overrides, **how})
        folder = Path(config) if how["resume"] else how["out"] / (how["name"] or "made-up")
        record = RunRecord(
            id=folder.name, seed=0, until=200, source=config, step=200, seconds=52.0, **own_process()
        )
        record.save(RunFolder(folder).record)
        how["observer"].started(folder.name, {}, record)
        self.act()
        record = record.with_(outcome=self.outcome, message=self.message, score=self.score)
        record.save(RunFolder(folder).record)
        how["observer"].ended(record)
        return Result(folder, record)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    monkeypatch.chdir(tmp_path)
    engine = Engine()
    monkeypatch.setattr(api, "train", engine)
    return engine


def fail(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_what_reaches_the_api(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "ppo", "kl_coef=0.1", "--name", "try1", "steps=5", "--out", "here"]) == 0
    (call,) = engine.calls
    call.pop("observer")
    assert call == {
        "config": "ppo",
        "overrides": ("kl_coef=0.1", "steps=5"),
        "name": "try1",
        "out": Path("here"),
        "resume": False,
        "from_checkpoint": None,
        "clean": False,
    }
    out = capsys.readouterr().out
    assert "try1: finished · 0.61 ± 0.03 (last 3 evaluations) · 200 of 200 steps · 52 s\n" in out
    assert out.splitlines()[-1] == "next: leverl eval here/try1"


def test_a_training_process_of_the_tuner(engine: Engine, tmp_path: Path) -> None:
    """`python -m leverl train FOLDER --out PARENT --name ID --progress none`, and the same with --resume."""
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "config.yaml").write_text(dump(load().config), encoding="utf-8")
    assert main(["train", "launch", "--out", "trials", "--name", "012-s1", "--progress", "none"]) == 0
    assert main(["train", "trials/012-s1", "--resume", "--progress", "none"]) == 0
    assert [(call["config"], call["resume"], call["name"]) for call in engine.calls] == [
        ("launch", False, "012-s1"),
        ("trials/012-s1", True, None),
    ]


def test_resume_goes_on_as_it_was(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", "runs/try1"]) == 0
    assert engine.calls[0]["resume"] is True
    for extra in (["kl_coef=1"], ["--name", "x"], ["--clean"]):
        assert main(["train", "--resume", "runs/try1", *extra]) == 2
        assert "fork: leverl train --from runs/try1 key=value" in capsys.readouterr().err
    assert len(engine.calls) == 1


def test_fork_takes_settings_and_no_source(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--from", "runs/a", "kl_coef=0.1", "steps=9", "--name", "b"]) == 0
    assert main(["train", "--from", "runs/a", "--name", "c"]) == 0
    assert [call["overrides"] for call in engine.calls] == [("kl_coef=0.1", "steps=9"), ()]
    assert [call["from_checkpoint"] for call in engine.calls] == [Path("runs/a")] * 2
    assert main(["train", "grpo", "--from", "runs/a"]) == 2
    assert "leave 'grpo' out" in capsys.readouterr().err


def test_existing_name_offers_three_choices(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "grpo", "--name", "a"]) == 0
    capsys.readouterr()
    assert main(["train", "grpo", "--name", "a"]) == 2
    message = capsys.readouterr().err
    for choice in ("leverl train --resume runs/a", "--name a-2", "--clean"):
        assert choice in message
    assert len(engine.calls) == 1


def test_clean_asks_and_is_refused_without_a_terminal(
    engine: Engine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "grpo", "--name", "a"]) == 0
    assert main(["train", "grpo", "--name", "a", "--clean"]) == 2
    assert "no terminal to ask on. Add --yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    for answer, code in (("n", 2), ("y", 0)):
        monkeypatch.setattr("typer.confirm", lambda *args, answer=answer, **more: answer == "y")
        assert main(["train", "grpo", "--name", "a", "--clean"]) == code
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    assert main(["train", "grpo", "--name", "a", "--clean", "--yes"]) == 0
    assert [call["clean"] for call in engine.calls] == [False, True, True]
    assert main(["train", "grpo", "--clean"]) == 2


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "-x", ""])
def test_name_that_leads_elsewhere(engine: Engine, name: str) -> None:
    assert main(["train", "grpo", f"--name={name}"]) == 2
    assert engine.calls == []


@pytest.mark.parametrize(
    ("outcome", "message", "code"),
    [
        (Outcome.FINISHED, "", 0),
        (Outcome.STOPPED, "", 0),
        (Outcome.INTERRUPTED, "SIGINT at step 7", 130),
        (Outcome.INTERRUPTED, "SIGTERM at step 7", 143),
        (Outcome.NON_FINITE, "loss is NaN at step 7", 3),
        (Outcome.CRASHED, "KeyError: 'x'", 3),
        (Outcome.OUT_OF_MEMORY, "out of memory", 3),
    ],
)
def test_outcomes_and_exit_codes(
    engine: Engine, outcome: Outcome, message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.outcome, engine.message, engine.score = outcome, message, None
    assert main(["train", "grpo", "--name", "a", "--progress", "none"]) == code
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1].startswith("next: leverl ")
    if code == 3:
        assert captured.err == f"error: {message} (in runs/a)\n"
    if code > 100:
        assert captured.out.splitlines()[-1] == "next: leverl train --resume runs/a"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (EnvironmentProblem("no GPU here. Use device=cpu."), 4, "error: no GPU here. Use device=cpu.\n"),
        (NonFiniteLoss("grad is inf"), 3, "error: grad is inf\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/a"),
            4,
            "error: the disk is full (No space left on device: runs/a).",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "runs/a"),
            4,
            "error: cannot access runs/a: Permission denied.",
        ),
        (FileNotFoundError(errno.ENOENT, "No such file", "runs/a"), 3, "This is a bug in leverl"),
        (ZeroDivisionError("x"), 3, "This is a bug in leverl"),
        (
            ModuleNotFoundError("No module named 'x.y'", name="x.y"),
            4,
            "Python package 'x' cannot be imported",
        ),
        (ImportError("cannot import name", name="leverl.api"), 3, "This is a bug in leverl"),
    ],
)
def test_errors_become_one_message_and_their_exit_code(
    engine: Engine, error: Exception, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.act = fail(error)
    assert main(["train", "grpo", "--name", "a"]) == code
    err = capsys.readouterr().err
    assert words in err
    assert ("Traceback" in err) == ("bug" in words)
    engine.act = fail(error)
    assert main(["train", "grpo", "--name", "b", "-v"]) == code
    assert "Traceback" in capsys.readouterr().err


def test_second_ctrl_c_names_the_run_to_resume(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.act = fail(KeyboardInterrupt())
    assert main(["train", "grpo", "--progress", "none"]) == 130
    assert capsys.readouterr().out.splitlines()[-1] == "next: leverl train --resume runs/made-up"


def test_sigterm_outside_the_loop_exits_143_and_restores_the_handler(engine: Engine) -> None:
    before = signal.getsignal(signal.SIGTERM)
    engine.act = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert main(["train", "grpo"]) == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_ctrl_c_before_anything_exists(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "train", lambda *args, **how: fail(KeyboardInterrupt())())
    assert main(["train", "grpo"]) == 130


def test_json_is_one_object_on_stdout(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.act = lambda: print("a reward function prints")
    assert main(["train", "grpo", "--name", "a", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "folder": "runs/a",
        "outcome": "finished",
        "score": {"mean": 0.61, "standard_error": 0.03, "evaluations": 3},
        "step": 200,
        "until": 200,
        "seconds": 52.0,
        "checkpoint": None,
        "message": "",
        "next": "leverl eval runs/a",
    }
    assert "a reward function prints" in captured.err
    assert "a: finished" in captured.err


def test_json_of_an_error(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "gropo", "--json", "--dry-run"]) == 2
    captured = capsys.readouterr()
    about = json.loads(captured.out)["error"]
    assert (about["kind"], about["exit"]) == ("ConfigError", 2)
    assert captured.err == f"error: {about['message']}\n"


def test_quiet_leaves_the_next_command_only(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "grpo", "--name", "a", "-q"]) == 0
    assert capsys.readouterr().out == "next: leverl eval runs/a\n"


def test_dry_run_prints_a_configuration_that_loads(
    engine: Engine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", "rloo", "kl_coef=3e-6", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "256 = 1 × 256 (num_rollout_batches × rollout_micro_batch_size)" in out
    assert out.splitlines()[-1] == "next: leverl train rloo kl_coef=3e-6"
    yaml, _, _ = out.partition("\nresponses per iteration")
    (tmp_path / "c.yaml").write_text(yaml, encoding="utf-8")
    assert load(tmp_path / "c.yaml").config == load("rloo", ["kl_coef=3e-6"]).config
    assert engine.calls == []
    assert main(["train", "rloo", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["config"]["algorithm"]["name"] == "rloo"


def test_dry_run_of_a_fork_reads_the_run(
    engine: Engine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = load("rloo", ["steps=7"]).config
    (tmp_path / "run" / "checkpoints" / "step-000007").mkdir(parents=True)
    (tmp_path / "run" / "config.yaml").write_text(dump(config), encoding="utf-8")
    for origin in ("run", "run/checkpoints/step-000007"):
        assert main(["train", "--from", origin, "steps=9", "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert "  name: rloo\n" in out
        assert "  steps: 9\n" in out
        assert out.splitlines()[-1] == f"next: leverl train --from {origin} steps=9"


def test_verbose_shows_the_plan_first(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "grpo", "--name", "a", "-v"]) == 0
    assert capsys.readouterr().out.startswith("# Resolved from grpo.\n")
