"""One tuner per study: a lock that the operating system releases, however the tuner ends."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from leverl.errors import ConfigError

LOCK: Final = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the study in `folder`.

    Raises:
        ConfigError: another tuner holds it; names its process and host.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                f"{folder} is being tuned by {_holder(folder / LOCK)}. Two tuners on one study would start "
                f"every run twice: wait for it, stop it, or watch it with leverl tune --watch {folder}."
            ) from error
        file.seek(0)
        file.truncate()
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
        file.flush()
        yield


def _holder(path: Path) -> str:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return f"process {content['pid']} on {content['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
