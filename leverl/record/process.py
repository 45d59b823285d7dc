"""How the process of a run is started and how it ended: what backends say and executors carry out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

TOKEN_VARIABLE: Final = "LEVERL_RUN_TOKEN"
"""Environment variable by which a run's process is found again; the run writes it into `run.json`."""


@dataclass(frozen=True)
class Command:
    """A process to start: arguments and environment, never a shell string.

    `env` is added to the caller's environment. `preload` names modules that the process will import anyway:
    an executor may start it from a server that holds them already.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    preload: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exit:
    """How a process ended. Both `code` and `signal` are None for an adopted one: only its parent is told."""

    code: int | None = None
    signal: int | None = None
    peak_memory: int | None = None  # largest resident size in bytes that was seen
