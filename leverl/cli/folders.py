"""Folders that a user names: whose run is it, and may it be overwritten?"""

import sys
from pathlib import Path

import typer

from leverl.errors import ConfigError
from leverl.record.layout import RunFolder
from leverl.record.naming import occupied, taken


def run_of(path: Path) -> Path | None:
    """The run folder that `path` is, or whose checkpoint it is."""
    for folder in (path, path.absolute().parent.parent):
        if RunFolder(folder).config.is_file():
            return folder
    return None


def settle(folder: Path, verb: str, *, clean: bool, yes: bool) -> None:
    """Return if `leverl VERB` may write a new run or study to `folder`.

    Raises:
        ConfigError: something is there, and the user has not chosen to delete it.
    """
    if not occupied(folder):
        return
    if not clean:
        raise ConfigError(taken(folder, verb))
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            f"--clean would delete {folder}, and there is no terminal to ask on. Add --yes if it may."
        )
    if not typer.confirm(f"Delete {folder} and everything in it?", err=True):
        raise ConfigError(f"{folder} was kept. Choose another --name, or --resume it.")
