"""Ends runs that hold too much memory or take too long, and tells of those that make no progress."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leverl.executors.machine import Memory, machine_memory
from leverl.executors.protocol import Executor, Handle
from leverl.record.layout import RunFolder
from leverl.record.run_record import Outcome
from leverl.tune import study
from leverl.tune.model import Cost, History

CHECK_SECONDS: Final = 1.0
"""How often the runs are looked at."""

SILENCE_SECONDS: Final = 60.0
"""Nothing is said of a shorter silence: evaluations and checkpoints take their time."""

_SHARE: Final = 0.9  # of the machine's memory for all runs together
_LEAST_SHARE, _LEAST_BYTES = 0.05, 500 << 20  # what the machine needs to have left
_SILENT_STEPS: Final = 3  # usual steps without a new one
_SLOW_START: Final = 5  # times SILENCE_SECONDS until the first step
_RECOVERY_SECONDS: Final = 5.0  # until memory that a killed run held is free again


@dataclass(frozen=True)
class Limits:
    """What a run may use: resident memory of all its processes, seconds of one attempt (None: no limit)."""

    memory_bytes: int | None = None
    run_seconds: float | None = None
    silence_seconds: float = SILENCE_SECONDS


@dataclass(frozen=True)
class Breach:
    """A run that has to be ended with this outcome; with None it is only worth telling."""

    run_id: str
    outcome: Outcome | None
    reason: str


def limits_of(said: study.Limits, parallel: int) -> Limits:
    """What a study's file says, for `parallel` runs side by side; without a word on memory a fair share of it."""
    if said.memory_gb is None:
        memory = round(_SHARE * machine_memory().total / parallel)
    else:
        memory = round(said.memory_gb * 2**30)
    return Limits(memory, None if said.run_hours is None else said.run_hours * 3600)


class Watchdog:
    """Looks at the living runs. `now` counts monotonic seconds, so that setting the clock ends no run.

    `machine` says how much memory there is.
    """

    def __init__(
        self, limits: Limits, executor: Executor, *, machine: Callable[[], Memory] = machine_memory
    ) -> None:
        self._limits = limits
        self._executor = executor
        self._machine = machine
        self._checked = -CHECK_SECONDS
        self._starved = -_RECOVERY_SECONDS
        self._begun: dict[Handle, float] = {}
        self._silence: dict[Handle, _Silence] = {}

    def check(self, handles: Mapping[str, Handle], history: History, now: float) -> list[Breach]:
        """What has to be done, at most once in CHECK_SECONDS."""
        if now - self._checked < CHECK_SECONDS:
            return []
        self._checked = now
        self._meet(handles, history, now)
        sizes = {run_id: self._executor.memory(handle) for run_id, handle in handles.items()}
        found = [
            breach
            for run_id, handle in handles.items()
            if (breach := self._too_large(run_id, sizes[run_id]) or self._too_long(run_id, handle, now))
        ]
        if not found:
            found = self._starving(sizes, now)
        ending = {breach.run_id for breach in found}
        return found + [
            Breach(run_id, None, text)
            for run_id, handle in handles.items()
            if run_id not in ending
            and (text := self._silence[handle].text(now, self._limits.silence_seconds))
        ]

    def _meet(self, handles: Mapping[str, Handle], history: History, now: float) -> None:
        """Take in which runs there are, and how far they have come."""
        states = {state.run.id: state for state in history.runs}
        for run_id, handle in handles.items():
            if handle not in self._begun:
                self._begun[handle] = now - max(time.time() - handle.created, 0.0)
                self._silence[handle] = _Silence(
                    RunFolder(states[run_id].folder).metrics, self._begun[handle]
                )
            self._silence[handle].listen(states[run_id].cost, now)
        for handle in set(self._begun) - set(handles.values()):
            del self._begun[handle], self._silence[handle]

    def _too_large(self, run_id: str, size: int) -> Breach | None:
        limit = self._limits.memory_bytes
        if limit is None or size <= limit:
            return None
        return Breach(run_id, Outcome.OUT_OF_MEMORY, f"held {_size(size)} resident, limit {_size(limit)}")

    def _too_long(self, run_id: str, handle: Handle, now: float) -> Breach | None:
        limit = self._limits.run_seconds
        taken = now - self._begun[handle]
        if limit is None or taken <= limit:
            return None
        return Breach(run_id, Outcome.TIMED_OUT, f"not over after {_clock(taken)}, limit {_clock(limit)}")

    def _starving(self, sizes: Mapping[str, int], now: float) -> list[Breach]:
        """The largest run, if the machine is about to kill some process, which might be the tuner.

        A run that holds no more than half of its share is not to blame: it is lost, and gets another attempt.
        """
        memory = self._machine()
        least = max(_LEAST_SHARE * memory.total, _LEAST_BYTES)
        if not sizes or memory.available >= least or now - self._starved < _RECOVERY_SECONDS:
            return []
        self._starved = now
        run_id = max(sizes, key=lambda name: sizes[name])
        to_blame = sizes[run_id] > 0.5 * memory.total / len(sizes)
        reason = (
            f"the machine had {_size(memory.available)} of {_size(memory.total)} memory left, and this run held "
            f"{_size(sizes[run_id])}" + ("" if to_blame else ": other programs hold the rest")
        )
        return [Breach(run_id, Outcome.OUT_OF_MEMORY if to_blame else Outcome.LOST, reason)]


class _Silence:
    """How long a run has written no new step."""

    def __init__(self, metrics: Path, begun: float) -> None:
        self._metrics = metrics
        self._since = begun
        self._size: int | None = None
        self._usual: float | None = None
        self._told = False

    def listen(self, cost: Cost, now: float) -> None:
        """Look whether the run has written something."""
        if cost.steps > 0 and cost.seconds > 0:
            self._usual = cost.seconds / cost.steps
        try:
            status = self._metrics.stat()
        except OSError:
            return
        if self._size is None:  # written before we came
            self._since = max(self._since, now - max(time.time() - status.st_mtime, 0.0))
        elif status.st_size != self._size:
            self._since, self._told = now, False
        self._size = status.st_size

    def text(self, now: float, least: float) -> str:
        """What to tell, once for each silence; empty when there is nothing to tell."""
        silent = now - self._since
        longest = _SLOW_START * least if self._usual is None else max(_SILENT_STEPS * self._usual, least)
        if self._told or silent <= longest:
            return ""
        self._told = True
        if self._usual is None:
            return f"no step yet after {_clock(silent)}"
        return f"no progress for {_clock(silent)} (usual {_clock(self._usual)})"


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GB" if count >= 2**30 else f"{count / 2**20:.0f} MB"


def _clock(seconds: float) -> str:
    """4:10, or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
