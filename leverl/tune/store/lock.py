"""One tuner per study: a lock that the operating system releases, however the tuner ends."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from leverl.errors import ConfigError, EnvironmentProblem
from leverl.tune.store.trouble import file_errors

LOCK: Final = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the study in `folder`. What a dead tuner left in the lock file holds nobody up.

    Raises:
        ConfigError: another tuner holds it; names its process and host.
        EnvironmentProblem: the folder cannot be made or written to, or its file system has no locks.
    """
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a+", encoding="utf-8")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(
                f"{folder} is being tuned by {_holder(folder / LOCK)}. Two tuners on one study would start "
                f"every run twice: wait for it, stop it, or watch it with leverl tune --watch {folder}."
            ) from error
        except OSError as error:
            raise EnvironmentProblem(
                f"{folder} cannot be locked against a second tuner ({error.strerror}): its file system has no locks. "
                "Choose a folder on a local disk with --out, and copy the study afterwards."
            ) from error
        with file_errors(folder):
            file.seek(0)
            file.truncate()
            json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
            file.flush()
        yield


def _holder(path: Path) -> str:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        pid, host = int(content["pid"]), str(content["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if host == socket.gethostname() and not psutil.pid_exists(pid):
        return f"a process that process {pid}, which has ended, left behind on {host}"
    return f"process {pid} on {host}"
