"""What the tuner asks of a trainer: resolve a configuration, start a run of it, say how the run ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from leverl.config.schema import Config
from leverl.record.process import Command, Exit
from leverl.record.run_record import Outcome


@dataclass(frozen=True)
class Resolved:
    """A checked configuration, and those of the levers asked for that have an effect in it."""

    config: Config
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """One process of a run: where it writes, where its configuration is, and whether it goes on."""

    id: str
    folder: Path  # the run's folder; its name is `id`
    launch: Path  # folder for the files that the process is started from
    token: str
    resume: bool = False


class Backend(Protocol):
    """A trainer with a base configuration that a study starts from."""

    reader: str  # name in leverl.record.readers

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """Lever → the keys of this framework that have to be written together."""

    @property
    def base(self) -> Config:
        """The configuration that the study starts from."""

    def resolve(self, params: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> Resolved:
        """Base plus `params` (lever → value) plus the tuner's own `settings` (path → value).

        Raises:
            ConfigError: the combination is impossible.
        """

    def check(self, config: Config) -> list[Any]:
        """Findings on a configuration."""

    def command(self, config: Config, job: Job) -> Command:
        """Write what the process needs into `job.launch`, and say how to start it."""

    def outcome(self, folder: Path, exit: Exit) -> Outcome:
        """How the run in `folder`, whose process has ended, ended."""

    def portable(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings by which a user trains base plus `params` without the study."""
