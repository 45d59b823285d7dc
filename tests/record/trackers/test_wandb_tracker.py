"""What W&B's own offline files hold."""

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leverl.record.run_record import Outcome
from leverl.record.tracking import Ending, TrackedRun, TrackedStudy, open_trackers

pytest.importorskip("wandb")

_BLOCK = 32768  # the file is a LevelDB log: blocks of records, each with checksum, length and kind
_HEADER = 7


def records(path: Path) -> Iterator[Any]:
    """The records of a `.wandb` file; a record longer than a block comes in parts."""
    from wandb.proto import wandb_internal_pb2

    data, at, whole = path.read_bytes(), _HEADER, b""
    while at < len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + _HEADER])
        whole += data[at + _HEADER : at + _HEADER + length]
        at += _HEADER + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield wandb_internal_pb2.Record.FromString(whole)
            whole = b""


def items(found: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in found}


class Stored:
    """An offline run, read back."""

    def __init__(self, path: Path) -> None:
        rows = list(records(path))
        self.run = next(row.run for row in rows if row.WhichOneof("record_type") == "run")
        self.config = items(self.run.config.update)
        self.history = [items(row.history.item) for row in rows if row.WhichOneof("record_type") == "history"]
        self.exit = [row.exit.exit_code for row in rows if row.WhichOneof("record_type") == "exit"]
        self.summary: dict[str, Any] = {}
        for row in rows:
            if row.WhichOneof("record_type") == "summary":
                self.summary |= items(row.summary.update)
        self.text = path.read_bytes()


def stored(folder: Path) -> dict[str, Stored]:
    """Offline runs below `folder`, by id."""
    import wandb

    wandb.teardown()  # its files are written by another process, which this ends as the end of Python does
    found = [Stored(path) for path in sorted(folder.glob("wandb/offline-run-*/*.wandb"))]
    return {run.run.run_id: run for run in found}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, tools: Any) -> dict[str, Stored]:
    study = tools.study_in(tmp_path_factory.mktemp("wandb"))
    tools.publish(open_trackers(["wandb"])["wandb"], study)
    return stored(study.folder)


def test_a_study_is_a_group_and_its_phases_are_job_types(published: dict[str, Stored]) -> None:
    found = {run.run.display_name: (run.run.run_group, run.run.job_type) for run in published.values()}
    assert found == {
        "001-s1000": ("lr kl", "search"),
        "002-s3000": ("lr kl", "confirm"),
        "lr kl": ("lr kl", "verdict"),
    }


def test_config_holds_levers_seed_and_what_the_study_shares(published: dict[str, Stored]) -> None:
    config = published["lr-kl-001-s1000-abcd"].config
    assert config["actor_learning_rate"] == 0.01
    assert config["seed"] == 1000
    assert config["target"] == "grpo"
    assert config["actor"] == {"learning_rate": 0.01}
    assert config["tags"] == {"config": "c001", "phase": "search"}


def test_history_is_by_step_and_ends_with_summary_and_exit_code(published: dict[str, Stored]) -> None:
    run = published["lr-kl-001-s1000-abcd"]
    assert [row["_step"] for row in run.history] == [0, 1, 2, 3, 4]
    assert [row["eval/score"] for row in run.history] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert math.isnan(run.history[2]["critic/score/mean"])
    assert (run.summary["score"], run.summary["outcome"], run.exit) == (0.3, "finished", [0])
    assert published["lr-kl-002-s3000-abcd"].exit == [1]


def test_the_verdict_is_a_run_of_its_own(published: dict[str, Stored], study: TrackedStudy) -> None:
    verdict = published[study.id]
    assert verdict.run.notes == "Use c001."
    assert (verdict.summary["gain"], verdict.summary["winner"]) == (0.2, "c001")
    assert verdict.config["actor_learning_rate"] == 0.01


def test_the_hint_is_the_command_that_uploads(study: TrackedStudy, tools: Any) -> None:
    tracker = open_trackers(["wandb"])["wandb"]
    assert tracker.hint == ""
    tracker.open_run(tools.run_of(study, 1, 1000)).close(Ending(Outcome.FINISHED))
    assert tracker.hint == f"to upload: wandb sync '{study.folder}'/wandb/offline-run-*"


def test_a_run_goes_on_under_the_same_id(study: TrackedStudy, tools: Any) -> None:
    for since in (None, 1):
        tracker = open_trackers(["wandb"])["wandb"]
        run = tracker.open_run(tools.run_of(study, 1, 1000, since=since))
        run.log(2 if since else 1, {"eval/score": 0.5})
        run.close(Ending(Outcome.STOPPED))
    paths = sorted(study.folder.glob("wandb/offline-run-*/*.wandb"))
    assert len(paths) == 2
    stored(study.folder)
    assert {Stored(path).run.run_id for path in paths} == {"lr-kl-001-s1000-abcd"}
    assert all(Stored(path).run.resume for path in paths)


def test_environment_says_where_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, study: TrackedStudy, tools: Any
) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "elsewhere"))
    tracker = open_trackers(["wandb"])["wandb"]
    assert tracker.place == "offline//mine"
    tracker.open_run(tools.run_of(study, 1, 1000)).close(Ending(Outcome.FINISHED))
    (run,) = stored(tmp_path / "elsewhere").values()
    assert run.run.project == "mine"
    assert not (study.folder / "wandb").exists()


def test_online_only_with_a_key_or_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_trackers(["wandb"])["wandb"].place == "offline//leverl"
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    assert open_trackers(["wandb"])["wandb"].place == "online//leverl"
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert open_trackers(["wandb"])["wandb"].place == "offline//leverl"


def test_no_command_line_is_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", ["leverl", "train", "reward.api_key=quite-secret"])
    run = TrackedRun("try1-abcd", "try1", tmp_path / "try1", "train", 0, config={"seed": 0})
    open_trackers(["wandb"])["wandb"].open_run(run).close(Ending(Outcome.FINISHED))
    stored(tmp_path / "try1")
    files = [path for path in (tmp_path / "try1").rglob("*") if path.is_file()]
    assert files
    assert not any(b"quite-secret" in path.read_bytes() for path in files)
