"""Disk space, checked before a study starts, and what lies on the disk to go on from."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from leverl.errors import EnvironmentProblem
from leverl.record.layout import RunFolder

LEAST_FREE: Final = 1 << 30  # bytes
"""To begin or to resume a study."""

LEAST_LEFT: Final = 64 << 20  # bytes
"""To start one more run of a study: it writes its metrics and samples even where it keeps no checkpoint."""


def check_space(folder: Path, least: int = LEAST_FREE) -> None:
    """Refuse to start a study on a disk that is nearly full.

    Raises:
        EnvironmentProblem: names the place, what is free and what is needed.
    """
    place, free = _free(folder)
    if free < least:
        raise EnvironmentProblem(
            f"only {free / 2**30:.2f} GiB are free at {place.resolve()}; a study needs "
            f"{least / 2**30:.2f} GiB to begin. Free some space, or choose another disk with --out."
        )


def check_room(study: Path, least: int = LEAST_LEFT) -> None:
    """Refuse to start one more run of a study whose disk has filled up.

    Raises:
        EnvironmentProblem: says what is free and how the study goes on.
    """
    place, free = _free(study)
    if free < least:
        raise EnvironmentProblem(
            f"only {free / 2**20:.0f} MiB are free at {place.resolve()}, too little for another run. What is finished "
            f"is safe, and runs that are alive go on. Free some space, then go on with: leverl tune --resume {study}"
        )


def _free(folder: Path) -> tuple[Path, int]:
    """The existing folder nearest to `folder`, and the bytes that are free there."""
    place = folder
    while not place.exists():
        place = place.parent
    return place, shutil.disk_usage(place).free


def has_checkpoint(folder: Path) -> bool:
    """Whether a run can be resumed: a whole checkpoint lies there (unfinished ones are hidden)."""
    return any(path.is_dir() for path in _visible(RunFolder(folder).checkpoints))


def _visible(folder: Path) -> Iterable[Path]:
    return (path for path in folder.glob("*") if not path.name.startswith("."))
