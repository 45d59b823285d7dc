"""Ctrl-C and SIGTERM while a study runs: noted, so that the scheduler can stop its runs at a checkpoint."""

import signal
import threading
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self


class StudyInterrupted(KeyboardInterrupt):
    """The study in `folder` was stopped by a signal at checkpoints of its runs, and can be resumed."""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__(
            f"stopped by {signal.Signals(number).name}; go on with: leverl tune --resume {folder}"
        )
        self.folder = folder
        self.number = number

    @property
    def exit_code(self) -> int:
        """130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


class StopSignals:
    """Counts SIGINT and SIGTERM instead of dying of them. Outside the main thread it does nothing."""

    def __init__(self) -> None:
        self.count = 0
        self.number = int(signal.SIGINT)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.count += 1
        self.number = number
