"""The processes of this machine, and which of them belong to a run.

A run's family is its main process with all descendants, its process group, and every process that carries the
run's token in its environment: also those that left the group (`setsid`) and whose parents are dead.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from leverl.executors.protocol import Handle
from leverl.record.process import TOKEN_VARIABLE

_PROC: Final = Path("/proc")
_SETTLED: Final = 10.0  # seconds after which a process is not expected to become another program


class Row(NamedTuple):
    """A process. `started` is in the platform's unit; with the pid it tells a process from all others."""

    pid: int
    parent: int
    group: int
    started: float
    zombie: bool


class Families:
    """Finds the members of runs. Whoever was seen once stays a member, whatever becomes of its parents."""

    def __init__(self) -> None:
        self.rows: Mapping[int, Row] = {}
        self._known: dict[str, frozenset[Row]] = {}  # token → members at the last look
        self._tokens: dict[tuple[int, float], tuple[float, str]] = {}  # process → first seen, token

    def look(self) -> None:
        """Take in which processes there are now."""
        rows = _linux_rows() if (_PROC / "self" / "stat").exists() else _other_rows()
        self.rows = {row.pid: row for row in rows}
        gone = [who for who in self._tokens if who[0] not in self.rows]
        for who in gone:
            del self._tokens[who]

    def members(self, handle: Handle) -> list[Row]:
        """The living members of the run's family at the last look."""
        children: dict[int, list[Row]] = {}
        for row in self.rows.values():
            children.setdefault(row.parent, []).append(row)
        found: dict[int, Row] = {}
        waiting = list(self._first_members(handle))
        while waiting:
            row = waiting.pop()
            if row.pid not in found and row.pid != os.getpid():
                found[row.pid] = row
                waiting += children.get(row.pid, ())
        living = [row for row in found.values() if not row.zombie]
        self._known[handle.token] = frozenset(living)
        return living

    def forget(self, handle: Handle) -> None:
        """The run is over."""
        self._known.pop(handle.token, None)

    def _first_members(self, handle: Handle) -> Iterator[Row]:
        """Those that need no parent to show that they belong to the run."""
        if handle.pid in self.rows and _is_main(handle):
            yield self.rows[handle.pid]
            yield from (row for row in self.rows.values() if row.group == handle.pid)
        for known in self._known.get(handle.token, ()):
            row = self.rows.get(known.pid)
            if row is not None and row.started == known.started:
                yield row
        yield from self.carriers(handle.token)

    def carriers(self, token: str) -> list[Row]:
        """Processes with the token of a run in their environment, as far as that may be seen."""
        return [row for row in self.rows.values() if token and self._token(row) == token]

    def _token(self, row: Row) -> str:
        """The token that a process carries; empty if it has none, or none that we may see."""
        now, who = time.monotonic(), (row.pid, row.started)
        first_seen, token = self._tokens.get(who, (now, None))
        if token is None or now - first_seen < _SETTLED:
            token = "" if row.zombie else token_of(row.pid)
            self._tokens[who] = (first_seen, token)
        return token


def token_of(pid: int) -> str:
    """The token of a run in the environment of a process; empty if it has none, or none that we may see."""
    try:
        if not _PROC.is_dir():
            return psutil.Process(pid).environ().get(TOKEN_VARIABLE, "")
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except (OSError, psutil.Error):
        return ""
    name = f"{TOKEN_VARIABLE}=".encode()
    found = next((part for part in environment.split(b"\0") if part.startswith(name)), name)
    return found.removeprefix(name).decode("utf-8", "replace")


def alive_at(pid: int, created: float, token: str) -> float | None:
    """When a living process was created, by the clock as it is now; None if it is gone or is another one.

    Where the start time does not match, the token decides: a start time is reckoned from the clock, and clocks
    are set.
    """
    try:
        process = psutil.Process(pid)
        now = process.create_time()
        zombie = process.status() == psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return None
    same = abs(now - created) < 1.0 or (token != "" and token_of(pid) == token)
    return now if same and not zombie else None


def resident(rows: Iterable[Row]) -> int:
    """Bytes that processes hold in memory; what a file or a shared segment fills counts once."""
    private = shared = 0
    for row in rows:
        with suppress(psutil.Error, OSError):
            info = psutil.Process(row.pid).memory_info()
            common = getattr(info, "shared", 0)
            private += info.rss - common
            shared = max(shared, common)
    return private + shared


def _is_main(handle: Handle) -> bool:
    """As `alive_at`, for a zombie too: until it is reaped nobody else gets its pid, and its group is its own."""
    try:
        created = psutil.Process(handle.pid).create_time()
    except psutil.Error:
        return False
    return abs(created - handle.created) < 1.0 or (
        handle.token != "" and token_of(handle.pid) == handle.token
    )


def _linux_rows() -> Iterator[Row]:
    """With one read for each process; psutil takes ten times as long."""
    for name in os.listdir(_PROC):
        if name.isdigit():
            with suppress(OSError):
                text = (_PROC / name / "stat").read_bytes()
                state, parent, group, *rest = text[text.rindex(b")") + 2 :].split()
                yield Row(int(name), int(parent), int(group), float(rest[16]), state in (b"Z", b"X"))


def _other_rows() -> Iterator[Row]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            zombie = process.status() == psutil.STATUS_ZOMBIE
            group = os.getpgid(process.pid)
            yield Row(process.pid, process.ppid(), group, process.create_time(), zombie)
