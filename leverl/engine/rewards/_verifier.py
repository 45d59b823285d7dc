"""math-verify in a process of its own, with a time limit that holds.

sympy does not come back from "9^{9^{9}}" or "100000000!", and a policy does write such things. The package's
own limit is `signal.alarm`: it works on the main thread only, and not at all inside one long integer
operation. A child that is killed and started anew works from any thread.
"""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import weakref
from typing import IO

_START_SECONDS = 120.0  # importing sympy on a busy machine


class Verifier:
    """Compares LaTeX expressions in a child process, started at first use and restarted after a failure."""

    def __init__(self, seconds: float = 5.0) -> None:
        """`seconds` is the time limit of one comparison."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def equal(self, answer: str, truth: str) -> bool:
        """Whether the expression `answer` equals `truth`.

        Raises:
            TimeoutError: it takes longer than the limit.
            ValueError: `truth` is not an expression.
            RuntimeError: the child failed or died.
        """
        with self._lock:
            if self._child is None:
                self._child = _Child()
            try:
                reply = self._child.ask([answer, truth], self._seconds)
            except (TimeoutError, RuntimeError) as error:
                self._stop()
                raise type(error)(f"comparing {answer!r} with {truth!r}: {error}") from error
        if "error" in reply:
            raise ValueError(str(reply["error"]))
        return bool(reply["equal"])

    def close(self) -> None:
        """End the child; the next comparison starts another."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None


class _Child:
    """One child process: a JSON line in, a JSON line out."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child, by _end
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "leverl.engine.rewards._math_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        self.stop = weakref.finalize(self, _end, self._process, self._errors)
        self._receive(_START_SECONDS)

    def ask(self, request: list[str], seconds: float) -> dict[str, object]:
        stdin = self._process.stdin
        if stdin is None:
            raise RuntimeError("the verifier has no input")
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError as error:
            raise RuntimeError(self._last_words()) from error
        return self._receive(seconds)

    def _receive(self, seconds: float) -> dict[str, object]:
        stdout = self._process.stdout
        if stdout is None:
            raise RuntimeError("the verifier has no output")
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            ready = selector.select(seconds)
        if not ready:
            raise TimeoutError(f"no result within {seconds:g} s")
        line = stdout.readline()
        if not line:
            raise RuntimeError(self._last_words())
        reply: dict[str, object] = json.loads(line)
        return reply

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return f"the verifier ended with code {code}: {self._errors.read()[-1000:].decode(errors='replace')}"


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, errors):
        if stream is not None:
            stream.close()
