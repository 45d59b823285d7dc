"""End a run with its whole family of processes."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from leverl.executors.handles import withdraw_ticket, written_handle
from leverl.executors.processes import Families, Row, alive_at
from leverl.executors.protocol import Handle

GRACE_SECONDS: Final = 2.0
"""What helpers of a dead run get to clean up behind themselves, such as shared memory."""

_PAUSE: Final = 0.02
_ROUNDS: Final = 50


def stop_process(handle: Handle, *, kill: bool = False) -> None:
    """Ask a run to end: its process group, if that is still the run's. Or kill its whole family."""
    if kill:
        end_family(handle, Families())
    elif alive_at(handle.pid, handle.created, handle.token) is not None:
        with suppress(ProcessLookupError):
            os.killpg(handle.pid, signal.SIGTERM)


def end_family(handle: Handle, families: Families) -> None:
    """Kill all members of a run's family, also those that are born meanwhile; does not wait for their end.

    A process that has been sent SIGKILL bears no more children, so the rounds come to an end.
    """
    told: set[tuple[int, float]] = set()
    for _ in range(_ROUNDS):
        families.look()
        found = [row for row in families.members(handle) if (row.pid, row.started) not in told]
        if not found:
            return
        _signal(found, signal.SIGKILL)
        told |= {(row.pid, row.started) for row in found}


def end_leftovers(handle: Handle, families: Families) -> None:
    """End what is left of a run whose main process is gone: politely, and after a while by force."""
    families.look()
    left = families.members(handle)
    _signal(left, signal.SIGTERM)
    deadline = monotonic() + GRACE_SECONDS
    while left and monotonic() < deadline:
        time.sleep(_PAUSE)
        families.look()
        left = families.members(handle)
    if left:
        end_family(handle, families)


def end_run(run_id: str, folder: Path) -> None:
    """Kill whatever is left of the run in `folder`, whether its main process lives or not."""
    withdraw_ticket(folder)
    written = written_handle(run_id, folder)
    if written is not None:
        end_family(written, Families())


def _signal(rows: Iterable[Row], number: signal.Signals) -> None:
    for row in rows:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(row.pid, number)
