"""Start, resume or fork a run, and write down how it ended."""

import os
import platform
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from leverl.config import loader, tree
from leverl.config.schema import Config
from leverl.engine.train import checkpoint as checkpoints
from leverl.engine.train.checkpoint import Checkpoint, Counters
from leverl.engine.train.devices import on_gpu
from leverl.engine.train.loop import outcome_of, run
from leverl.engine.train.session import Origin, Seed, Session, open_session
from leverl.engine.train.signals import StopRequest
from leverl.errors import (
    CheckpointError,
    ConfigError,
    EnvironmentProblem,
    LeverlError,
    NonFiniteLoss,
    TrainingFailed,
)
from leverl.record.layout import RunFolder, write_atomically
from leverl.record.metrics import drop_after
from leverl.record.observer import Observer, Silent
from leverl.record.readers.leverl import read
from leverl.record.run_record import Outcome, RunRecord, Score, load_record, now, own_process
from leverl.record.series import score_of


@dataclass(frozen=True)
class Result:
    """A run that is over. `checkpoint` is its last one (None: it failed before the first)."""

    folder: Path
    record: RunRecord
    checkpoint: Path | None

    @property
    def outcome(self) -> Outcome:
        return self.record.outcome or Outcome.LOST

    @property
    def score(self) -> Score | None:
        return self.record.score


def start(loaded: loader.Loaded, folder: Path, *, observer: Observer | None = None) -> Result:
    """A new run in `folder`, which must not hold one yet."""
    paths = RunFolder(folder)
    if paths.exists():
        raise ConfigError(f"{folder} holds a run already. Resume it, or choose another name.")
    config = loaded.config
    record = _new_record(config, folder, loaded.source)
    return _conduct(paths, config, record, Origin((config.seed,)), observer)


def resume(folder: Path, *, observer: Observer | None = None) -> Result:
    """Go on with the run in `folder` from its last checkpoint, exactly as if it had not stopped.

    A run that stopped before its first checkpoint begins again.

    Raises:
        ConfigError: no run there, it is finished, or its process still lives.
    """
    paths = RunFolder(folder)
    record = load_record(paths.record)
    if record is None or not paths.config.is_file():
        raise ConfigError(f"{folder} holds no run to resume (no run.json and config.yaml).")
    if record.alive:
        raise ConfigError(f"{folder} is being trained by process {record.pid}. Stop it first.")
    if record.outcome is Outcome.FINISHED:
        raise ConfigError(
            f"{folder} is finished ({record.until} steps). To train on: leverl train --from "
            f"{folder} steps={2 * record.until}"
        )
    config = loader.load(folder).config
    origin = _where_it_stopped(paths, config, record)
    record = record.with_(outcome=None, message="", ended=None, score=None, **own_process())
    return _conduct(paths, config, record, origin, observer)


def _where_it_stopped(paths: RunFolder, config: Config, record: RunRecord) -> Origin:
    """The run's last checkpoint; before its first, where it began."""
    seed: Seed = _fork_seed(config, record.parent) if record.parent else (config.seed,)
    found = checkpoints.latest(paths.checkpoints)
    if found is None and record.parent is not None:
        return Origin(seed, checkpoints.load(Path(record.parent)), forked=True)
    return Origin(seed, found)


@dataclass(frozen=True)
class Fork:
    """A checked wish to go on from a checkpoint with changed levers."""

    origin: Checkpoint
    loaded: loader.Loaded
    changed: dict[str, list[Any]]


def prepare_fork(checkpoint: Path, overrides: Mapping[str, Any]) -> Fork:
    """What a fork of `checkpoint` (or of a run's last one) with `overrides` would be.

    Raises:
        CheckpointError: no complete checkpoint. ConfigError: the model was changed, or no step is left.
    """
    origin = _resolve_checkpoint(checkpoint)
    run_folder = origin.path.parent.parent
    before, loaded = loader.load(run_folder).config, loader.load(run_folder, overrides)
    config = loaded.config
    if config.model != before.model:
        raise ConfigError(
            "a fork keeps the model of its checkpoint: leave model.* as it is, or start a new run."
        )
    if config.train.steps <= origin.counters.step:
        raise ConfigError(
            f"train.steps = {config.train.steps}, but {origin.path} is at step {origin.counters.step} "
            f"already (steps count from the beginning). Set steps={origin.counters.step + config.train.steps}, say."
        )
    after = tree.flat(config)
    changed = {path: [old, after[path]] for path, old in tree.flat(before).items() if after[path] != old}
    return Fork(origin, loaded, changed)


def fork(prepared: Fork, folder: Path, *, observer: Observer | None = None) -> Result:
    """A new run in `folder` that goes on from a checkpoint.

    Weights and optimizer moments are kept, changed levers take effect at once (also the learning rate), data
    order and sampling are seeded anew, and `train.steps` still counts from the very beginning.
    """
    paths, config, origin = RunFolder(folder), prepared.loaded.config, prepared.origin
    if paths.exists():
        raise ConfigError(f"{folder} holds a run already. Choose another name.")
    parent = str(origin.path.resolve())
    record = _new_record(config, folder, str(origin.path)).with_(
        parent=parent, changed=prepared.changed, step=origin.counters.step
    )
    begin = Origin(_fork_seed(config, parent), origin, forked=True)
    return _conduct(paths, config, record, begin, observer)


def _resolve_checkpoint(path: Path) -> Checkpoint:
    if (path / "checkpoints").is_dir():
        found = checkpoints.latest(path / "checkpoints")
        if found is None:
            raise CheckpointError(f"{path} has no complete checkpoint yet.")
        return found
    return checkpoints.load(path)


def _fork_seed(config: Config, parent: str) -> Seed:
    """Another stream than the parent's, the same for every attempt at this fork."""
    origin = Path(parent)
    return (config.seed, "fork", origin.parent.parent.name, origin.name)


def _begin(paths: RunFolder, config: Config, record: RunRecord, step: int) -> None:
    """From here on the run exists; what an interrupted attempt measured after its checkpoint is measured again."""
    try:
        paths.path.mkdir(parents=True, exist_ok=True)
        if not paths.config.is_file():
            write_atomically(paths.config, loader.dump(config, f"Resolved from {record.source}."))
        drop_after(paths.metrics, step)
        record.save(paths.record)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write to {paths.path}: {error.strerror or error}.") from error


def _new_record(config: Config, folder: Path, source: str) -> RunRecord:
    return RunRecord(
        id=folder.name,
        seed=config.seed,
        until=config.train.steps,
        source=source,
        started=now(),
        token=os.environ.get("LEVERL_RUN_TOKEN", ""),
        gpus=int(on_gpu(config.model.device)),
        versions={
            "leverl": version("leverl"),
            "torch": str(torch.__version__),
            "transformers": version("transformers"),
            "python": platform.python_version(),
        },
        **own_process(),
    )


def _conduct(
    paths: RunFolder, config: Config, record: RunRecord, origin: Origin, observer: Observer | None
) -> Result:
    """Build the session, run it, and write the outcome, whatever happens."""
    observer = observer or Silent()
    torch.set_num_threads(config.train.threads)
    disable_progress_bar()  # transformers' own, one for each file it loads or saves
    session: Session | None = None
    with StopRequest() as stop:
        try:
            session = open_session(paths, config, record, origin, observer)
            _begin(paths, config, record, origin.measured_until)
            observer.started(paths.path.name, config.model_dump(mode="json"), record)
            for text in session.remarks:
                session.note(text)
            run(session, stop)
            outcome, message = outcome_of(stop, session)
        except Exception as error:
            if (
                session is None
                and isinstance(error, LeverlError)
                and error.exit_code != TrainingFailed.exit_code
            ):
                raise  # nothing was started, nothing is left behind
            if session is None:
                _begin(paths, config, record, origin.measured_until)
            _close(paths, config, session.record if session else record, session, *_explain(error), observer)
            if isinstance(error, TrainingFailed | MemoryError | torch.OutOfMemoryError):
                return _result(paths)
            raise
        except KeyboardInterrupt:
            if session is not None:
                message = "stopped at once, without a new checkpoint"
                _close(paths, config, session.record, session, Outcome.INTERRUPTED, message, observer)
            raise
    _close(paths, config, session.record, session, outcome, message, observer)
    return _result(paths)


def _explain(error: Exception) -> tuple[Outcome, str]:
    if isinstance(error, NonFiniteLoss):
        return Outcome.NON_FINITE, str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return Outcome.OUT_OF_MEMORY, str(error) or "out of memory"
    if isinstance(error, LeverlError):
        return Outcome.CRASHED, str(error)
    return Outcome.CRASHED, "".join(traceback.format_exception_only(error)).strip()


def _close(
    paths: RunFolder,
    config: Config,
    record: RunRecord,
    session: Session | None,
    outcome: Outcome,
    message: str,
    observer: Observer,
) -> None:
    score = None
    if outcome is Outcome.FINISHED:
        series = read(paths.path)
        score = score_of(series.get("eval/score"), series.get("eval/score_se"), config.evaluation.last_k)
    counters = session.counters if session else Counters(step=record.step)
    record = record.with_(
        outcome=outcome,
        message=message,
        ended=now(),
        step=counters.step,
        seconds=counters.seconds,
        score=score,
    )
    record.save(paths.record)
    observer.ended(record)


def _result(paths: RunFolder) -> Result:
    record = load_record(paths.record)
    if record is None:
        raise EnvironmentProblem(f"{paths.record} vanished while the run was closing.")
    last = checkpoints.latest(paths.checkpoints)
    return Result(paths.path, record, last.path if last else None)
