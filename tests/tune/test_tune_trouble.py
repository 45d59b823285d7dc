"""A full disk, a folder that cannot be written, a damaged or locked database: said clearly, and mended if possible."""

import errno
import json
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leverl.errors import ConfigError, EnvironmentProblem
from leverl.record.run_record import Outcome
from leverl.tune.model import Run
from leverl.tune.plan import Plan, prepare
from leverl.tune.store import trouble
from leverl.tune.store.decisions import read_decisions, write_decision
from leverl.tune.store.disk import check_room
from leverl.tune.store.lock import LOCK, locked
from leverl.tune.store.rebuild import _set_aside as set_aside
from leverl.tune.store.rebuild import _what_is_wrong, open_store
from leverl.tune.store.storage import DATABASE, Entry, Store
from leverl.tune.store.trouble import DatabaseDamaged, clear_errors, database_errors, full_disk
from leverl.tune.view import load_stored


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tools: ModuleType) -> Path:
    """A study with runs of every kind."""
    out = tmp_path_factory.mktemp("finished")
    tools.tune(out, tools.study(seed=4), {"oom_above": 5e-2, "nan_above": 8e-3})
    return out / "s"


@pytest.fixture
def plan(finished: Path, tmp_path: Path) -> Plan:
    """The same study, to be damaged."""
    shutil.copytree(finished, tmp_path / "s")
    return prepare(load_stored(tmp_path / "s"), tmp_path / "s")


def entries(store: Store) -> list[Entry]:
    """What matters of the runs: not the numbers that Optuna gives them."""
    return [replace(entry, number=-1, trial_id=-1, folder=Path(entry.run.id)) for entry in store.entries]


def trials(folder: Path) -> dict[str, Any]:
    """Values, parameters and curves as Optuna finds them."""
    import optuna

    storage = optuna.storages.RDBStorage(f"sqlite:///{folder / DATABASE}")
    study = optuna.load_study(study_name="s", storage=storage)
    found = {
        trial.user_attrs["run_id"]: (trial.state, trial.values, trial.params, trial.intermediate_values)
        for trial in study.get_trials()
    }
    storage.remove_session()
    storage.engine.dispose()
    return found


def what_is_wrong(plan: Plan, path: Path, decided: Any) -> str:
    try:
        return _what_is_wrong(plan, path, decided)
    except DatabaseDamaged as error:
        return str(error)


# --- a damaged database -----------------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(20_000))


def truncated(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for page in range(4, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def deleted(path: Path) -> None:
    path.unlink()


def without_trials(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE trials")
        connection.commit()


def without_a_column(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE trials RENAME COLUMN number TO digit")
        connection.commit()


def older(path: Path) -> None:
    """A backup from before the last run."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM trials WHERE number = (SELECT max(number) FROM trials)")
        connection.commit()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (garbage, "is damaged (file is not a database)"),
        (truncated, "is damaged ("),
        (overwritten, "is damaged ("),
        (emptied, "had lost 10 of 10 runs"),
        (deleted, "was missing"),
        (without_trials, "had lost 10 of 10 runs"),
        (without_a_column, "is damaged ("),
        (older, "had lost 1 of 10 runs"),
    ],
)
def test_damage_is_found(plan: Plan, damage: Callable[[Path], None], told: str) -> None:
    path, decided = plan.folder / DATABASE, read_decisions(plan.folder)
    assert what_is_wrong(plan, path, decided) == ""
    damage(path)
    assert f"{path} {told}" in what_is_wrong(plan, path, decided)


@pytest.mark.parametrize("damage", [garbage, deleted, older])
def test_a_damaged_database_is_made_anew_from_the_runs(plan: Plan, damage: Callable[[Path], None]) -> None:
    path = plan.folder / DATABASE
    with Store(plan.folder, "s", maximize=True) as store:
        before = entries(store)
    seen = trials(plan.folder)
    damage(path)
    broken = path.exists()
    said: list[str] = []
    with open_store(plan, said.append) as store:
        assert entries(store) == before
    assert trials(plan.folder) == seen
    assert len(said) == 1
    assert "made anew from the folders of 10 runs" in said[0]
    kept = plan.folder / "study.db.damaged"
    assert kept.exists() == broken == (kept.name in said[0])
    with open_store(plan, said.append):
        assert len(said) == 1  # now it is whole
    assert not (plan.folder / ".rebuilt").exists()


def test_what_sqlite_left_beside_a_damaged_database_goes_with_it(plan: Plan) -> None:
    """A stale journal would be played back into the new database."""
    for name in ("study.db.damaged", "study.db.damaged-2"):
        path = plan.folder / DATABASE
        path.write_bytes(name.encode())
        path.with_name(f"{DATABASE}-journal").write_bytes(b"stale")
        assert set_aside(path).endswith(f"kept as {name}")
        assert list(plan.folder.glob(f"{DATABASE}-*")) == []
        assert (plan.folder / name).read_text() == name
        assert (plan.folder / f"{name}-journal").read_bytes() == b"stale"


def test_a_whole_database_is_left_alone(plan: Plan) -> None:
    before = (plan.folder / DATABASE).read_bytes()
    said: list[str] = []
    with open_store(plan, said.append) as store:
        assert len(store.entries) == 10
    assert said == []
    assert (plan.folder / DATABASE).read_bytes() == before


def test_a_run_that_nobody_has_written_down_is_not_invented(plan: Plan) -> None:
    (plan.folder / "launch" / "000-s41000" / "decision.json").write_text("{")
    garbage(plan.folder / DATABASE)
    with pytest.raises(EnvironmentProblem, match=r"is damaged .*1 of its runs.*000-s41000.*--name") as caught:
        open_store(plan, str)
    assert caught.value.exit_code == 4
    assert (plan.folder / DATABASE).exists()


def test_reading_a_damaged_study_says_how_it_is_mended(plan: Plan) -> None:
    garbage(plan.folder / DATABASE)
    with pytest.raises(DatabaseDamaged, match=r"study\.db is damaged \(file is not a database\).*--resume"):
        Store(plan.folder, "s", maximize=True)


def test_decisions_say_all_that_the_database_says(tmp_path: Path) -> None:
    runs = [
        Entry(Run("001-s2", "c001", {"kl_coef": 1e-3, "x": True}, 2, 4, "search"), tmp_path, "t1"),
        Entry(
            Run("000-s1", "c000", {}, 1, 4, "search", Path("/a")), tmp_path, "t", 2, Outcome.LOST, "why", True
        ),
    ]
    for order, entry in enumerate(runs):
        write_decision(tmp_path, entry, order)
    found = read_decisions(tmp_path)
    assert [one.run for one in found] == [entry.run for entry in runs]
    assert (found[1].token, found[1].attempts, found[1].outcome, found[1].message, found[1].continued) == (
        "t", 2, Outcome.LOST, "why", True,
    )  # fmt: skip
    assert type(found[0].run.params["x"]) is bool
    assert read_decisions(tmp_path / "no study") == ()


# --- a database that others hold, or that is not ours -------------------------------------------------------------


def test_a_locked_database(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leverl.tune.store.storage.LOCK_SECONDS", 0.01)
    monkeypatch.setattr("leverl.tune.store.rebuild.LOCK_SECONDS", 0.01)
    with closing(sqlite3.connect(plan.folder / DATABASE)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for use in (lambda: Store(plan.folder, "s", maximize=True), lambda: open_store(plan, str)):
            with pytest.raises(
                EnvironmentProblem, match=r"another program has kept .*study\.db locked.*--resume"
            ):
                use()


def test_a_database_of_another_optuna(plan: Plan) -> None:
    with closing(sqlite3.connect(plan.folder / DATABASE)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v9.9.9.z'")
        connection.commit()
    with pytest.raises(
        EnvironmentProblem, match=r"another version|version of Optuna.*optuna storage upgrade"
    ):
        open_store(plan, str)
    assert not (plan.folder / "study.db.damaged").exists()


def test_a_folder_in_place_of_the_database(plan: Plan) -> None:
    (plan.folder / DATABASE).unlink()
    (plan.folder / DATABASE).mkdir()
    with pytest.raises(EnvironmentProblem, match=r"cannot open .*study\.db for writing"):
        open_store(plan, str)


def test_a_database_that_cannot_grow(plan: Plan) -> None:
    def grow(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with database_errors(plan.folder / DATABASE):
            connection.execute("CREATE TABLE more AS SELECT hex(randomblob(1000000)) AS text")

    told = r"no space is left for .*study\.db.*MiB free.*--resume"
    with (
        closing(sqlite3.connect(plan.folder / DATABASE)) as connection,
        pytest.raises(EnvironmentProblem, match=told),
    ):
        grow(connection)


def test_what_optuna_wraps_is_unwrapped(tmp_path: Path) -> None:
    """Optuna itself blames the data that was to be written."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import OperationalError

    said = sqlite3.OperationalError("database or disk is full")
    said.sqlite_errorname = "SQLITE_FULL"
    error = StorageInternalError("invalid data")
    error.__cause__ = OperationalError("INSERT", {}, said)
    with pytest.raises(EnvironmentProblem, match="no space is left"), clear_errors(tmp_path / DATABASE):
        raise error
    unknown = StorageInternalError("invalid data")
    with pytest.raises(StorageInternalError), clear_errors(tmp_path / DATABASE):
        raise unknown


# --- files ------------------------------------------------------------------------------------------------------


def os_error(number: int, path: Path | None) -> OSError:
    return OSError(number, os.strerror(number), *([] if path is None else [str(path)]))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "no space is left for {path} (disk full or quota used up, "),
        (errno.EDQUOT, "no space is left for {path} (disk full or quota used up, "),
        (errno.EACCES, "cannot write to {path}: permission denied. Make {folder} writable for this user, or"),
        (errno.EROFS, "cannot write to {path}: read-only file system. "),
        (errno.ENOTDIR, "cannot make {path}: not a directory. Something else of that name is in the way"),
        (errno.ENOENT, "{path} is gone: was {folder} deleted or moved while it was being tuned?"),
        (errno.EIO, "the disk of {path} reports errors (input/output error)."),
    ],
)
def test_errors_of_the_study_s_files(tmp_path: Path, number: int, text: str) -> None:
    path = tmp_path / "clock.json"
    path.touch()
    with pytest.raises(EnvironmentProblem) as caught, clear_errors(tmp_path / DATABASE):
        raise os_error(number, path)
    assert str(caught.value).startswith(text.format(path=path, folder=tmp_path))
    assert caught.value.exit_code == 4


def test_a_full_disk_seldom_says_where(tmp_path: Path) -> None:
    told = re.escape(f"no space is left for {tmp_path}")
    with pytest.raises(EnvironmentProblem, match=told), clear_errors(tmp_path / DATABASE):
        raise os_error(errno.ENOSPC, None)


def test_errors_that_are_not_the_study_s_pass(tmp_path: Path) -> None:
    for error in (
        os_error(errno.EACCES, Path("/elsewhere/x")),
        os_error(errno.EPIPE, None),
        RuntimeError("a bug"),
        ConfigError("wrong"),
    ):
        with pytest.raises(type(error)) as caught, clear_errors(tmp_path / "s" / DATABASE):
            raise error
        assert caught.value is error


def test_no_run_is_started_on_a_disk_that_has_filled_up(tmp_path: Path) -> None:
    check_room(tmp_path / "s")
    with pytest.raises(EnvironmentProblem, match=r"only \d+ MiB are free at .*tune --resume .*s$") as caught:
        check_room(tmp_path / "s", 1 << 60)
    assert caught.value.exit_code == 4


def test_a_run_that_died_of_a_full_disk_is_known_by_its_last_words() -> None:
    assert full_disk("OSError: [Errno 28] No space left on device: 'x'")
    assert full_disk("ended with exit code 1. OSError: [Errno 122] Disk quota exceeded")
    assert not full_disk("CUDA out of memory")


# --- the lock ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["", '{"pid": 1, "host": "x"}', "\0\0", '{"pid": "x"}'])
def test_a_lock_file_of_a_dead_tuner_holds_nobody_up(tmp_path: Path, left: str) -> None:
    (tmp_path / LOCK).write_text(left)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_who_holds_the_lock(tmp_path: Path) -> None:
    import socket

    with locked(tmp_path):
        for text, holder in (
            ((tmp_path / LOCK).read_text(), f"process {os.getpid()} on"),
            ("garbage", "another process. Two"),
            (json.dumps({"pid": 2**22 + 1, "host": socket.gethostname()}), "has ended, left behind on"),
            (json.dumps({"pid": 2**22 + 1, "host": "elsewhere"}), f"process {2**22 + 1} on elsewhere"),
        ):
            (tmp_path / LOCK).write_text(text)
            with pytest.raises(ConfigError, match=holder), locked(tmp_path):
                pass


def test_a_study_whose_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    with (
        pytest.raises(EnvironmentProblem, match=r"cannot make .*: file exists\. .*in the way"),
        locked(tmp_path / "s"),
    ):
        pass
    with (
        pytest.raises(EnvironmentProblem, match=r"cannot make .*: not a directory"),
        locked(tmp_path / "s" / "t"),
    ):
        pass


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_: Any, **__: Any) -> None:
        raise os_error(errno.EACCES, self.parent)

    monkeypatch.setattr(Path, "mkdir", refuse)
    with (
        pytest.raises(EnvironmentProblem, match=r"permission denied.*another place with --out"),
        locked(tmp_path / "s"),
    ):
        pass


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise os_error(errno.ENOLCK, None)

    monkeypatch.setattr("leverl.tune.store.lock.fcntl.flock", refuse)
    with pytest.raises(EnvironmentProblem, match="its file system has no locks"), locked(tmp_path):
        pass


def test_the_lock_is_given_back_where_a_study_ends_in_trouble(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem), locked(tmp_path), clear_errors(tmp_path / DATABASE):
        raise os_error(errno.ENOSPC, None)
    with locked(tmp_path):
        pass
    assert trouble.LOCK_SECONDS > 0
