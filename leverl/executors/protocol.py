"""What the tuner asks of whoever starts processes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from leverl.record.process import Command, Exit


@dataclass(frozen=True)
class Handle:
    """A process of a run. `created` (seconds since the epoch) tells it from a later one with the same pid."""

    run_id: str
    pid: int
    created: float
    token: str


class Executor(Protocol):
    """Starts, finds again, stops and watches the processes of runs."""

    def start(self, command: Command, *, run_id: str, folder: Path, token: str) -> Handle:
        """Start `command`; what it prints is appended to `folder/log.txt`."""

    def adopt(self, run_id: str, folder: Path, token: str) -> Handle | None:
        """The living process of a run that an earlier executor started.

        None when there is none; what helper processes of a dead one are left have been ended then.
        """

    def stop(self, handle: Handle, *, kill: bool = False) -> None:
        """Ask the process and its group to end (SIGTERM), or kill all that it ever started; does not wait."""

    def poll(self, handle: Handle) -> Exit | None:
        """How the process ended; None while it lives. When it has ended, what it left running is ended too."""

    def memory(self, handle: Handle) -> int:
        """Bytes of memory that the process and all that it started hold now (resident size)."""

    def wait(self, handles: Iterable[Handle], timeout: float) -> None:
        """Return when one of the processes may have ended, or after `timeout` seconds."""

    def close(self) -> None:
        """Let go of everything; living processes live on."""
