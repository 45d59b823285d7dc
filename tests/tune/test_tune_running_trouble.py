"""What the disk and the limits do to a study that is running."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leverl.errors import EnvironmentProblem
from leverl.executors.local import LocalExecutor
from leverl.executors.protocol import Handle
from leverl.record.run_record import Outcome
from leverl.tune.running import scheduler, watchdog
from leverl.tune.store.disk import LEAST_LEFT, check_room
from leverl.tune.store.storage import Store
from leverl.tune.view import read_study


def outcomes(folder: Path) -> dict[str, Outcome | None]:
    return {state.run.id: state.outcome for state in read_study(folder).history.runs}


def test_a_disk_that_fills_up_starts_no_further_run(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_from_the_third(study: Path) -> None:
        asked.append(study)
        check_room(study, LEAST_LEFT if len(asked) <= 2 else 1 << 60)

    asked: list[Path] = []
    monkeypatch.setattr(scheduler, "check_room", full_from_the_third)
    with pytest.raises(EnvironmentProblem, match=r"too little for another run.*leverl tune --resume .*/s$"):
        tools.tune(tmp_path, tools.study())
    assert len(outcomes(tmp_path / "s")) == 2  # none was written down that has no process
    monkeypatch.undo()
    tools.tune(tmp_path, tmp_path / "s", resume=True)
    assert list(outcomes(tmp_path / "s").values()) == [Outcome.FINISHED] * 10


def test_a_run_that_finds_the_disk_full_is_not_to_blame(tmp_path: Path, tools: ModuleType) -> None:
    recorder = tools.Recorder()
    tools.tune(tmp_path, tools.study(), {"full": {"001-s1000": 1, "002-s1000": 2}}, observer=recorder)
    found = outcomes(tmp_path / "s")
    assert (found["001-s1000"], found["002-s1000"]) == (Outcome.FINISHED, Outcome.LOST)
    assert any(
        "002-s1000" in text and "No space left on device" in text and "learnt from" not in text
        for text in recorder.events
    )


def cannot_write(folder: Path) -> OSError:
    return PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder / "clock.json"))


def no_space(folder: Path) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("error", "told"), [(cannot_write, "cannot write to .*clock.json"), (no_space, "no space is left")]
)
def test_a_file_that_cannot_be_written_during_a_study_is_told_in_words(
    error: Any, told: str, tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_clock(folder: Path, seconds: float, phase: str) -> None:
        if (folder / "trials" / "003-s1000").exists():
            raise error(folder)

    monkeypatch.setattr(scheduler, "write_clock", write_clock)
    with pytest.raises(EnvironmentProblem, match=told) as caught:
        tools.tune(tmp_path, tools.study())
    assert caught.value.exit_code == 4
    monkeypatch.undo()
    tools.tune(tmp_path, tmp_path / "s", resume=True)
    assert len(outcomes(tmp_path / "s")) == 10


def test_a_database_that_breaks_during_a_study_is_told_in_words(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(self: Store, *args: Any, **more: Any) -> None:
        import sqlite3

        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorname = "SQLITE_CORRUPT"
        raise error

    monkeypatch.setattr(Store, "add", add)
    with pytest.raises(EnvironmentProblem, match=r"study.db is damaged .*makes the database anew"):
        tools.tune(tmp_path, tools.study())


def test_a_run_that_is_quicker_than_its_limit_keeps_its_score(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(LocalExecutor):
        """The kill comes when the run is over."""

        killed = 0

        def stop(self, handle: Handle, *, kill: bool = False) -> None:
            self.killed += kill
            tools.wait_until(lambda: self.poll(handle) is not None)

        def wait(self, handles: Iterable[Handle], seconds: float) -> None:
            super().wait(handles, 0.0)

    monkeypatch.setattr(watchdog, "CHECK_SECONDS", 0.0)
    executor = Late()
    tools.tune(tmp_path, tools.study(limits={"run_hours": 1e-9}), executor=executor)
    assert executor.killed > 0
    assert list(outcomes(tmp_path / "s").values()) == [Outcome.FINISHED] * 10


def test_what_a_tuner_leaves_that_died_before_its_first_word_is_no_study(
    tmp_path: Path, tools: ModuleType
) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / ".lock").touch()
    (folder / ".study.yaml.123.tmp").write_text("name:")
    tools.tune(tmp_path, tools.study())
    assert len(outcomes(folder)) == 10
