"""The study's database: Optuna's, one trial per run, so that its dashboard and plots open it.

It holds what was decided (configuration, seed, phase, folder) and how each run ended. What happened inside a
run is in the run's folder; the two are joined by the run's id.
"""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psutil

from leverl.errors import ConfigError, EnvironmentProblem
from leverl.record.run_record import Outcome
from leverl.record.series import EMPTY, Series
from leverl.tune.model import SEARCH, Run
from leverl.tune.optuna_log import quiet_optuna
from leverl.tune.space.space import Space
from leverl.tune.store.decisions import write_decision
from leverl.tune.store.rounds import read_rounds, write_round
from leverl.tune.store.trouble import LOCK_SECONDS, database_errors

DATABASE: Final = "study.db"
TRIALS: Final = "trials"

_RUN: Final = "run"
_PROCESS: Final = "process"

_NETWORK: Final = (
    "nfs", "nfs4", "lustre", "cifs", "smbfs", "smb3", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p",
    "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.cephfs",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A run as the database knows it. `outcome` is None until it is over."""

    run: Run
    folder: Path
    token: str
    attempts: int = 1
    outcome: Outcome | None = None
    message: str = ""
    continued: bool = False  # was stopped early once, and is wanted after all
    number: int = -1  # of its Optuna trial
    trial_id: int = field(default=-1, repr=False)


class Store:
    """Reads and writes the database of the study in `folder`.

    A `draft` may be lost in a power failure, and leaves no decision files: for a database in the making.

    Raises:
        EnvironmentProblem: the folder lies on a network file system, where SQLite loses data; or the database is
            locked by another program, not writable, or of another version of Optuna.
        DatabaseDamaged: it cannot be read.
    """

    def __init__(self, folder: Path, name: str, *, maximize: bool, draft: bool = False) -> None:
        import optuna

        refuse_network(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with database_errors(folder / DATABASE), quiet_optuna(), ExitStack() as undo:
            self._storage: Any = optuna.storages.RDBStorage(
                f"sqlite:///{(folder / DATABASE).resolve()}",
                engine_kwargs={
                    "connect_args": {"timeout": LOCK_SECONDS, **({"factory": _Unsynced} if draft else {})}
                },
            )
            undo.callback(self.close)
            self._study = optuna.create_study(
                storage=self._storage,
                study_name=name,
                direction="maximize" if maximize else "minimize",
                load_if_exists=True,
            )
            self._folder = folder
            self._draft = draft
            self._rounds = read_rounds(folder)
            self._entries = {entry.run.id: entry for entry in self._read()}
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the database."""
        self._storage.remove_session()
        self._storage.engine.dispose()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All runs, in order of start. A run that was retried counts once, as it ended last."""
        return tuple(self._entries.values())

    @property
    def rounds(self) -> int:
        """Rounds that are over and have been followed by another."""
        return len(self._rounds)

    @property
    def earlier(self) -> frozenset[str]:
        """Ids of the runs of these rounds: they count as runs of the search."""
        return frozenset(chain(*self._rounds))

    def begin_round(self) -> None:
        """From now on all runs so far count as runs of the search."""
        self._rounds = write_round(self._folder, self._rounds, list(self._entries))
        self._entries = {entry.run.id: entry for entry in self._read()}

    def entry(self, run_id: str) -> Entry:
        """The run with this id, which has to exist."""
        return self._entries[run_id]

    def add(self, run: Run, space: Space, token: str, *, continued: bool = False) -> Entry:
        """Write down that `run` is going to be started: before its process exists, so none is forgotten.

        A run that is known already gets a new trial that supersedes the old one.
        """
        from optuna.trial import TrialState, create_trial

        params = space.encode(run.params or space.base_params())
        distributions = space.distributions()
        trial = create_trial(
            state=TrialState.RUNNING,
            params=params,
            distributions={name: distributions[name] for name in params},
            user_attrs={
                "run_id": run.id,
                "config_id": run.config_id,
                "seed": run.seed,
                "phase": run.phase,
                "folder": f"{TRIALS}/{run.id}",
                _PROCESS: {"token": token, "attempts": 1, "continued": continued},
                _RUN: {"until": run.until, "params": dict(run.params)},
            },
        )
        self._study.add_trial(trial)
        return self._keep(self._entry(self._study.get_trials(deepcopy=False)[-1]))

    def again(self, run_id: str, token: str, attempts: int) -> Entry:
        """Write down that a run that is not over gets another process."""
        entry = self._entries[run_id]
        process = {"token": token, "attempts": attempts, "continued": entry.continued}
        self._storage.set_trial_user_attr(entry.trial_id, _PROCESS, process)
        return self._keep(replace(entry, token=token, attempts=attempts))

    def finish(
        self, run_id: str, outcome: Outcome, value: float | None, message: str, curve: Series = EMPTY
    ) -> Entry:
        """Write down how a run ended; `value` is its score, None for a run without one.

        `curve` is what Optuna calls intermediate values. A run that was stopped early is a pruned trial.
        """
        from optuna.trial import TrialState

        entry = self._entries[run_id]
        self._storage.set_trial_user_attr(entry.trial_id, "outcome", str(outcome))
        self._storage.set_trial_user_attr(entry.trial_id, "message", message)
        for step, height in zip(curve.steps, curve.values, strict=True):
            if math.isfinite(height):
                self._storage.set_trial_intermediate_value(entry.trial_id, step, height)
        with quiet_optuna():
            if value is not None:
                self._study.tell(entry.number, value)
            else:
                stopped = outcome is Outcome.STOPPED and len(curve) > 0
                self._study.tell(entry.number, state=TrialState.PRUNED if stopped else TrialState.FAIL)
        return self._keep(replace(entry, outcome=outcome, message=message))

    def _keep(self, entry: Entry) -> Entry:
        """Remember what the database has been told, also in a file that outlives a damaged database."""
        self._entries[entry.run.id] = entry
        if not self._draft:
            write_decision(self._folder, entry, order=list(self._entries).index(entry.run.id))
        return entry

    def _read(self) -> Iterator[Entry]:
        for trial in self._study.get_trials(deepcopy=False):
            if "run_id" in trial.user_attrs:
                yield self._entry(trial)

    def _entry(self, trial: Any) -> Entry:
        said = trial.user_attrs
        outcome = said.get("outcome")
        return Entry(
            run=Run(
                said["run_id"],
                said["config_id"],
                said[_RUN]["params"],
                said["seed"],
                said[_RUN]["until"],
                SEARCH if said["run_id"] in self.earlier else said["phase"],
            ),
            folder=self._folder / said["folder"],
            **said[_PROCESS],
            outcome=Outcome(outcome) if outcome and trial.state.is_finished() else None,
            message=said.get("message", ""),
            number=trial.number,
            trial_id=trial._trial_id,
        )


class _Unsynced(sqlite3.Connection):
    """Does not wait until the disk has what it was given."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.execute("PRAGMA synchronous = OFF")


def database_of(folder: Path) -> Path:
    """The study's database.

    Raises:
        ConfigError: the folder holds no study.
    """
    path = folder / DATABASE
    if not path.is_file():
        raise ConfigError(f"{folder} holds no study (no {DATABASE}).")
    return path


def refuse_network(folder: Path) -> None:
    """SQLite relies on locks that network file systems do not keep.

    Raises:
        EnvironmentProblem: names the file system and says what to do.
    """
    place = folder.resolve()
    mounts = [part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)]
    if not mounts:
        return
    nearest = max(mounts, key=lambda part: len(part.mountpoint))
    if nearest.fstype.lower() in _NETWORK:
        raise EnvironmentProblem(
            f"{folder} lies on {nearest.mountpoint}, a network file system ({nearest.fstype}), where the "
            "study's SQLite database can be damaged. Choose a folder on a local disk with --out, and copy the "
            "study afterwards."
        )
