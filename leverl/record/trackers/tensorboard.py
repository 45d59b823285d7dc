"""TensorBoard: curves and hyperparameters in one event file, in the run's own folder.

The HParams tab is fed by protos beside the curves (`add_hparams` of torch makes a run of its own for each session); a
study's axes, objective and verdict lie in an event file of the study's folder.
"""

import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from leverl.plugins import TENSORBOARD
from leverl.record.run_record import Outcome
from leverl.record.tracking import (
    Ending,
    TrackedAxis,
    TrackedRun,
    TrackedStudy,
    Tracker,
    Value,
    Verdict,
    scalars,
)


def create() -> Tracker:
    """The tracker.

    Raises:
        EnvironmentProblem: tensorboard is not installed.
    """
    TENSORBOARD.require("for --track tensorboard")
    return TensorboardTracker()


class TensorboardTracker:
    """Writes event files."""

    def __init__(self) -> None:
        self._folders: dict[Path, None] = {}

    @property
    def place(self) -> str:
        return "event files"

    @property
    def hint(self) -> str:
        import shlex

        folders = list(map(str, self._folders))
        return f"to look: tensorboard --logdir {shlex.quote(folders[0])}" if folders else ""

    def open_study(self, study: TrackedStudy) -> None:
        self._folders[study.folder] = None
        if not any(study.folder.glob("events.out.tfevents.*")):
            with _EventFile(study.folder) as file:
                file.add(_experiment(study))

    def open_run(self, run: TrackedRun) -> "TensorboardRun":
        if run.study is None:
            self._folders[run.folder] = None
        return TensorboardRun(run)

    def close_study(self, study: TrackedStudy, verdict: Verdict | None) -> None:
        if verdict is not None:
            with _EventFile(study.folder) as file:
                file.add(_text("verdict", verdict.text))


class TensorboardRun:
    """An open event file with the session of one run."""

    def __init__(self, run: TrackedRun) -> None:
        self._file = _EventFile(run.folder)
        self._step = 0
        if run.since is not None:
            self._file.restart(run.since + 1)
        if run.study is None:
            self._file.add(_session_start(run.table, ""))
        else:  # the seeds of a configuration are sessions of one group, whose scores TensorBoard averages
            self._file.add(_session_start(run.params, run.tags.get("config", "")))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._step = step
        self._file.add(_scalars(metrics), step)

    def close(self, ending: Ending) -> None:
        self._file.add(_scalars(scalars(ending.summary)), self._step)
        failed = ending.outcome not in (Outcome.FINISHED, Outcome.STOPPED)
        self._file.add(_session_end(failed=failed))
        self._file.close()


class _EventFile:
    """A new event file in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._events = import_module("tensorboard.compat.proto.event_pb2")
        writer = import_module("tensorboard.summary.writer.event_file_writer")
        self._writer = writer.EventFileWriter(str(folder), flush_secs=10)

    def add(self, summary: Any, step: int = 0) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, summary=summary))

    def restart(self, step: int) -> None:
        """From `step` on everything is measured again: what earlier files hold of it does not count."""
        log = self._events.SessionLog(status=self._events.SessionLog.START)
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, session_log=log))

    def close(self) -> None:
        self._writer.close()

    def __enter__(self) -> "_EventFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _scalars(metrics: Mapping[str, float]) -> Any:
    protos = import_module("tensorboard.compat.proto.summary_pb2")
    values = [protos.Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
    return protos.Summary(value=values)


def _text(tag: str, text: str) -> Any:
    protos = import_module("tensorboard.compat.proto.summary_pb2")
    metadata = import_module("tensorboard.plugins.text.metadata").create_summary_metadata(tag, "")
    tensor = import_module("tensorboard.util.tensor_util").make_tensor_proto([text.encode()], shape=(1,))
    return protos.Summary(value=[protos.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def _hparams(tag: str, **content: Any) -> Any:
    """A summary that holds nothing but data of the HParams plugin."""
    protos = import_module("tensorboard.compat.proto.summary_pb2")
    metadata = import_module("tensorboard.plugins.hparams.metadata")
    data = import_module("tensorboard.plugins.hparams.plugin_data_pb2").HParamsPluginData(**content)
    value = protos.Summary.Value(
        tag=tag, metadata=metadata.create_summary_metadata(data), tensor=metadata.NULL_TENSOR
    )
    return protos.Summary(value=[value])


def _experiment(study: TrackedStudy) -> Any:
    api = import_module("tensorboard.plugins.hparams.api_pb2")
    tag = import_module("tensorboard.plugins.hparams.metadata").EXPERIMENT_TAG
    axes = [_hparam_info(axis) for axis in study.axes]
    metrics = [api.MetricInfo(name=api.MetricName(tag=name)) for name in (study.objective, "score")]
    experiment = api.Experiment(
        name=study.name, hparam_infos=axes, metric_infos=metrics, time_created_secs=time.time()
    )
    return _hparams(tag, experiment=experiment)


def _hparam_info(axis: TrackedAxis) -> Any:
    api = import_module("tensorboard.plugins.hparams.api_pb2")
    info = api.HParamInfo(name=axis.name)
    numeric = axis.low is not None and axis.high is not None
    if numeric and not axis.values:
        info.type = api.DATA_TYPE_FLOAT64
        info.domain_interval.min_value, info.domain_interval.max_value = axis.low, axis.high
    elif numeric:
        info.type = api.DATA_TYPE_FLOAT64  # a range and a value beside it: TensorBoard knows no such domain
    else:
        kinds = {type(value) for value in axis.values}
        info.type = (
            api.DATA_TYPE_BOOL
            if kinds == {bool}
            else api.DATA_TYPE_FLOAT64
            if kinds <= {int, float}
            else api.DATA_TYPE_STRING
        )
        info.domain_discrete.extend(
            [value if isinstance(value, bool | float | str) else float(value) for value in axis.values]
        )
    return info


def _session_start(params: Mapping[str, Value], group: str) -> Any:
    tag = import_module("tensorboard.plugins.hparams.metadata").SESSION_START_INFO_TAG
    start = import_module("tensorboard.plugins.hparams.plugin_data_pb2").SessionStartInfo(
        group_name=group, start_time_secs=time.time()
    )
    for name, value in params.items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
        elif isinstance(value, int | float):
            start.hparams[name].number_value = value
        else:
            start.hparams[name].string_value = value
    return _hparams(tag, session_start_info=start)


def _session_end(*, failed: bool) -> Any:
    api = import_module("tensorboard.plugins.hparams.api_pb2")
    tag = import_module("tensorboard.plugins.hparams.metadata").SESSION_END_INFO_TAG
    end = import_module("tensorboard.plugins.hparams.plugin_data_pb2").SessionEndInfo(
        status=api.STATUS_FAILURE if failed else api.STATUS_SUCCESS, end_time_secs=time.time()
    )
    return _hparams(tag, session_end_info=end)
