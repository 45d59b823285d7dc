"""`leverl train --track NAME`: which trackers are opened, what they are told, what people are told. No engine."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leverl import api
from leverl.cli.main import main
from leverl.record import tracking
from leverl.record.run_record import Outcome, RunRecord, Score
from leverl.record.tracking import Ending, TrackedRun


class Kept:
    """A tracker, and its one run, that keeps what it is given."""

    place = "memory"
    hint = "look here"

    def __init__(self) -> None:
        self.run: TrackedRun | None = None
        self.steps: list[int] = []
        self.ending: Ending | None = None

    def open_run(self, run: TrackedRun) -> "Kept":
        self.run = run
        return self

    def log(self, step: int, metrics: Any) -> None:
        self.steps.append(step)

    def close(self, ending: Ending) -> None:
        self.ending = ending


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kept:
    """The only tracker there is; a recorder stands in for the engine."""
    kept = Kept()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tracking, "open_trackers", lambda names: dict.fromkeys(names, kept))
    monkeypatch.setattr(api, "train", train)
    return kept


def train(config: str, overrides: tuple[str, ...], **how: Any) -> SimpleNamespace:
    folder = Path(config) if how["resume"] else how["out"] / (how["name"] or "made-up")
    record = RunRecord(folder.name, 0, 2, config, started="2026-11-30T11:30:00+00:00")
    how["observer"].started(folder.name, {"seed": 0}, record)
    for step in (1, 2):
        how["observer"].stepped(step, {"eval/score": 0.5}, ())
    record = record.with_(outcome=Outcome.FINISHED, step=2, score=Score(0.5, 0.1, 1))
    how["observer"].ended(record)
    return SimpleNamespace(
        folder=folder, record=record, checkpoint=None, outcome=Outcome.FINISHED, score=record.score
    )


def test_a_run_is_tracked_and_the_hint_is_said(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["train", "grpo", "--track", "kept", "--track", "kept", "--out", "here", "--name", "try1"]) == 0
    )
    assert kept.run is not None
    assert (kept.run.name, kept.run.folder) == ("try1", Path("here/try1"))
    assert kept.steps == [1, 2]
    assert kept.ending is not None
    assert kept.ending.outcome is Outcome.FINISHED
    assert capsys.readouterr().out.count("kept: look here") == 1


def test_a_resumed_run_is_tracked_in_its_own_folder(kept: Kept, tmp_path: Path) -> None:
    assert main(["train", "--resume", "runs/try1", "--track", "kept", "-q"]) == 0
    assert kept.run is not None
    assert kept.run.folder == tmp_path / "runs" / "try1"


def test_json_stays_one_object(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "grpo", "--track", "kept", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["outcome"] == "finished"
    assert "kept: look here" in told.err


def test_an_unknown_tracker_ends_it_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api, "train", lambda *_, **__: pytest.fail("it started"))
    assert main(["train", "grpo", "--track", "wanbd"]) == 2
    assert "Did you mean 'wandb'?" in capsys.readouterr().err


def test_a_missing_package_is_exit_code_4(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("leverl.plugins.find_spec", lambda module: None)
    assert main(["train", "grpo", "--track", "mlflow"]) == 4
    assert "pip install 'leverl[mlflow]'" in capsys.readouterr().err
