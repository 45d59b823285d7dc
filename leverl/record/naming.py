"""Names of runs, and what to say when a name is taken."""

import re
import secrets
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from leverl.errors import ConfigError

if TYPE_CHECKING:
    from leverl.config.schema import Config

_LEFT_BY_LAUNCHERS = frozenset({"log.txt", "process.json"})


def run_name(config: "Config", *, when: datetime | None = None, token: str | None = None) -> str:
    """A name such as `grpo-sort-1130-7f3a`: algorithm, task, month and day, four random hex digits.

    A run on files is called after the first of them. No settings in names: `config.yaml` holds them exactly.
    """
    when = when or datetime.now()
    task = config.data.task or (Path(config.data.train_files[0]).stem if config.data.train_files else "data")
    return f"{config.algorithm.name}-{slug(task)}-{when:%m%d}-{token or secrets.token_hex(2)}"


def slug(text: str, longest: int = 32) -> str:
    """`text` as part of a folder's name: lower-case letters, digits, hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest].rstrip("-") or "data"


def check_name(name: str) -> str:
    """`name` unchanged if it can be the name of one folder.

    Raises:
        ConfigError: it is empty, hidden or would lead elsewhere.
    """
    if not name or name.startswith((".", "-")) or any(mark in name for mark in "/\\\0\n"):
        raise ConfigError(f"name = {name!r} must be a plain folder name (no '/', no leading '.' or '-').")
    return name


def free_name(parent: Path, name: str) -> str:
    """`name`, or `name-2`, `name-3` …: the first that is free in `parent`."""
    number, free = 1, name
    while (parent / free).exists():
        number += 1
        free = f"{name}-{number}"
    return free


def occupied(folder: Path) -> bool:
    """Whether `folder` holds anything that a new run would mix with.

    What a launcher leaves there before the run begins (log, process id) does not count.
    """
    return folder.is_dir() and any(entry.name not in _LEFT_BY_LAUNCHERS for entry in folder.iterdir())


def taken(folder: Path, verb: str) -> str:
    """What to tell a user whose `leverl VERB` would write into `folder`, which exists: three choices."""
    return (
        f"{folder} exists already, and nothing in it is overwritten unasked. Choose:\n"
        f"  leverl {verb} --resume {folder}    go on with it\n"
        f"  --name {free_name(folder.parent, folder.name)}    keep it and write beside it\n"
        f"  --clean    delete it and start anew"
    )
