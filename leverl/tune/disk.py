"""Disk space: checked before a study starts, and given back when a run's checkpoint is of no more use."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from leverl.errors import EnvironmentProblem
from leverl.record.layout import RunFolder
from leverl.tune.model import SEARCH, SELECT, History
from leverl.tune.phases.search import BASE
from leverl.tune.phases.select import candidates, chosen

LEAST_FREE: Final = 1 << 30  # bytes


def check_space(folder: Path, least: int = LEAST_FREE) -> None:
    """Refuse to start a study on a disk that is nearly full.

    Raises:
        EnvironmentProblem: names the place, what is free and what is needed.
    """
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < least:
        raise EnvironmentProblem(
            f"only {free / 2**30:.2f} GiB are free at {place.resolve()}; a study needs "
            f"{least / 2**30:.2f} GiB to begin. Free some space, or choose another disk with --out."
        )


def prune(history: History, top_k: int, winner: str | None = None) -> None:
    """Delete checkpoints of runs that are over and whose configuration is no longer in question.

    Kept: during the search those of the best `top_k`, after selection those of leader and base, and with
    `winner` (the study is over) those of the winner's confirmation, or of its latest phase.
    """
    if winner is not None:
        keep = _latest_runs(history, winner)
    else:
        best = chosen(history) if history.in_phase(SELECT) else None
        settled = best is not None and all(s.outcome is not None for s in history.in_phase(SELECT))
        names = (
            {BASE, best.config_id} if best is not None and settled else {BASE, *candidates(history, top_k)}
        )
        keep = {state.run.id for state in history.runs if state.run.config_id in names}
    for state in history.runs:
        over = state.outcome is not None
        if over and state.run.id not in keep:
            shutil.rmtree(RunFolder(state.folder).checkpoints, ignore_errors=True)


def _latest_runs(history: History, config_id: str) -> set[str]:
    states = [state for state in history.of(config_id) if state.scored]
    phase = states[-1].run.phase if states else SEARCH
    return {state.run.id for state in states if state.run.phase == phase}


def has_checkpoint(folder: Path) -> bool:
    """Whether a run can be resumed: a whole checkpoint lies there (unfinished ones are hidden)."""
    return any(path.is_dir() for path in _visible(RunFolder(folder).checkpoints))


def _visible(folder: Path) -> Iterable[Path]:
    return (path for path in folder.glob("*") if not path.name.startswith("."))
