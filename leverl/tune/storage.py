"""The study's database: Optuna's, one trial per run, so that its dashboard and plots open it.

It holds what was decided (configuration, seed, phase, folder) and how each run ended. What happened inside a
run is in the run's folder; the two are joined by the run's id.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psutil

from leverl.errors import ConfigError, EnvironmentProblem
from leverl.record.run_record import Outcome
from leverl.tune.model import Run
from leverl.tune.optuna_log import quiet_optuna
from leverl.tune.space import Space

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
    number: int = -1  # of its Optuna trial
    trial_id: int = field(default=-1, repr=False)


class Store:
    """Reads and writes the database of the study in `folder`.

    Raises:
        EnvironmentProblem: the folder lies on a network file system, where SQLite loses data.
    """

    def __init__(self, folder: Path, name: str, *, maximize: bool) -> None:
        import optuna

        refuse_network(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with quiet_optuna():
            self._storage: Any = optuna.storages.RDBStorage(
                f"sqlite:///{(folder / DATABASE).resolve()}",
                engine_kwargs={"connect_args": {"timeout": 60}},
            )
            self._study = optuna.create_study(
                storage=self._storage,
                study_name=name,
                direction="maximize" if maximize else "minimize",
                load_if_exists=True,
            )
        self._folder = folder
        self._entries = {entry.run.id: entry for entry in self._read()}

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

    def add(self, run: Run, space: Space, token: str) -> Entry:
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
                _PROCESS: {"token": token, "attempts": 1},
                _RUN: {"until": run.until, "params": dict(run.params)},
            },
        )
        self._study.add_trial(trial)
        entry = self._entry(self._study.get_trials(deepcopy=False)[-1])
        self._entries[run.id] = entry
        return entry

    def again(self, run_id: str, token: str, attempts: int) -> Entry:
        """Write down that a run that is not over gets another process."""
        entry = self._entries[run_id]
        self._storage.set_trial_user_attr(entry.trial_id, _PROCESS, {"token": token, "attempts": attempts})
        self._entries[run_id] = replace(entry, token=token, attempts=attempts)
        return self._entries[run_id]

    def finish(self, run_id: str, outcome: Outcome, value: float | None, message: str) -> Entry:
        """Write down how a run ended; `value` is its score, None for a run without one."""
        from optuna.trial import TrialState

        entry = self._entries[run_id]
        self._storage.set_trial_user_attr(entry.trial_id, "outcome", str(outcome))
        self._storage.set_trial_user_attr(entry.trial_id, "message", message)
        with quiet_optuna():
            if value is None:
                self._study.tell(entry.number, state=TrialState.FAIL)
            else:
                self._study.tell(entry.number, value)
        self._entries[run_id] = replace(entry, outcome=outcome, message=message)
        return self._entries[run_id]

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
                said["phase"],
            ),
            folder=self._folder / said["folder"],
            **said[_PROCESS],
            outcome=Outcome(outcome) if outcome and trial.state.is_finished() else None,
            message=said.get("message", ""),
            number=trial.number,
            trial_id=trial._trial_id,
        )


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
