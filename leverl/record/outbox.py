"""Work for a tracker, done in a thread of its own: training and tuning neither wait for it nor fail with it."""

import queue
import threading
from collections.abc import Callable
from typing import Final

from leverl.record.secrets import mask_text

GIVE_UP: Final = 3
"""Failures in a row after which a tracker gets no more work."""

_LONGEST: Final = 300  # characters of an error that are shown


class Outbox:
    """Carries out jobs one after the other. The first failure is said once; `GIVE_UP` in a row end it."""

    def __init__(self, name: str, give_up: int = GIVE_UP) -> None:
        self._name = name
        self._give_up = give_up
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._troubles: queue.Queue[str] = queue.Queue()
        self._told = False
        self._in_a_row = 0
        self.failed = 0
        """Jobs that failed."""
        self._thread = threading.Thread(target=self._work, name=f"leverl-{name}", daemon=True)
        self._thread.start()

    @property
    def off(self) -> bool:
        """Whether the tracker was given up."""
        return self._in_a_row >= self._give_up

    def put(self, job: Callable[[], None]) -> None:
        """Have `job` done; returns at once."""
        if not self.off:
            self._jobs.put(job)

    def troubles(self) -> list[str]:
        """What went wrong since the last call, in words."""
        found = []
        while not self._troubles.empty():
            found.append(self._troubles.get())
        return found

    def close(self, seconds: float) -> bool:
        """Wait up to `seconds` until everything is done; False when it was not."""
        self._jobs.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self.off:
                self._try(job)

    def _try(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - of foreign packages, which raise whatever they like
            self.failed += 1
            self._in_a_row += 1
            self._say(error)
        else:
            self._in_a_row = 0

    def _say(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            words = " ".join(mask_text(f"{type(error).__name__}: {error}").split())[:_LONGEST]
            self._troubles.put(f"tracking with {self._name} failed ({words}); nothing else is affected")
        if self.off:
            self._troubles.put(
                f"tracking with {self._name} is off: it failed {self._in_a_row} times in a row"
            )
