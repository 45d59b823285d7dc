"""Checkpoints: the policy in Hugging Face format beside what training needs to go on exactly.

    checkpoints/step-000050/
        checkpoint.json      step, counters, sizes of all files; written last: its presence means "complete"
        model/               config, safetensors, tokenizer: any tool that loads HF models loads it
        critic/              PPO only
        trainer.pt           optimizers and data cursor, loadable with weights_only

A checkpoint is written to a hidden folder, fsynced and renamed: a crash leaves the old ones as they were.
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from leverl.engine.runtime.local import Roles
from leverl.errors import CheckpointError
from leverl.record.layout import write_json

_MANIFEST = "checkpoint.json"


@dataclass(frozen=True)
class Counters:
    """What a run has used so far."""

    step: int = 0
    responses: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint on disk."""

    path: Path
    counters: Counters

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def critic(self) -> Path | None:
        folder = self.path / "critic"
        return folder if folder.is_dir() else None

    def trainer_state(self) -> dict[str, Any]:
        """Optimizers and data cursor."""
        state: dict[str, Any] = torch.load(self.path / "trainer.pt", weights_only=True)
        return state


def save(folder: Path, roles: Roles, cursor: dict[str, Any], counters: Counters, keep: int) -> Checkpoint:
    """Write a checkpoint below `folder` and remove all but the `keep` newest ones.

    A whole checkpoint of this step is the one the run went on from: it stays as it is, for replacing it would
    leave a moment without any.
    """
    target = folder / f"step-{counters.step:06d}"
    if target.exists():
        try:
            return load(target)
        except CheckpointError:
            shutil.rmtree(target)
    temporary = folder / f".{target.name}.{os.getpid()}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        _write(temporary, roles, cursor, counters)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_folder(folder)
    _retain(folder, keep)
    return Checkpoint(target, counters)


def latest(folder: Path) -> Checkpoint | None:
    """The newest complete checkpoint below `folder`."""
    for path in sorted(folder.glob("step-*"), reverse=True):
        try:
            return load(path)
        except CheckpointError:
            continue
    return None


def load(path: Path) -> Checkpoint:
    """The checkpoint at `path`, after a look whether all its files are whole.

    Raises:
        CheckpointError: it is not a checkpoint, or a file is missing or was cut.
    """
    try:
        manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
        counters, sizes = Counters(**manifest["counters"]), manifest["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path} is not a complete checkpoint (no readable {_MANIFEST}). "
            "Checkpoints are the folders RUN/checkpoints/step-NNNNNN."
        ) from error
    for name, size in sizes.items():
        file = path / name
        found = file.stat().st_size if file.is_file() else None
        if found != size:
            raise CheckpointError(
                f"{file} should have {size} bytes, found {found}: the checkpoint is damaged."
            )
    return Checkpoint(path, counters)


def _write(folder: Path, roles: Roles, cursor: dict[str, Any], counters: Counters) -> None:
    policy = roles.actor.policy
    policy.model.save_pretrained(folder / "model")
    policy.tokenizer.save_pretrained(folder / "model")
    if roles.critic is not None:
        roles.critic.model.save(folder / "critic")
    state = {
        "actor": roles.actor.state_dict(),
        "critic": roles.critic.state_dict() if roles.critic is not None else None,
        "cursor": cursor,
    }
    torch.save(state, folder / "trainer.pt")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for file in files:
        _sync_file(file)
    sizes = {str(file.relative_to(folder)): file.stat().st_size for file in files}
    write_json(folder / _MANIFEST, {"counters": asdict(counters), "files": sizes})


def _retain(folder: Path, keep: int) -> None:
    complete = [path for path in sorted(folder.glob("step-*")) if (path / _MANIFEST).is_file()]
    for path in [*complete[:-keep], *folder.glob(".step-*.tmp")]:  # the latter of a process that was killed
        shutil.rmtree(path, ignore_errors=True)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
