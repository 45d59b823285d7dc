"""What the disk or the database refuses a tuner, in words: what happened, where, and what to do about it."""

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from leverl.errors import EnvironmentProblem, LeverlError

LOCK_SECONDS: Final = 60.0
"""How long the tuner waits for another program that has locked the database."""

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_IN_THE_WAY: Final = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST)

_DAMAGED: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")


class DatabaseDamaged(EnvironmentProblem):
    """The study's database cannot be read; it can be made anew from the folders of the runs."""


@contextmanager
def clear_errors(database: Path) -> Iterator[None]:
    """Say in words what goes wrong with this database, or with the files of the study that lie beside it.

    Raises:
        EnvironmentProblem: no space, no permission, something in the way, a locked or foreign database.
        DatabaseDamaged: a damaged one.
    """
    with file_errors(database.parent), database_errors(database):
        yield


@contextmanager
def file_errors(folder: Path) -> Iterator[None]:
    """Raises: EnvironmentProblem: a file of the study in `folder` cannot be written."""
    try:
        yield
    except OSError as error:
        text = _about_file(error, folder)
        if text is None:
            raise
        raise EnvironmentProblem(text) from error


@contextmanager
def database_errors(database: Path) -> Iterator[None]:
    """Raises: EnvironmentProblem, DatabaseDamaged: this database cannot be used."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (sqlite3.Error, SQLAlchemyError, StorageInternalError) as error:
        cause = _sqlite_error(error)
        problem = None if cause is None else _about_database(cause, database)
        if problem is None:
            raise
        raise problem from error
    except RuntimeError as error:
        if isinstance(error, LeverlError) or "table schema" not in str(error):
            raise
        raise EnvironmentProblem(_about_version(database)) from error


def full_disk(message: str) -> bool:
    """Whether a run, by its last words, ended because the disk was full: no fault of its configuration."""
    return any(words in message for words in ("No space left on device", "Disk quota exceeded"))


def _about_file(error: OSError, folder: Path) -> str | None:
    place = Path(error.filename) if isinstance(error.filename, str) else folder
    if error.errno in _FULL:
        return _about_full_disk(place, folder)
    inside, whole = place.resolve(), folder.resolve()
    if not inside.is_relative_to(whole) and not whole.is_relative_to(inside):
        return None  # not the study's
    if error.errno in _REFUSED:
        return (
            f"cannot write to {place}: {_lower(error.strerror)}. Make {folder} writable for this user, or choose "
            "another place with --out."
        )
    if error.errno in _IN_THE_WAY:
        return (
            f"cannot make {place}: {_lower(error.strerror)}. Something else of that name is in the way: move it, "
            "or choose another place with --out."
        )
    if error.errno == errno.ENOENT:
        return (
            f"{place} is gone: was {folder} deleted or moved while it was being tuned? Put it back, then "
            f"{_resume(folder)}"
        )
    if error.errno == errno.EIO:
        return (
            f"the disk of {place} reports errors ({_lower(error.strerror)}). Mend it, then {_resume(folder)}"
        )
    return None


def _about_database(error: sqlite3.Error, path: Path) -> EnvironmentProblem | None:
    name, folder = getattr(error, "sqlite_errorname", ""), path.parent
    if name.startswith(_DAMAGED) or (name == "SQLITE_ERROR" and "no such" in str(error)):
        return DatabaseDamaged(
            f"{path} is damaged ({error}). The runs in {folder} are intact, and "
            f"leverl tune --resume {folder} makes the database anew from them."
        )
    if name.startswith("SQLITE_FULL"):
        return EnvironmentProblem(_about_full_disk(path, folder))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return EnvironmentProblem(
            f"another program has kept {path} locked for {LOCK_SECONDS:.0f} seconds (a dashboard, a database "
            f"browser, a backup?). Close it, then {_resume(folder)}"
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return EnvironmentProblem(
            f"cannot open {path} for writing ({error}). Make {folder} and all in it writable for this user, or "
            "copy the study to another place."
        )
    if name.startswith("SQLITE_IOERR"):
        return EnvironmentProblem(
            f"the disk of {path} reports errors ({error}). See that it is sound and not full, then {_resume(folder)}"
        )
    return None


def _about_full_disk(place: Path, folder: Path) -> str:
    disk = place
    while not disk.exists():
        disk = disk.parent
    left = shutil.disk_usage(disk).free
    return (
        f"no space is left for {place} (disk full or quota used up, {left / 2**20:.0f} MiB free). What is finished is "
        f"safe, and runs that are alive go on. Free some space, then {_resume(folder)}"
    )


def _about_version(path: Path) -> str:
    from optuna.version import __version__

    return (
        f"{path} was written by a version of Optuna whose tables differ from those of {__version__}, which is "
        f"installed. Either convert it (optuna storage upgrade --storage sqlite:///{path.resolve()}), or install a "
        "version of Optuna as new as the one that wrote it (pip install --upgrade optuna)."
    )


def _resume(folder: Path) -> str:
    return f"go on with: leverl tune --resume {folder}"


def _lower(text: str | None) -> str:
    return (text or "").lower()


def _sqlite_error(error: BaseException | None) -> sqlite3.Error | None:
    """What SQLite itself said, under what SQLAlchemy and Optuna make of it."""
    while error is not None and not isinstance(error, sqlite3.Error):
        error = getattr(error, "orig", None) or error.__cause__ or error.__context__
    return error
