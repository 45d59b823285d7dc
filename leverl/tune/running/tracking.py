"""A study in trackers (W&B, MLflow, TensorBoard): each run when it is over, and the verdict at the end.

Published is what the run folders hold, so nothing is lost when a tracker, or the tuner, fails: `tracking.json` in the
study's folder says what each tracker has, and the next sitting publishes the rest.
"""

import json
import secrets
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from leverl.record.layout import write_json
from leverl.record.outbox import Outbox
from leverl.record.run_record import Outcome, RunRecord
from leverl.record.secrets import mask_settings, mask_text
from leverl.record.series import RunSeries
from leverl.record.tracking import (
    Ending,
    TrackedAxis,
    TrackedRun,
    TrackedStudy,
    Tracker,
    Value,
    Verdict,
    as_id,
    open_trackers,
    stable_id,
)
from leverl.tune.model import BASE, LeverAxis, RunState, StudyObserver, StudyView, Winner
from leverl.tune.store.progress import read_series

LEDGER: Final = "tracking.json"
PATIENCE: Final = 120.0
"""Seconds that trackers get after the study is over, or was interrupted, to take what they have not got yet."""


def track_study(view: StudyObserver, names: Sequence[str], reader: str = "leverl") -> "TrackedStudyObserver":
    """`view` with the study mirrored into the trackers of these names (none: nothing but the view).

    Raises:
        ConfigError: no such tracker.
        EnvironmentProblem: its package is not installed.
    """
    return TrackedStudyObserver(view, open_trackers(names), reader)


@dataclass(frozen=True)
class _Lane:
    """One tracker, and the thread in which it is called."""

    name: str
    tracker: Tracker
    outbox: Outbox


class TrackedStudyObserver:
    """Passes everything on to `view`, and runs that are over to the trackers, in threads of their own."""

    def __init__(
        self, view: StudyObserver, trackers: Mapping[str, Tracker], reader: str, patience: float = PATIENCE
    ) -> None:
        self._view = view
        self._reader = reader
        self._patience = patience
        self._lanes = [_Lane(name, tracker, Outbox(name)) for name, tracker in trackers.items()]
        self._handed: dict[str, tuple[str, int]] = {}  # run id → outcome and steps
        self._publisher: _Publisher | None = None
        self.hints: tuple[str, ...] = ()
        """After the end: where to look, and what was not published; lines for people."""

    def refreshed(self, view: StudyView) -> None:
        if self._lanes:
            self._hand_over(view)
        self._view.refreshed(view)

    def event(self, text: str) -> None:
        self._view.event(text)

    def ended(self, view: StudyView) -> None:
        if self._lanes:
            publisher = self._hand_over(view)
            for lane in self._lanes:
                lane.outbox.put(partial(lane.tracker.close_study, publisher.study, _verdict(view)))
            self.hints = tuple(self._drain(view.folder))
        self._view.ended(view)

    def _hand_over(self, view: StudyView) -> "_Publisher":
        """Put into the outboxes what is over and was not put there before."""
        publisher = self._publisher
        if publisher is None:
            publisher = self._publisher = _Publisher(view, self._reader)
            for lane in self._lanes:
                lane.outbox.put(partial(publisher.open, lane.tracker))
        for state in view.history.runs:
            now = (str(state.outcome), state.cost.steps)
            if state.outcome is None or self._handed.get(state.run.id) == now:
                continue
            self._handed[state.run.id] = now
            for lane in self._lanes:
                lane.outbox.put(partial(publisher.publish, lane.name, lane.tracker, state))
        for lane in self._lanes:
            for text in lane.outbox.troubles():
                self._view.event(f"! {text}")
        return publisher

    def _drain(self, folder: Path) -> list[str]:
        """Wait for the trackers; what there is to say of each."""
        lines = []
        for lane in self._lanes:
            done = lane.outbox.close(self._patience)
            lines += lane.outbox.troubles()
            if not done or lane.outbox.failed:
                again = f"leverl tune --resume {shlex.quote(str(folder))} --track {lane.name}"
                lines.append(f"{lane.name} has not got everything; this adds the rest: {again}")
            elif lane.tracker.hint:
                lines.append(f"{lane.name}: {lane.tracker.hint}")
        return lines


class _Publisher:
    """Gives runs of one study to trackers; called in their threads."""

    def __init__(self, view: StudyView, reader: str) -> None:
        self._axes = view.axes
        self._reader = reader
        self._ledger = Ledger(view.folder)
        self.study = _study(view, self._ledger.key)

    def open(self, tracker: Tracker) -> None:
        self._ledger.save()  # before anything bears its key
        tracker.open_study(self.study)

    def publish(self, name: str, tracker: Tracker, state: RunState) -> None:
        series = read_series(state.folder, self._reader)
        record = series.record if series else None
        run_id = stable_id(self.study.name, state.run.id, record, state.folder)
        place, now = f"{name} {tracker.place}", [str(state.outcome), state.cost.steps]
        before = self._ledger.published(place, run_id)
        if before == now:
            return
        since = int(before[1]) if before else None
        run = _run(run_id, self.study, self._axes, state)
        run = replace(
            run,
            config=mask_settings(series.config) if series else {},
            since=since,
            started=record.started if record else "",
        )
        opened = tracker.open_run(run)
        until = state.cost.steps if state.outcome is Outcome.STOPPED else None  # it may have gone on since
        for step, metrics in _steps(series, since, until):
            opened.log(step, metrics)
        opened.close(_ending(state, record))
        self._ledger.write(place, run_id, now)


class Ledger:
    """What each tracker has of the study: place → run → outcome and steps. Also the study's own key."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEDGER
        self._lock = threading.Lock()
        self._content: dict[str, Any] = _read(self._path) or {"key": secrets.token_hex(4), "published": {}}

    @property
    def key(self) -> str:
        """Tells this study from others of the same name."""
        return str(self._content["key"])

    def published(self, place: str, run_id: str) -> list[Any] | None:
        with self._lock:
            found: list[Any] | None = self._content["published"].get(place, {}).get(run_id)
        return found

    def write(self, place: str, run_id: str, now: list[Any]) -> None:
        with self._lock:
            self._content["published"].setdefault(place, {})[run_id] = now
        self.save()

    def save(self) -> None:
        with self._lock:
            write_json(self._path, self._content)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and {"key", "published"} <= set(content) else None


def _study(view: StudyView, key: str) -> TrackedStudy:
    params: dict[str, Value] = {
        "study": view.name,
        "target": view.target,
        "strategy": view.strategy,
        "objective": view.objective,
        "steps": view.steps,
        **{
            name: value
            for name, value in view.base_settings.items()
            if name not in {a.name for a in view.axes}
        },
    }
    return TrackedStudy(
        id=as_id(view.name, key),
        name=view.name,
        folder=view.folder,
        objective=view.objective,
        params=mask_settings(params),
        axes=tuple(_axis(axis) for axis in view.axes),
    )


def _axis(axis: LeverAxis) -> TrackedAxis:
    return TrackedAxis(axis.name, axis.low, axis.high, axis.values)


def _run(run_id: str, study: TrackedStudy, axes: Sequence[LeverAxis], state: RunState) -> TrackedRun:
    """What the tuner knows of the run."""
    run = state.run
    params = dict(run.params)
    if run.config_id == BASE:  # which differs from nothing: its own values, so that it can be compared
        params = {axis.name: axis.base for axis in axes if axis.base is not None} | params
    return TrackedRun(
        id=run_id,
        name=run.id,
        folder=state.folder,
        job_type=run.phase,
        seed=run.seed,
        params=mask_settings(params),
        tags={"config": run.config_id, "phase": run.phase},
        study=study,
    )


def _steps(
    series: RunSeries | None, since: int | None, until: int | None
) -> list[tuple[int, dict[str, float]]]:
    """The run's metrics by step: those after `since`, and up to `until`."""
    found: dict[int, dict[str, float]] = {}
    for name, points in series.metrics.items() if series else ():
        for step, value in zip(points.steps, points.values, strict=True):
            if (since is None or step > since) and (until is None or step <= until):
                found.setdefault(step, {})[name] = value
    return sorted(found.items())


def _ending(state: RunState, record: RunRecord | None) -> Ending:
    known: dict[str, Value | None] = {
        "outcome": str(state.outcome),
        "message": mask_text(state.message) or None,
        "score": state.score.mean if state.score else None,
        "score_se": state.score.standard_error if state.score else None,
        "predicted_score": state.prediction.mean if state.prediction else None,
        "predicted_score_se": state.prediction.standard_error if state.prediction else None,
        "final_kl": state.kl,
        "final_length": state.length,
        "steps_to_90": state.steps_to_90,
        "steps": state.cost.steps,
        "responses": state.cost.responses,
        "tokens": state.cost.tokens,
        "seconds": state.cost.seconds,
        "gpu_seconds": state.cost.gpu_seconds,
    }
    if state.outcome is None:
        raise ValueError(f"{state.run.id} is not over, so it has no ending")
    summary = {name: value for name, value in known.items() if value is not None}
    return Ending(state.outcome, summary, (record.ended if record else None) or "")


def _verdict(view: StudyView) -> Verdict | None:
    winner: Winner | None = view.winner
    if winner is None:
        return None
    summary: dict[str, Value] = {
        "winner": winner.config_id,
        "runs": len(view.history.runs),
        "seconds": view.seconds,
    }
    comparison = winner.comparison
    if comparison is not None:
        summary |= {
            "compared": comparison.config_id,
            "gain": comparison.difference,
            "gain_shown": comparison.gain,
        }
        if comparison.interval is not None:
            summary |= {"gain_low": comparison.interval[0], "gain_high": comparison.interval[1]}
    return Verdict(mask_text(winner.verdict), mask_settings(winner.params), summary)
