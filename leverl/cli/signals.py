"""Ctrl-C and SIGTERM outside the training loop, which has its own way to stop at a checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interruption:
    """Which signal came, if one did."""

    number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


@contextmanager
def terminable() -> Iterator[Interruption]:
    """Inside, SIGTERM raises KeyboardInterrupt as Ctrl-C does, so that one clean-up serves both."""
    seen = Interruption()

    def interrupt(number: int, _: FrameType | None) -> None:
        seen.number = number
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield seen
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)
