"""`run.json`: what a run is, how it is going and how it ended."""

import json
import os
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

from leverl.record.layout import write_json


class Outcome(StrEnum):
    """How a run ended. Only FINISHED runs have a score; a failure is a fact, never a score."""

    FINISHED = "finished"
    STOPPED = "stopped"  # early, by the tuner, at a checkpoint: its score is predicted from its curve
    INTERRUPTED = "interrupted"  # Ctrl-C or SIGTERM; a checkpoint to resume from was written
    OUT_OF_MEMORY = "out_of_memory"
    NON_FINITE = "non_finite"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    LOST = "lost"  # the process vanished without a word (killed, node gone)


@dataclass(frozen=True)
class Score:
    """Mean of the last k held-out evaluations with its standard error (None: not known, never 0)."""

    mean: float
    standard_error: float | None
    evaluations: int


@dataclass(frozen=True)
class RunRecord:
    """The content of `run.json`. Times are ISO 8601 in UTC."""

    id: str
    seed: int
    until: int
    source: str
    outcome: Outcome | None = None  # None while it runs
    step: int = 0
    parent: str | None = None
    changed: dict[str, list[Any]] = field(default_factory=dict)  # fork: path → [before, after]
    message: str = ""
    notes: list[str] = field(
        default_factory=list
    )  # oddities of the run: dropped prompts, a reward that raised
    score: Score | None = None
    started: str = ""
    ended: str | None = None
    seconds: float = 0.0  # training time over all attempts
    gpus: int = 0  # GPUs held meanwhile
    pid: int = 0
    pid_created: float = 0.0  # tells a live process from a recycled pid
    token: str = ""  # given by the tuner to find its runs again
    versions: dict[str, str] = field(default_factory=dict)

    def with_(self, **changes: Any) -> "RunRecord":
        return replace(self, **changes)

    def save(self, path: Path) -> None:
        write_json(path, asdict(self))

    @property
    def alive(self) -> bool:
        """Whether the process that wrote this record still runs."""
        return self.outcome is None and process_alive(self.pid, self.pid_created)


def own_process() -> dict[str, Any]:
    """`pid` and `pid_created` of this process, for a record."""
    return {"pid": os.getpid(), "pid_created": psutil.Process().create_time()}


def process_alive(pid: int, created: float) -> bool:
    """Whether process `pid` exists, is no zombie and was created at `created` (seconds since the epoch)."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - created) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def now() -> str:
    """The time for a record."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def load_record(path: Path) -> RunRecord | None:
    """The record at `path`; None where there is none (a run that never got that far)."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    score = content.pop("score", None)
    outcome = content.pop("outcome", None)
    known = {name: value for name, value in content.items() if name in RunRecord.__dataclass_fields__}
    return RunRecord(
        **known,
        outcome=Outcome(outcome) if outcome else None,
        score=Score(**score) if score else None,
    )
