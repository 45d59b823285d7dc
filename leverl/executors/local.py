"""Runs as processes of this machine, each in a session of its own, so that Ctrl-C reaches only the tuner."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psutil

from leverl.executors.fork_server import write_handle
from leverl.executors.forking import LIVING_ON, ForkServer, can_fork
from leverl.executors.protocol import Handle
from leverl.record.layout import RunFolder
from leverl.record.process import TOKEN_VARIABLE, Command, Exit
from leverl.record.run_record import load_record, process_alive

HANDLE_FILE: Final = "process.json"


class LocalExecutor:
    """Starts runs from a fork server where the command allows it, else as plain subprocesses.

    Processes outlive the executor: one started later adopts them by pid, creation time and token.
    """

    def __init__(self) -> None:
        self._servers: dict[Any, ForkServer] = {}
        self._server_of: dict[int, ForkServer] = {}
        self._plain: dict[int, subprocess.Popen[bytes]] = {}
        self._watch: dict[int, int] = {}  # pid → pidfd of processes that no server reports on
        self._peaks: dict[int, int] = {}

    def start(self, command: Command, *, run_id: str, folder: Path, token: str) -> Handle:
        folder.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, **command.env}
        server = self._server(command, env)
        if server is not None:
            started = server.start(
                {
                    "argv": command.argv,
                    "env": env,
                    "cwd": os.getcwd(),
                    "log": str(RunFolder(folder).log.resolve()),
                    "handle": str((folder / HANDLE_FILE).resolve()),
                    "token": token,
                }
            )
            if started is not None:
                self._server_of[started[0]] = server
                return Handle(run_id, *started, token)
        return self._start_plain(command, env, run_id, folder, token)

    def adopt(self, run_id: str, folder: Path, token: str) -> Handle | None:
        handle = next(self._candidates(run_id, folder, token), None)
        if handle is not None:
            self._watch_process(handle.pid)
        return handle

    def stop(self, handle: Handle, *, kill: bool = False) -> None:
        stop_process(handle, kill=kill)

    def poll(self, handle: Handle) -> Exit | None:
        self._measure(handle)
        found = self._ended(handle)
        if found is None:
            return None
        if handle.pid in self._watch:
            os.close(self._watch.pop(handle.pid))
        peaks = [found.peak_memory, self._peaks.pop(handle.pid, None)]
        return replace(found, peak_memory=max((peak for peak in peaks if peak is not None), default=None))

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
        LIVING_ON.extend(process for process in self._plain.values() if process.poll() is None)
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
        if key not in self._servers:
            theirs = {name: value for name, value in env.items() if name != TOKEN_VARIABLE}
            self._servers[key] = ForkServer(command.preload, theirs)
        server = self._servers[key]
        return server if server.ready() else None

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
        write_handle(folder / HANDLE_FILE, process.pid, created, token)
        return Handle(run_id, process.pid, created, token)

    def _candidates(self, run_id: str, folder: Path, token: str) -> Iterator[Handle]:
        """Living processes of the run: by the handle file, by `run.json`, by the environment of a process."""
        written = read_handle(run_id, folder)
        if written is not None and written.token == token:
            yield written
        record = load_record(RunFolder(folder).record)
        if record is not None and record.token == token and record.alive:
            yield Handle(run_id, record.pid, record.pid_created, token)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(TOKEN_VARIABLE) == token and os.getpgid(process.pid) == process.pid:
                    yield Handle(run_id, process.pid, process.create_time(), token)

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
        return None if process_alive(handle.pid, handle.created) else Exit()

    def _watch_process(self, pid: int) -> None:
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):  # gone already, or a kernel without pidfds: polling finds out
                self._watch[pid] = os.pidfd_open(pid)

    def _measure(self, handle: Handle) -> None:
        with suppress(psutil.Error, OSError):
            size = psutil.Process(handle.pid).memory_info().rss
            self._peaks[handle.pid] = max(size, self._peaks.get(handle.pid, 0))


def read_handle(run_id: str, folder: Path) -> Handle | None:
    """The living process named by the handle file in a run's folder."""
    try:
        content = json.loads((folder / HANDLE_FILE).read_text(encoding="utf-8"))
        handle = Handle(run_id, int(content["pid"]), float(content["created"]), str(content["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return handle if process_alive(handle.pid, handle.created) else None


def stop_process(handle: Handle, *, kill: bool = False) -> None:
    """Signal the process group of a run, if it is still that of the run."""
    if process_alive(handle.pid, handle.created):
        with suppress(ProcessLookupError):
            os.killpg(handle.pid, signal.SIGKILL if kill else signal.SIGTERM)
