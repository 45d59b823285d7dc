"""Engines and floor in processes of their own, so that memory is counted apart and rounds can alternate.

All are loaded at the start and do nothing until they are asked for steps.
"""

import contextlib
import multiprocessing
import os
import sys
import time
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from _workload import PROMPT_TOKENS, Setting

FOREVER = 1_000_000_000


class Worker:
    """A process that answers requests one after the other."""

    def __init__(self, kind: str, setting: Setting, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._kind, self._log = kind, folder / f"{kind}.log"
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(kind, setting, folder, self._log, theirs))
        self._process.start()
        theirs.close()

    def ask(self, request: Any) -> Any:
        """The answer to `request`.

        Raises:
            SystemExit: the process died; shows the end of its output.
        """
        try:
            self._connection.send(request)
            return self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            tail = "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
            raise SystemExit(f"{self._kind} failed (exit {self._process.exitcode}):\n{tail}") from None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.send(None)
        self._process.join()
        self._connection.close()


def _main(kind: str, setting: Setting, folder: Path, log: Path, connection: Connection) -> None:
    _redirect_output(log)
    with contextlib.suppress(EOFError):
        _TASKS[kind](kind, setting, folder, connection)


def _redirect_output(log: Path) -> None:
    """What libraries print goes to `log`, on the level of file descriptors."""
    with log.open("a", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _build(_: str, setting: Setting, folder: Path, connection: Connection) -> None:
    """Answers once: model and prompts are written."""
    import _workload

    connection.recv()
    _workload.write_prompts(folder / "prompts.jsonl")
    connection.send(_workload.build_model(folder / "model", setting))


def _compare(_: str, setting: Setting, folder: Path, connection: Connection) -> None:
    """Answers once: how far the engines' gradients agree."""
    from _gradients import compare

    connection.recv()
    found = compare(setting, folder)
    connection.send(asdict(found) | {"agrees": found.agrees})


def _floor(_: str, setting: Setting, folder: Path, connection: Connection) -> None:
    """Answers lengths with seconds."""
    import torch
    from _floor import Floor

    torch.set_num_threads(1)
    floor = Floor(folder / "model", setting.group_size, PROMPT_TOKENS)
    while (lengths := connection.recv()) is not None:
        connection.send(floor.measure(lengths))


def _engine(kind: str, setting: Setting, folder: Path, connection: Connection) -> None:
    """Answers a number of steps with what each of them took, and with the memory so far."""
    from _engines import Engine, Leverl, Trl

    engine: Engine = Leverl(setting, folder) if kind == "leverl" else Trl(setting, folder)
    _Pace(connection).drive(engine)


class _Pace:
    """Lets an engine run as many steps as are asked for, and holds it between two requests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._baseline = _resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
        self._wanted = 0
        self._steps: list[dict[str, Any]] = []
        self._began = self._worked = 0.0

    def drive(self, engine: Any) -> None:
        self._wait()
        engine.run(FOREVER, self._report)

    def _report(self, lengths: list[int], generating: float) -> None:
        wall, cpu = time.perf_counter() - self._began, time.process_time() - self._worked
        self._steps.append({"wall": wall, "cpu": cpu, "generation": generating, "lengths": lengths})
        if len(self._steps) == self._wanted:
            memory = {"baseline": self._baseline, "peak": _resident("VmHWM")}
            self._connection.send({"steps": self._steps, "memory": memory})
            self._wait()
        self._began, self._worked = time.perf_counter(), time.process_time()

    def _wait(self) -> None:
        wanted = self._connection.recv()
        if wanted is None:
            raise SystemExit
        self._wanted, self._steps = wanted, []
        self._began, self._worked = time.perf_counter(), time.process_time()


def _resident(field: str) -> float:
    """MB of memory from the kernel: VmRSS is now, VmHWM the most since the peak was forgotten."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit(f"no {field} in /proc/self/status")


_TASKS = {"build": _build, "compare": _compare, "floor": _floor, "leverl": _engine, "trl": _engine}
