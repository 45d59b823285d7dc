"""Where things lie in a run's folder, and how files in it are written without ever being half-written."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run: the only thing that the engine and the coach share."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def record(self) -> Path:
        return self.path / "run.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def samples(self) -> Path:
        return self.path / "samples"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    def exists(self) -> bool:
        """Whether a run was ever started here."""
        return self.record.is_file() or self.config.is_file()

    def samples_of(self, step: int) -> Path:
        return self.samples / f"{step:06d}.jsonl"


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` such that a reader, or a crash, sees either the old or the new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def write_json(path: Path, content: Any) -> None:
    """`content` as indented JSON, atomically."""
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
