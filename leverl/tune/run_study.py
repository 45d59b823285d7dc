"""Run a study from its file to its winner."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from leverl.backends.protocol import Backend
from leverl.config import loader
from leverl.errors import ConfigError
from leverl.executors.ending import end_run
from leverl.executors.local import LocalExecutor
from leverl.executors.protocol import Executor
from leverl.record.layout import write_atomically
from leverl.record.naming import taken
from leverl.record.run_record import Outcome
from leverl.tune.model import StudyObserver, Winner
from leverl.tune.plan import Plan, check_space_can_run, places, prepare
from leverl.tune.ranking import FAILURES
from leverl.tune.running.interruption import StudyInterrupted
from leverl.tune.running.rounds import another_round
from leverl.tune.running.scheduler import Scheduler, Unwatched
from leverl.tune.store.disk import LEAST_FREE, check_space
from leverl.tune.store.lock import LOCK, locked
from leverl.tune.store.mirror import mirror
from leverl.tune.store.outputs import STUDY_FILE, WINNER, write_clock, write_winner
from leverl.tune.store.rebuild import open_store
from leverl.tune.store.retention import prune
from leverl.tune.store.storage import DATABASE, TRIALS, Store, database_of, refuse_network
from leverl.tune.store.trouble import clear_errors
from leverl.tune.strategy import DONE
from leverl.tune.study import Budget, Study
from leverl.tune.study_file import dump_study, load_study
from leverl.tune.view import load_stored

_BUDGETS: Final = tuple(f"budget.{name}" for name in Budget.model_fields)


def run_study(
    study: str | Path | Mapping[str, Any],
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    name: str | None = None,
    out: str | Path = "studies",
    resume: bool = False,
    clean: bool = False,
    parallel: int | None = None,
    retry_failed: bool = False,
    observer: StudyObserver | None = None,
    backend: Backend | None = None,
    executor: Executor | None = None,
    poll_seconds: float = 0.2,
    refresh_seconds: float = 1.0,
    least_free: int = LEAST_FREE,
) -> Winner:
    """Search the levers of a study within its budget and confirm the winner on fresh seeds.

    Args:
        study: a packaged study, a study file or a mapping; with `resume`, the study's folder.
        overrides: parts of the study (`budget.trials=20`) or settings of its base (`steps=100`). A resumed
            study takes only `budget.…` and `parallel`.
        name, out: the study's folder is `out/name`; the name defaults to the study's.
        retry_failed: with `resume`, run those runs again that failed or were lost.
        backend, executor: who trains and who starts processes; by default leverl's engine, on this machine.
        least_free: bytes that must be free on the disk before the study starts.

    Raises:
        ConfigError: wrong study, an existing name, or another tuner at work; nothing was started.
        EnvironmentProblem: the folder is on a network file system or a full disk.
        TrainingFailed: no run has a score.
        StudyInterrupted: a signal came; the study can be resumed.
    """
    if retry_failed and not resume:
        raise ConfigError("only a resumed study has failed runs to retry: add --resume.")
    stored = load_stored(Path(str(study))) if resume else None
    spec = load_study(study, overrides, name) if stored is None else _changed(stored, overrides)
    folder = Path(out) / spec.name if stored is None else Path(str(study))
    plan = prepare(spec, folder, backend)
    if not resume:  # what `default` means now is what it means for the whole study
        spec = spec.model_copy(update={"space": plan.space.in_words()})
    side_by_side, watcher = places(spec, parallel), observer or Unwatched()
    refuse_network(_existing(folder))
    check_space(folder, least_free)
    if not resume:
        check_space_can_run(plan)
        _make_room(folder, clean)
    with locked(folder), clear_errors(folder / DATABASE):
        if not resume:
            write_atomically(folder / STUDY_FILE, dump_study(spec))
        with open_store(plan, watcher.event) as store:
            if stored is not None:
                if spec.budget != stored.budget:
                    before = prepare(stored, folder, backend)
                    another_round(before, plan, store, side_by_side, watcher.event)
                write_atomically(folder / STUDY_FILE, dump_study(spec))
            (folder / WINNER).unlink(missing_ok=True)
            with closing(executor or LocalExecutor()) as hands:
                scheduler = Scheduler(
                    plan,
                    store,
                    hands,
                    watcher,
                    parallel=side_by_side,
                    poll_seconds=poll_seconds,
                    refresh_seconds=refresh_seconds,
                )
                return _conduct(plan, store, scheduler, watcher, retry_failed)


def _conduct(
    plan: Plan, store: Store, scheduler: Scheduler, observer: StudyObserver, retry_failed: bool
) -> Winner:
    for entry in store.entries if retry_failed else ():
        if entry.outcome in (*FAILURES, Outcome.LOST):
            scheduler.retry(entry)
    try:
        cut_short = scheduler.run()
    except StudyInterrupted:
        observer.ended(scheduler.view())
        raise
    history = scheduler.history
    winner = write_winner(plan, history, plan.strategy.conclude(history, cut_short))
    prune(history, plan.study.race.finalists, winner.config_id, spared=store.earlier)
    mirror(database_of(plan.folder), plan.study.name, plan.space, history)
    write_clock(plan.folder, scheduler.seconds, DONE)
    observer.ended(replace(scheduler.view(), winner=winner, phase=DONE))
    return winner


def _changed(study: Study, overrides: Sequence[str] | Mapping[str, Any]) -> Study:
    """A resumed study may get more budget; anything else would make its runs incomparable."""
    changes = overrides if isinstance(overrides, Mapping) else loader.parse_overrides(overrides)
    for word in changes:
        if word != "parallel" and word not in _BUDGETS:
            raise ConfigError(
                f"'{word}' cannot change in a study that has begun: its runs would not be comparable. With "
                f"--resume only parallel and the budget can ({', '.join(_BUDGETS)}). For other changes start a "
                "new study (--name)."
            )
    return load_study(study.model_dump(mode="json"), changes) if changes else study


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _make_room(folder: Path, clean: bool) -> None:
    """See that `folder` is free; with `clean`, stop what runs in it and delete it."""
    if not folder.exists() or all(_left_over(path) for path in folder.iterdir()):
        return
    if not clean:
        raise ConfigError(taken(folder, "tune"))
    if not (folder / STUDY_FILE).is_file():
        raise ConfigError(
            f"{folder} is no study (no {STUDY_FILE}), so --clean does not delete it. Choose --name."
        )
    with locked(folder):
        for run in sorted((folder / TRIALS).glob("*")):
            end_run(run.name, run)
    shutil.rmtree(folder)


def _left_over(path: Path) -> bool:
    """What a tuner leaves that is killed before it has written its study: its lock, half a file."""
    return path.name == LOCK or (path.name.startswith(".") and path.name.endswith(".tmp"))
