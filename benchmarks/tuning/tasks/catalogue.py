"""The families of tasks that tuners are compared on, and which of them can be drawn on this machine."""

from collections.abc import Mapping
from typing import Protocol

from . import hpo_rl, landscape, simple_hpo, synthetic
from .task import Task


class Family(Protocol):
    """A module with tasks of one kind."""

    NAMES: tuple[str, ...]

    def draw(self, name: str, repeat: int) -> Task:
        """The same task for the same arguments; the repeat decides splits, shifts and resampled runs."""

    def missing(self) -> dict[str, str]:
        """Tasks that cannot be drawn on this machine, with the reason, such as data that are not there."""


FAMILIES: Mapping[str, Family] = {
    "landscape": landscape,
    "hpo_rl": hpo_rl,
    "simple_hpo": simple_hpo,
    "synthetic": synthetic,
}


def available() -> dict[str, tuple[str, ...]]:
    """The tasks of each family that can be drawn here; families without any are left out."""
    found = {}
    for name, family in FAMILIES.items():
        missing = family.missing()
        found[name] = tuple(task for task in family.NAMES if task not in missing)
    return {name: tasks for name, tasks in found.items() if tasks}


def absent() -> dict[str, str]:
    """'family/task' of those that cannot, with the reason."""
    return {
        f"{name}/{task}": reason
        for name, family in FAMILIES.items()
        for task, reason in family.missing().items()
    }
