"""Weights & Biases: a study is a group, its phases are job types. Offline unless the environment asks otherwise.

Offline runs lie in `wandb/` in the folder of the run or study, until `wandb sync` uploads them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from leverl.plugins import WANDB
from leverl.record.run_record import Outcome
from leverl.record.tracking import Ending, TrackedRun, TrackedStudy, Tracker, Value, Verdict

_LONGEST: Final = 128  # of ids, names and groups
_PROJECT: Final = "leverl"


def create() -> Tracker:
    """The tracker.

    Raises:
        EnvironmentProblem: wandb is not installed.
    """
    if _mode() != "online":
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # offline means that nothing is sent
    return WandbTracker(WANDB.require("for --track wandb"))


def _mode() -> str:
    """`WANDB_MODE`; without it online where there is an API key, else offline."""
    return os.environ.get("WANDB_MODE") or ("online" if os.environ.get("WANDB_API_KEY") else "offline")


class WandbTracker:
    """Writes one W&B run for each run, and one for the verdict of a study."""

    def __init__(self, wandb: Any) -> None:
        self._wandb = wandb
        self._mode = _mode()
        self._project = os.environ.get("WANDB_PROJECT") or _PROJECT
        self._folders: dict[Path, None] = {}  # that offline runs were written to
        self._url = ""

    @property
    def place(self) -> str:
        return "/".join([self._mode, os.environ.get("WANDB_ENTITY", ""), self._project])

    @property
    def hint(self) -> str:
        if self._url:
            return self._url
        return (
            "to upload: " + " ".join(["wandb sync", *map(_pattern, self._folders)]) if self._folders else ""
        )

    def open_study(self, study: TrackedStudy) -> None:
        """Nothing: the group comes with its first run."""

    def open_run(self, run: TrackedRun) -> "WandbRun":
        study = run.study
        config = {**run.config, **(run.table if study else {}), "tags": dict(run.tags)}
        return WandbRun(
            self._init(
                id=run.id,
                name=run.name,
                folder=study.folder if study else run.folder,
                group=study.name if study else None,
                job_type=run.job_type,
                config=config,
                machine=study is None,
            )
        )

    def close_study(self, study: TrackedStudy, verdict: Verdict | None) -> None:
        if verdict is None:
            return
        run = self._init(
            id=study.id,
            name=study.name,
            folder=study.folder,
            group=study.name,
            job_type="verdict",
            config={**study.params, **verdict.params},
            machine=False,
            notes=verdict.text,
        )
        run.summary.update({"verdict": verdict.text, **verdict.summary})
        run.finish()

    def _init(
        self,
        *,
        id: str,
        name: str,
        folder: Path,
        group: str | None,
        job_type: str,
        config: Mapping[str, Any],
        machine: bool,
        notes: str | None = None,
    ) -> Any:
        """Begin or go on with a W&B run; `machine`: what this process uses is what the run uses."""
        place = Path(os.environ.get("WANDB_DIR") or folder)
        place.mkdir(parents=True, exist_ok=True)
        run = self._wandb.init(
            id=id,
            name=name[:_LONGEST],
            dir=str(place),
            project=self._project,
            group=group[:_LONGEST] if group else None,
            job_type=job_type,
            config=dict(config),
            notes=notes,
            mode=self._mode,
            resume="allow",
            reinit="create_new",
            settings=self._wandb.Settings(
                console="off",  # the terminal is the view's
                silent=True,
                save_code=False,
                disable_git=True,
                disable_job_creation=True,
                x_disable_meta=True,  # the command line is the tuner's, and may hold secrets
                x_disable_stats=not machine,
            ),
        )
        if self._mode == "offline":
            self._folders[place] = None
        elif run.url:
            self._url = run.url
        return run


class WandbRun:
    """An open W&B run."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self, ending: Ending) -> None:
        summary: dict[str, Value] = dict(ending.summary)
        self._run.summary.update(summary)
        self._run.finish(exit_code=0 if ending.outcome in (Outcome.FINISHED, Outcome.STOPPED) else 1)


def _pattern(folder: Path) -> str:
    """What names all offline runs below `folder` in a shell."""
    import shlex

    return f"{shlex.quote(str(folder))}/wandb/offline-run-*"
