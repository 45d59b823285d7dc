"""Results on disk: one JSON file for a method on a task in one repeat, so that measuring can stop and go on."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from methods.method import Method, Reading
from tasks.task import Task


@dataclass(frozen=True)
class Shard:
    """A method's path in one repeat of a task. `readings` are in order of budgets."""

    family: str
    task: str
    method: str
    repeat: int
    readings: tuple[Mapping[str, Any], ...]
    """Of each: budget, runs, run_lengths, params, truth, regret (best truth - truth), cpu_seconds (so far)."""

    def at(self, budget: int | None) -> Mapping[str, Any] | None:
        """The reading at a budget; None: the last. None where there is none."""
        if budget is None:
            return self.readings[-1]
        return next((found for found in self.readings if found["budget"] == budget), None)


def place_of(work: Path, family: str, task: str, method: str, repeat: int) -> Path:
    parts = [part.replace("/", "_").replace(" ", "_") for part in (family, task, method)]
    return work.joinpath(*parts, f"{repeat:03d}.json")


def write(path: Path, task: Task, method: Method, repeat: int, readings: Sequence[Reading]) -> None:
    """Write the shard whole or not at all."""
    content = {
        "family": task.family,
        "task": task.name,
        "method": method.name,
        "repeat": repeat,
        "versions": {name: _version(name) for name in ("leverl", *method.packages)},
        "best": task.best,
        "readings": [_reading(task, found) for found in readings],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(content, indent=1))
    partial.replace(path)


def read(work: Path) -> list[Shard]:
    """All shards below a folder."""
    return sorted(_read(work), key=lambda shard: (shard.family, shard.task, shard.method, shard.repeat))


def _read(work: Path) -> Iterator[Shard]:
    for path in work.rglob("*.json"):
        found = json.loads(path.read_text())
        yield Shard(
            found["family"], found["task"], found["method"], found["repeat"], tuple(found["readings"])
        )


def _reading(task: Task, found: Reading) -> dict[str, Any]:
    truth = task.truth(found.params)
    return {
        "budget": found.budget,
        "runs": found.runs,
        "run_lengths": found.run_lengths,
        "params": dict(found.params),
        "truth": truth,
        "regret": task.best - truth,
        "cpu_seconds": found.cpu_seconds,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"  # run from its source
