"""The tuner's end of the fork server."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Final

from leverl.executors.fork_server import ROOM_FOR_TOKEN
from leverl.executors.living_on import LIVING_ON
from leverl.record.process import TOKEN_VARIABLE, Exit

START_TIMEOUT: Final = 180.0  # a cold import of torch and transformers from a slow disk


class ForkServer:
    """Starts children through `leverl.executors.fork_server` and keeps what it says of their exits."""

    def __init__(self, modules: Sequence[str], env: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "leverl.executors.fork_server", str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**env, TOKEN_VARIABLE: ROOM_FOR_TOKEN},
            )
        self._partial = b""
        self._started: dict[int, tuple[int, float]] = {}
        self._exits: dict[int, Exit] = {}
        self._children: set[int] = set()
        self._threads: int | None = None
        self._number = 0
        self.closed = False

    def ready(self) -> bool:
        """Whether it can fork: its imports went well and left it with one thread."""
        self._pump_until(lambda: self._threads is not None)
        return not self.closed and self._threads == 0

    @property
    def died(self) -> bool:
        """Whether it is gone although it could fork."""
        return self.closed and self._threads == 0

    def start(self, request: Mapping[str, Any]) -> tuple[int, float] | None:
        """Pid and creation time of a new child; None when the server is gone."""
        self._number += 1
        number = self._number
        try:
            self._socket.sendall(json.dumps({"id": number, **request}).encode() + b"\n")
        except OSError:
            self.closed = True
            return None
        self._pump_until(lambda: number in self._started)
        return self._started.pop(number, None)

    def exit_of(self, pid: int) -> Exit | None:
        """How the child ended, as far as the server has said."""
        self._pump(0.0)
        return self._exits.get(pid)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Hang up; the server stays as long as it has children."""
        self._pump(0.0)
        self.closed = True
        self._socket.close()
        if self._children:
            LIVING_ON.add(self._process)
            return
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _pump_until(self, condition: Any) -> None:
        end = monotonic() + START_TIMEOUT
        while not condition() and not self.closed and monotonic() < end:
            self._pump(end - monotonic())

    def _pump(self, timeout: float) -> None:
        """Take in what the server has said, waiting up to `timeout` for it to say something."""
        while not self.closed and select.select([self._socket], [], [], max(timeout, 0.0))[0]:
            received = b""
            with contextlib.suppress(OSError):
                received = self._socket.recv(65536)
            if not received:
                self.closed = True
                return
            *lines, self._partial = (self._partial + received).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
            timeout = 0.0

    def _take(self, message: Mapping[str, Any]) -> None:
        if "ready" in message:
            self._threads = int(message["threads"])
        elif "exit" in message:
            pid = int(message["exit"])
            self._children.discard(pid)
            self._exits[pid] = Exit(message.get("code"), message.get("signal"), message.get("peak_memory"))
        else:
            pid = int(message["pid"])
            self._exits.pop(pid, None)  # of an earlier child that had the same pid
            self._children.add(pid)
            self._started[int(message["id"])] = pid, float(message["created"])


def can_fork(argv: Sequence[str]) -> bool:
    """Whether the command is one that a forked Python can become (macOS frameworks do not survive a fork)."""
    python = len(argv) > 1 and argv[0] == sys.executable and (argv[1] == "-m" or argv[1].endswith(".py"))
    return python and hasattr(os, "fork") and sys.platform == "linux"
