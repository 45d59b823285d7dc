"""How much memory this machine, or the container that we run in, has and has left."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Memory:
    """Bytes of memory."""

    total: int
    available: int


def machine_memory() -> Memory:
    """The memory of the machine; in a container with a limit of its own, that of the container."""
    seen = psutil.virtual_memory()
    found = Memory(seen.total, seen.available)
    for folder, names in _groups():
        limit, used = _number(folder / names.limit), _number(folder / names.used)
        if limit is not None and used is not None and limit < seen.total:
            left = limit - used + _reclaimable(folder / "memory.stat", names.cache)
            found = Memory(min(found.total, limit), max(min(found.available, left), 0))
    return found


@dataclass(frozen=True)
class _Names:
    limit: str
    used: str
    cache: str


_V1: Final = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2: Final = _Names("memory.max", "memory.current", "inactive_file")


def _groups() -> list[tuple[Path, _Names]]:
    """The memory cgroups of this process with all that enclose them (the limit of each of them holds)."""
    try:
        lines = _OWN.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _CGROUPS, _V2
        elif "memory" in controllers.split(","):
            root, names = _CGROUPS / "memory", _V1
        else:
            continue
        inner = root / path.lstrip("/")
        found += [(folder, names) for folder in (inner, *inner.parents) if folder.is_relative_to(root)]
    return found


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no such limit; "max"
        return None


def _reclaimable(path: Path, name: str) -> int:
    """Bytes of file cache that the kernel gives back before it kills."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)
