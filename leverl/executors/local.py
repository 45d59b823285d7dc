"""Runs as processes of this machine, each in a session of its own, so that Ctrl-C reaches only the tuner."""

import os
import select
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Final

import psutil

from leverl.executors.ending import end_family, end_leftovers, stop_process
from leverl.executors.forking import ForkServer, can_fork
from leverl.executors.handles import (
    HANDLE_FILE,
    issue_ticket,
    read_handle,
    withdraw_ticket,
    write_handle,
    written_handle,
)
from leverl.executors.living_on import LIVING_ON
from leverl.executors.processes import Families, alive_at, resident
from leverl.executors.protocol import Handle
from leverl.record.layout import RunFolder
from leverl.record.process import TOKEN_VARIABLE, Command, Exit
from leverl.record.run_record import load_record

__all__ = ["HANDLE_FILE", "LocalExecutor", "read_handle", "stop_process"]

LOOK_SECONDS: Final = 1.0
"""How often the process table is read."""

_THREADS: Final = "OMP_NUM_THREADS"
_ALSO_THREADS: Final = (
    "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS",
)  # fmt: skip


class LocalExecutor:
    """Starts runs from a fork server where the command allows it, else as plain subprocesses.

    Processes outlive the executor: one started later adopts them by pid, creation time and token.
    """

    def __init__(self) -> None:
        self._servers: dict[Any, ForkServer] = {}
        self._server_of: dict[int, ForkServer] = {}
        self._plain: dict[int, subprocess.Popen[bytes]] = {}
        self._watch: dict[int, int] = {}  # pid → pidfd of processes that no server reports on
        self._families = Families()
        self._looked = -LOOK_SECONDS
        self._sizes: dict[int, int] = {}  # pid of a run → bytes that its family holds
        self._peaks: dict[int, int] = {}

    def start(self, command: Command, *, run_id: str, folder: Path, token: str) -> Handle:
        folder.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, **pinned_threads(command.env), **command.env}
        server = self._server(command, env)
        if server is not None:
            forked = self._fork(server, command, env, run_id, folder, token)
            if forked is not None:
                return forked
        return self._start_plain(command, env, run_id, folder, token)

    def adopt(self, run_id: str, folder: Path, token: str) -> Handle | None:
        handle = next(self._candidates(run_id, folder, token), None)
        if handle is None:
            withdraw_ticket(folder)
            handle = read_handle(run_id, folder)  # a child that took the ticket in the meantime
            if handle is None or handle.token != token:
                end_leftovers(Handle(run_id, -1, 0.0, token), self._families)
                return None
        self._watch_process(handle.pid)
        return handle

    def stop(self, handle: Handle, *, kill: bool = False) -> None:
        if kill:
            end_family(handle, self._families)
        else:
            stop_process(handle)

    def poll(self, handle: Handle) -> Exit | None:
        self._measure(handle)
        found = self._ended(handle)
        if found is None:
            return None
        end_leftovers(handle, self._families)
        self._families.forget(handle)
        self._sizes.pop(handle.pid, None)
        self._server_of.pop(handle.pid, None)
        if handle.pid in self._watch:
            os.close(self._watch.pop(handle.pid))
        peaks = [found.peak_memory, self._peaks.pop(handle.pid, None)]
        return replace(found, peak_memory=max((peak for peak in peaks if peak is not None), default=None))

    def memory(self, handle: Handle) -> int:
        self._measure(handle)
        return self._sizes.get(handle.pid, 0)

    def wait(self, handles: Iterable[Handle], timeout: float) -> None:
        watched: list[Any] = [server for server in self._servers.values() if not server.closed]
        watched += [self._watch[handle.pid] for handle in handles if handle.pid in self._watch]
        if watched:
            select.select(watched, [], [], timeout)
        else:
            time.sleep(timeout)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        for process in self._plain.values():
            LIVING_ON.add(process)
        LIVING_ON.living()  # of processes that have ended since, also those of earlier executors, note is taken
        for descriptor in self._watch.values():
            os.close(descriptor)
        self._servers.clear()
        self._plain.clear()
        self._watch.clear()

    def _server(self, command: Command, env: Mapping[str, str]) -> ForkServer | None:
        """The server for what the command imports; None when it cannot or need not be forked."""
        if not command.preload or not can_fork(command.argv):
            return None
        shared = {name: value for name, value in command.env.items() if name != TOKEN_VARIABLE}
        key = (command.preload, tuple(sorted(shared.items())))
        if key in self._servers and self._servers[key].died:
            self._servers.pop(key).close()
        if key not in self._servers:
            self._servers[key] = ForkServer(command.preload, env)
        server = self._servers[key]
        return server if server.ready() else None

    def _fork(
        self,
        server: ForkServer,
        command: Command,
        env: Mapping[str, str],
        run_id: str,
        folder: Path,
        token: str,
    ) -> Handle | None:
        """A child of the server; None when the server died, and nothing was or will be started."""
        issue_ticket(folder, token)
        started = server.start(
            {
                "argv": command.argv,
                "env": env,
                "cwd": os.getcwd(),
                "folder": str(folder.resolve()),
                "log": str(RunFolder(folder).log.resolve()),
                "token": token,
            }
        )
        if started is None:
            return self.adopt(run_id, folder, token)
        self._server_of[started[0]] = server
        return Handle(run_id, *started, token)

    def _start_plain(
        self, command: Command, env: Mapping[str, str], run_id: str, folder: Path, token: str
    ) -> Handle:
        with RunFolder(folder).log.open("ab") as log:
            process = subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        try:
            created = psutil.Process(process.pid).create_time()
        except psutil.NoSuchProcess:
            created = 0.0
        self._plain[process.pid] = process
        self._watch_process(process.pid)
        write_handle(folder, process.pid, created, token)
        return Handle(run_id, process.pid, created, token)

    def _candidates(self, run_id: str, folder: Path, token: str) -> Iterator[Handle]:
        """The living main process of a run: by its handle, by `run.json`, by the environment of processes.

        The last only where no process has left its handle: what a dead main process leaves behind carries the
        token too.
        """
        written = read_handle(run_id, folder)
        if written is not None and written.token == token:
            yield written
        record = load_record(RunFolder(folder).record)
        if record is not None and record.token == token and record.outcome is None:
            created = alive_at(record.pid, record.pid_created, token)
            if created is not None:
                yield Handle(run_id, record.pid, created, token)
        left = written_handle(run_id, folder)
        if left is None or left.token != token:
            self._families.look()
            leaders = [row for row in self._families.carriers(token) if row.group == row.pid]
            for row in sorted(leaders, key=lambda row: row.started):
                with suppress(psutil.NoSuchProcess):
                    yield Handle(run_id, row.pid, psutil.Process(row.pid).create_time(), token)

    def _ended(self, handle: Handle) -> Exit | None:
        if handle.pid in self._plain:
            status = self._plain[handle.pid].poll()
            if status is None:
                return None
            del self._plain[handle.pid]
            return Exit(code=status) if status >= 0 else Exit(signal=-status)
        server = self._server_of.get(handle.pid)
        if server is not None:
            known = server.exit_of(handle.pid)
            if known is not None or not server.closed:
                return known
        if handle.pid in self._watch:
            return Exit() if select.select([self._watch[handle.pid]], [], [], 0)[0] else None
        return None if alive_at(handle.pid, handle.created, handle.token) is not None else Exit()

    def _watch_process(self, pid: int) -> None:
        if hasattr(os, "pidfd_open") and pid not in self._watch:
            with suppress(OSError):  # gone already, or a kernel without pidfds: polling finds out
                self._watch[pid] = os.pidfd_open(pid)

    def _measure(self, handle: Handle) -> None:
        """Take in the run's family and its size, at most once in LOOK_SECONDS."""
        if monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = monotonic()
            self._sizes.clear()
            self._families.look()
        if handle.pid not in self._sizes:
            size = resident(self._families.members(handle))
            self._sizes[handle.pid] = size
            self._peaks[handle.pid] = max(size, self._peaks.get(handle.pid, 0))


def pinned_threads(env: Mapping[str, str]) -> dict[str, str]:
    """The number of threads that a command asks OpenMP for, for all other libraries that have threads too."""
    return dict.fromkeys(_ALSO_THREADS, env[_THREADS]) if _THREADS in env else {}
