"""A process that imports heavy modules once and forks a ready child for each run asked for.

Started as `python -m leverl.executors.fork_server FD MODULE…` with one end of a Unix socket as file
descriptor FD. Messages are JSON, one a line. In: `{"id", "argv", "env", "cwd", "folder", "log", "token"}`.
Out: `{"ready": true, "threads": n}` (beside the main one), then `{"id", "pid", "created"}` for each request and
`{"exit": pid, "code" | "signal", "peak_memory"}` for each child that ends.

The server has one thread, for a fork copies only the thread that forks. When its socket closes it waits for
its children, which live on, and ends.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from leverl.executors.handles import take_ticket
from leverl.record.process import TOKEN_VARIABLE

Request = Mapping[str, Any]

ROOM_FOR_TOKEN: Final = "-" * 64
"""The value of LEVERL_RUN_TOKEN in the server, which `show_token` overwrites in its children."""

_FORK_SAFE_THREADS: Final = ("jemalloc_bg_thd",)


def main() -> None:
    """Serve until the socket closes; in a child: become the process asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # what is imported stays on pages that children share
    _send(connection, {"ready": True, "threads": len(other_threads())})
    request = Server(connection).serve()
    if request is not None:
        become(request)


class Server:
    """Forks children and reports their exits."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection: socket.socket | None = connection
        self._children: set[int] = set()
        self._wake, self._alarm = socket.socketpair()
        self._wake.setblocking(False)
        self._alarm.setblocking(False)
        self._partial = b""

    def serve(self) -> Request | None:
        """None when all is over; in a child, the request that it has to fulfil."""
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._alarm.fileno(), warn_on_full_buffer=False)
        while self._connection is not None or self._children:
            watched = [self._wake, *([self._connection] if self._connection is not None else [])]
            ready, _, _ = select.select(watched, [], [])
            if self._wake in ready:
                self._drain()
                self._reap()
            if self._connection in ready:
                for request in self._receive():
                    if self._fork(request):
                        return request
        return None

    def _drain(self) -> None:
        try:
            while self._wake.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _reap(self) -> None:
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            self._children.discard(pid)
            code = os.waitstatus_to_exitcode(status)
            how = {"code": code} if code >= 0 else {"signal": -code}
            self._tell({"exit": pid, **how, "peak_memory": usage.ru_maxrss * 1024})

    def _receive(self) -> list[Request]:
        if self._connection is None:
            return []
        received = self._connection.recv(65536)
        if not received:
            self._hang_up()
            return []
        *lines, self._partial = (self._partial + received).split(b"\n")
        return [json.loads(line) for line in lines]

    def _fork(self, request: Request) -> bool:
        """Fork; True in the child."""
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for end in (self._connection, self._wake, self._alarm):
                if end is not None:
                    end.close()
            return True
        self._children.add(pid)
        self._tell({"id": request["id"], "pid": pid, "created": psutil.Process(pid).create_time()})
        return False

    def _tell(self, message: Mapping[str, Any]) -> None:
        if self._connection is None:
            return
        try:
            _send(self._connection, message)
        except OSError:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def become(request: Request) -> None:
    """Turn this forked child into the process asked for, as if Python had been started with its arguments."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _redirect(request["log"])
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    token = request["token"]
    show_token(token)
    if not take_ticket(Path(request["folder"]), os.getpid(), psutil.Process().create_time(), token):
        return  # the tuner that asked for this process is dead, and another one has taken over
    program, *arguments = request["argv"][1:]
    if program == "-m":
        module, *arguments = arguments
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")


def other_threads() -> list[str]:
    """Names of the threads beside this one that would be missing in a child.

    That of jemalloc (Arrow's allocator) does not count: jemalloc prepares for forks.
    """
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    names.remove(Path("/proc/self/comm").read_text().strip())
    return [name for name in names if name not in _FORK_SAFE_THREADS]


def show_token(token: str) -> None:
    """Put the token where others read the environment of this process, and of all that it forks.

    `/proc/PID/environ` is the memory that the environment had when the program was loaded; a forked child shows
    that of its parent, whatever it sets later. So the server keeps room there.
    """
    status = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    start, end = (int(number) for number in status.rpartition(")")[2].split()[47:49])  # env_start, env_end
    room = f"{TOKEN_VARIABLE}={ROOM_FOR_TOKEN}".encode()
    found = ctypes.string_at(start, end - start).find(room)
    if found >= 0 and len(token) <= len(ROOM_FOR_TOKEN):
        ctypes.memmove(start + found, f"{TOKEN_VARIABLE}={token}".encode().ljust(len(room), b"\0"), len(room))


def _redirect(log: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(written)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIOWrapper outside tests


def _send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
