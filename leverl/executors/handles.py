"""What lies in a run's folder of its process: who it is, and the ticket that a process about to begin must take.

A tuner may die between asking the fork server for a process and its birth. The next tuner finds nothing alive,
withdraws the ticket, and starts the run again; the late child finds no ticket and ends. The folder itself is the
lock under which both look.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from leverl.executors.processes import alive_at
from leverl.executors.protocol import Handle
from leverl.record.layout import write_json

HANDLE_FILE: Final = "process.json"

_TICKET: Final = ".start"


def write_handle(folder: Path, pid: int, created: float, token: str) -> None:
    """Leave in the run's folder by which its process is found again."""
    write_json(folder / HANDLE_FILE, {"pid": pid, "created": created, "token": token})


def written_handle(run_id: str, folder: Path) -> Handle | None:
    """The process named in a run's folder, living or not."""
    try:
        content = json.loads((folder / HANDLE_FILE).read_text(encoding="utf-8"))
        return Handle(run_id, int(content["pid"]), float(content["created"]), str(content["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_handle(run_id: str, folder: Path) -> Handle | None:
    """The living process named in a run's folder."""
    written = written_handle(run_id, folder)
    if written is None:
        return None
    created = alive_at(written.pid, written.created, written.token)
    return None if created is None else replace(written, created=created)


def issue_ticket(folder: Path, token: str) -> None:
    """Allow one process with this token to begin in the folder."""
    with _held(folder):
        (folder / _TICKET).write_text(token, encoding="utf-8")


def withdraw_ticket(folder: Path) -> None:
    """From now on no process begins in the folder that has not begun yet."""
    if folder.is_dir():
        with _held(folder):
            (folder / _TICKET).unlink(missing_ok=True)


def take_ticket(folder: Path, pid: int, created: float, token: str) -> bool:
    """Begin in the folder and leave one's handle there; False if there is no ticket (any more)."""
    with _held(folder):
        ticket = folder / _TICKET
        if not ticket.is_file() or ticket.read_text(encoding="utf-8") != token:
            return False
        write_handle(folder, pid, created, token)
        ticket.unlink()
        return True


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
