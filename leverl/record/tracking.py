"""What trackers (W&B, MLflow, TensorBoard …) are given: plain data from run folders, nothing of the engine.

A tracker is a module of `leverl/record/trackers/` with `create() -> Tracker`.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from leverl import plugins
from leverl.record.run_record import Outcome, RunRecord
from leverl.record.secrets import mask_settings

TRACKERS: Final = "leverl.record.trackers"

Value = float | int | str | bool


@dataclass(frozen=True)
class TrackedAxis:
    """A searched lever: a range from `low` to `high`, or one of `values`."""

    name: str
    low: float | None = None
    high: float | None = None
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class TrackedStudy:
    """A study as trackers see it. Its `id` is the same at every sitting; its name may be used again."""

    id: str
    name: str
    folder: Path
    objective: str
    params: Mapping[str, Value] = field(default_factory=dict)  # what its runs have in common
    axes: tuple[TrackedAxis, ...] = ()


@dataclass(frozen=True)
class TrackedRun:
    """A run as trackers see it. Its `id` is the same however often it is interrupted and resumed."""

    id: str
    name: str
    folder: Path
    job_type: str  # "train", or the study's phase: "search", "grid", "race", "confirm"
    seed: int
    params: Mapping[str, Value] = field(default_factory=dict)  # levers by which runs of a study differ
    config: Mapping[str, Any] = field(default_factory=dict)  # everything, nested as in config.yaml
    tags: Mapping[str, str] = field(default_factory=dict)
    study: TrackedStudy | None = None
    since: int | None = None  # last step that was published before, in an earlier sitting
    started: str = ""  # ISO 8601, UTC

    @property
    def table(self) -> dict[str, Value]:
        """The parameters to filter and compare by: the study's with the run's, or the whole configuration."""
        if self.study is None:
            return flat(self.config)
        return {**self.study.params, **self.params, "seed": self.seed}


@dataclass(frozen=True)
class Ending:
    """How a run ended: outcome, and figures such as score, cost and KL."""

    outcome: Outcome
    summary: Mapping[str, Value] = field(default_factory=dict)
    ended: str = ""  # ISO 8601, UTC


@dataclass(frozen=True)
class Verdict:
    """How a study ended."""

    text: str
    params: Mapping[str, Value] = field(default_factory=dict)  # the winner's levers; empty: the base's
    summary: Mapping[str, Value] = field(default_factory=dict)


class OpenRun(Protocol):
    """A run that is being published."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The metrics of one step; steps ascend."""

    def close(self, ending: Ending) -> None:
        """The run is over; everything is written out."""


class Tracker(Protocol):
    """Publishes runs. May be slow and may raise: whoever calls it takes care of both."""

    @property
    def place(self) -> str:
        """Where it publishes to: what was published elsewhere is published again here."""

    @property
    def hint(self) -> str:
        """How to look at what was published, for people; empty when nothing was."""

    def open_study(self, study: TrackedStudy) -> None:
        """A study begins or goes on; comes before its runs."""

    def open_run(self, run: TrackedRun) -> OpenRun:
        """A run begins or goes on."""

    def close_study(self, study: TrackedStudy, verdict: Verdict | None) -> None:
        """The study is over, or was interrupted (None)."""


def open_trackers(names: Sequence[str]) -> dict[str, Tracker]:
    """The trackers of these names, each once.

    Raises:
        ConfigError: no such tracker; names the nearest.
        EnvironmentProblem: its package is not installed.
    """
    return {name: plugins.load(TRACKERS, name, "tracker").create() for name in dict.fromkeys(names)}


def stable_id(group: str, name: str, record: RunRecord | None, folder: Path) -> str:
    """An id for a run that survives resuming and differs from that of any other run of the same name.

    The token of a run started by a tuner, or the time at which it began, tells attempts apart.
    """
    origin = (record.token or record.started) if record is not None else ""
    digest = hashlib.sha256(f"{origin or folder.resolve()} {name}".encode()).hexdigest()[:8]
    return as_id(group, name, digest)


def as_id(*words: str) -> str:
    """`words` as one word that every tracker takes as an id; the last stays whole."""
    *names, last = words
    text = "-".join(name for name in names if name)
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', text)[:100]}-{last}"


def tracked_run(
    name: str, folder: Path, config: Mapping[str, Any], record: RunRecord, *, since: int | None = None
) -> TrackedRun:
    """A run that belongs to no study."""
    tags = {"source": record.source} | ({"parent": record.parent} if record.parent else {})
    return TrackedRun(
        id=stable_id("", name, record, folder),
        name=name,
        folder=folder,
        job_type="train",
        seed=record.seed,
        config=mask_settings(config),
        tags=tags,
        since=since,
        started=record.started,
    )


def ending_of(record: RunRecord) -> Ending:
    """How a run ended, by its record."""
    summary: dict[str, Value] = {
        "outcome": str(record.outcome),
        "steps": record.step,
        "seconds": record.seconds,
        **({"message": record.message} if record.message else {}),
    }
    if record.score is not None:
        summary["score"] = record.score.mean
        if record.score.standard_error is not None:
            summary["score_se"] = record.score.standard_error
    return Ending(record.outcome or Outcome.LOST, mask_settings(summary), record.ended or "")


def scalars(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among a step's metrics; histograms stay in the run's folder."""
    return {
        name: float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Value]:
    """`{"a": {"b": 1}}` as `{"a.b": 1}`; lists become text, settings that are nothing are left out."""
    found: dict[str, Value] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = value if isinstance(value, bool | int | float | str) else str(value)
    return found
