"""Opens other people's Optuna studies, without changing anything in them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from leverl.errors import ConfigError, EnvironmentProblem
from leverl.plugins import nearest
from leverl.tune.optuna_log import quiet_optuna

if TYPE_CHECKING:
    import optuna

_SQLITE: Final = "sqlite:///"
_SQLITE_MAGIC: Final = b"SQLite format 3\x00"


@contextmanager
def open_study(storage: str, name: str | None) -> Iterator[tuple[str, "optuna.Study"]]:
    """The study and where it comes from (without a password).

    Raises:
        ConfigError: no such storage or study; names the studies that exist.
        EnvironmentProblem: the database needs a driver that is not installed.
    """
    import optuna

    with quiet_optuna():
        source, opened = _open(storage)
        try:
            names = sorted(optuna.get_all_study_names(storage=opened))
            chosen = _choose(source, names, name)
            yield source, optuna.load_study(study_name=chosen, storage=opened)
        finally:
            _close(opened)


def _choose(source: str, names: list[str], name: str | None) -> str:
    if not names:
        raise ConfigError(f"{source} holds no study of Optuna.")
    listed = ", ".join(names)
    if name is None and len(names) > 1:
        raise ConfigError(f"{source} holds {len(names)} studies. Choose one with --study: {listed}.")
    if name is not None and name not in names:
        raise ConfigError(f"{source} holds no study '{name}'.{nearest(name, names)} It holds: {listed}.")
    return names[0] if name is None else name


def _open(storage: str) -> tuple[str, Any]:
    """Where the studies are, in words and as a storage of Optuna."""
    if "://" not in storage:
        path = Path(storage)
        if not path.is_file():
            raise ConfigError(
                f"{storage} is neither a file nor a URL. Write the path of an SQLite file or of a journal, or a "
                "URL such as sqlite:///old.db."
            )
        return storage, _journal(path) if not _is_sqlite(path) else _sqlite(path)
    if storage.startswith(_SQLITE):
        path = Path(storage.removeprefix(_SQLITE))
        if not path.is_file():
            raise ConfigError(f"{storage}: there is no file {path.absolute()}.")
        if not _is_sqlite(path):
            raise ConfigError(f"{storage}: {path} is no SQLite database.")
        return storage, _sqlite(path)
    return _server(storage)


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC


def _sqlite(path: Path) -> Any:
    """Opened for reading only: Optuna would create its tables in whatever database it is given."""
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"studies", "trials"} <= tables:
        raise ConfigError(
            f"{path} holds no studies of Optuna (its tables: {', '.join(sorted(tables)) or 'none'})."
        )
    return _database(f"{_SQLITE}file:{quote(str(path.absolute()))}?mode=ro&uri=true", str(path))


def _journal(path: Path) -> Any:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    try:
        return optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is neither an SQLite database nor a journal of Optuna ({error})."
        ) from error


def _server(url: str) -> tuple[str, Any]:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        source = make_url(url).render_as_string(hide_password=True)
    except ArgumentError as error:
        raise ConfigError(
            f"'{url}' is no URL of a database. Write, for example, sqlite:///old.db."
        ) from error
    return source, _database(url, source)


def _database(url: str, source: str) -> Any:
    import optuna
    from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

    try:
        return optuna.storages.RDBStorage(url)
    except (ImportError, NoSuchModuleError) as error:
        raise EnvironmentProblem(
            f"the driver for {source} is missing ({error}). Install it with pip."
        ) from error
    except (SQLAlchemyError, RuntimeError) as error:
        raise ConfigError(
            f"{source} cannot be read by the installed Optuna: {_first_line(error)}\nAn older database is brought up "
            f"to date with: optuna storage upgrade --storage {source}"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _close(storage: Any) -> None:
    """Give the database's connections back."""
    if hasattr(storage, "engine"):
        storage.remove_session()
        storage.engine.dispose()
