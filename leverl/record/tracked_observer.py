"""A training run mirrored into trackers while it trains: an observer around the view that people see."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from leverl.record.metrics import MetricValue
from leverl.record.observer import Observer, Sample
from leverl.record.outbox import Outbox
from leverl.record.run_record import RunRecord
from leverl.record.tracking import Ending, OpenRun, TrackedRun, Tracker, ending_of, scalars, tracked_run

PATIENCE: Final = 60.0
"""Seconds that trackers get to write everything out after the run has ended."""


class _Lane:
    """One tracker with the run that is open in it; all work on them is done in the outbox's thread."""

    def __init__(self, name: str, tracker: Tracker) -> None:
        self.name = name
        self.tracker = tracker
        self.outbox = Outbox(name)
        self._run: OpenRun | None = None

    def open(self, run: TrackedRun) -> None:
        self._run = self.tracker.open_run(run)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        if self._run is not None:
            self._run.log(step, metrics)

    def close(self, ending: Ending) -> None:
        if self._run is not None:
            self._run.close(ending)


class TrackedObserver:
    """Passes everything on to `view`, and a copy of it to the trackers.

    Args:
        view: what people see; it is told of trouble with a tracker, once.
        trackers: by name.
        parent: the folder that holds the run's folder.
    """

    def __init__(
        self, view: Observer, trackers: Mapping[str, Tracker], parent: Path, patience: float = PATIENCE
    ) -> None:
        self._view = view
        self._parent = parent
        self._patience = patience
        self._lanes = [_Lane(name, tracker) for name, tracker in trackers.items()]
        self.hints: tuple[str, ...] = ()
        """After the end: where to look, and what could not be published; lines for people."""

    def started(self, name: str, config: Mapping[str, Any], record: RunRecord) -> None:
        since = record.step if record.step > 0 and record.parent is None else None
        run = tracked_run(name, self._parent / name, config, record, since=since)
        for lane in self._lanes:
            lane.outbox.put(partial(lane.open, run))
        self._view.started(name, config, record)

    def note(self, text: str) -> None:
        self._view.note(text)

    def phase(self, name: str) -> None:
        self._view.phase(name)

    def stepped(self, step: int, metrics: Mapping[str, MetricValue], samples: Sequence[Sample]) -> None:
        numbers = scalars(metrics)
        for lane in self._lanes:
            lane.outbox.put(partial(lane.log, step, numbers))
        self._tell_troubles()
        self._view.stepped(step, metrics, samples)

    def saved(self, step: int, path: str) -> None:
        self._view.saved(step, path)

    def ended(self, record: RunRecord) -> None:
        ending = ending_of(record)
        for lane in self._lanes:
            lane.outbox.put(partial(lane.close, ending))
        hints = []
        for lane in self._lanes:
            if not lane.outbox.close(self._patience):
                hints.append(f"{lane.name}: the last of the run was not taken within {self._patience:.0f} s")
            elif lane.tracker.hint:
                hints.append(f"{lane.name}: {lane.tracker.hint}")
        self._tell_troubles()
        self.hints = tuple(hints)
        self._view.ended(record)

    def _tell_troubles(self) -> None:
        for lane in self._lanes:
            for text in lane.outbox.troubles():
                self._view.note(text)
