"""MLflow: a study is a parent run, its runs are children that repeat the study's parameters.

Publishes to `MLFLOW_TRACKING_URI`, else to MLflow's default (`mlflow.db` in the working directory), in the experiment
`MLFLOW_EXPERIMENT_NAME`, else `leverl`.
"""

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final, TypeVar

from leverl.plugins import MLFLOW
from leverl.record.run_record import Outcome
from leverl.record.tracking import Ending, TrackedRun, TrackedStudy, Tracker, Value, Verdict

_EXPERIMENT: Final = "leverl"
_ID_TAG: Final = "leverl.id"
_MOST_AT_ONCE: Final = 100  # parameters or tags in a request
_BUFFER: Final = 500  # metrics, of at most 1000 in a request
_FLUSH_SECONDS: Final = 5.0
_LONGEST: Final = 5000  # characters of a parameter, a tag or a note
_STATUS: Final = {Outcome.FINISHED: "FINISHED", Outcome.STOPPED: "FINISHED", Outcome.INTERRUPTED: "KILLED"}

_T = TypeVar("_T")


def create() -> Tracker:
    """The tracker.

    Raises:
        EnvironmentProblem: mlflow is not installed.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # only what was asked for is sent
    mlflow = MLFLOW.require("for --track mlflow")
    for name in ("mlflow", "alembic"):  # which tell at length of each table that they create
        logging.getLogger(name).setLevel(logging.WARNING)
    return MlflowTracker(mlflow)


class MlflowTracker:
    """Writes one MLflow run for each run, below one for the study. Runs are found again by a tag."""

    def __init__(self, mlflow: Any) -> None:
        self._uri = str(mlflow.get_tracking_uri())
        self._client = mlflow.MlflowClient(tracking_uri=self._uri)
        self._name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or _EXPERIMENT
        self._experiment = ""
        self._parents: dict[str, str] = {}  # study id → MLflow run id

    @property
    def place(self) -> str:
        return f"{self._uri} {self._name}"

    @property
    def hint(self) -> str:
        if not self._experiment:
            return ""
        if self._uri.startswith(("http://", "https://")):
            return f"{self._uri.rstrip('/')}/#/experiments/{self._experiment}"
        return f"to look: mlflow server --backend-store-uri {self._uri}"

    def open_study(self, study: TrackedStudy) -> None:
        tags = {"leverl.job_type": "study", "leverl.folder": str(study.folder), "objective": study.objective}
        parent = self._begin(study.id, study.name, tags, None, "")
        self._parents[study.id] = parent
        self._log_params(parent, study.params)

    def open_run(self, run: TrackedRun) -> "MlflowRun":
        parent = None
        if run.study is not None:
            if run.study.id not in self._parents:
                self.open_study(run.study)
            parent = self._parents[run.study.id]
        tags = {
            "leverl.job_type": run.job_type,
            "seed": str(run.seed),
            "leverl.folder": str(run.folder),
            **run.tags,
        }
        run_id = self._begin(run.id, run.name, tags, parent, run.started)
        self._log_params(run_id, run.table)
        return MlflowRun(self._client, run_id)

    def close_study(self, study: TrackedStudy, verdict: Verdict | None) -> None:
        run_id = self._parents.get(study.id)
        if run_id is None:
            return
        if verdict is None:
            self._client.set_terminated(run_id, status="KILLED")
            return
        winner = {f"winner.{name}": str(value) for name, value in verdict.params.items()}
        _log_summary(self._client, run_id, verdict.summary, None)
        _set_tags(
            self._client, run_id, {**winner, "verdict": verdict.text, "mlflow.note.content": verdict.text}
        )
        self._client.set_terminated(run_id, status="FINISHED")

    def _begin(self, id: str, name: str, tags: Mapping[str, str], parent: str | None, started: str) -> str:
        """The MLflow run that carries `id`, running; a new one where there is none."""
        experiment = self._find_experiment()
        found = self._client.search_runs(
            [experiment], filter_string=f"tags.`{_ID_TAG}` = '{id}'", max_results=1
        )
        if found:
            self._client.update_run(found[0].info.run_id, status="RUNNING")
            return str(found[0].info.run_id)
        own = {_ID_TAG: id, **({"mlflow.parentRunId": parent} if parent else {})}
        run = self._client.create_run(experiment, start_time=_milliseconds(started), tags=own, run_name=name)
        _set_tags(self._client, run.info.run_id, tags)
        return str(run.info.run_id)

    def _find_experiment(self) -> str:
        if not self._experiment:
            found = self._client.get_experiment_by_name(self._name)
            self._experiment = str(
                found.experiment_id if found else self._client.create_experiment(self._name)
            )
        return self._experiment

    def _log_params(self, run_id: str, params: Mapping[str, Value]) -> None:
        param = import_module("mlflow.entities").Param
        rows = [param(_key(name), str(value)[:_LONGEST]) for name, value in params.items()]
        for part in _parts(rows, _MOST_AT_ONCE):
            self._client.log_batch(run_id, params=part)


class MlflowRun:
    """An open MLflow run; metrics are sent in batches, at least every few seconds."""

    def __init__(self, client: Any, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._metric = import_module("mlflow.entities").Metric
        self._waiting: list[Any] = []
        self._flushed = time.monotonic()
        self._step = 0

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        now, self._step = _now(), step
        self._waiting += [self._metric(_key(name), value, now, step) for name, value in metrics.items()]
        if len(self._waiting) >= _BUFFER or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush()

    def close(self, ending: Ending) -> None:
        self._flush()
        _log_summary(self._client, self._run_id, ending.summary, self._step)
        status = _STATUS.get(ending.outcome, "FAILED")
        self._client.set_terminated(self._run_id, status=status, end_time=_milliseconds(ending.ended))

    def _flush(self) -> None:
        sending, self._waiting = self._waiting, []
        self._flushed = time.monotonic()
        for part in _parts(sending, _BUFFER):
            self._client.log_batch(self._run_id, metrics=part)


def _log_summary(client: Any, run_id: str, summary: Mapping[str, Value], step: int | None) -> None:
    """Numbers as metrics, by which runs can be sorted; words as tags."""
    metric = import_module("mlflow.entities").Metric
    now = _now()
    numbers = [
        metric(_key(name), float(value), now, step or 0)
        for name, value in summary.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    client.log_batch(run_id, metrics=numbers)
    words = {name: str(value) for name, value in summary.items() if isinstance(value, str | bool)}
    _set_tags(client, run_id, words)


def _set_tags(client: Any, run_id: str, tags: Mapping[str, str]) -> None:
    tag = import_module("mlflow.entities").RunTag
    rows = [tag(_key(name), value[:_LONGEST]) for name, value in tags.items()]
    for part in _parts(rows, _MOST_AT_ONCE):
        client.log_batch(run_id, tags=part)


def _parts(rows: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _key(name: str) -> str:
    """`name` with the letters that MLflow allows."""
    return re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name)[:250]


def _now() -> int:
    return round(time.time() * 1000)


def _milliseconds(when: str) -> int | None:
    """An ISO time as MLflow counts; None, which means now, where it is unknown."""
    try:
        found = datetime.fromisoformat(when)
    except ValueError:
        return None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
