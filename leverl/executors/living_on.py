"""Processes that were started here and outlive their executor."""

import subprocess
from typing import Final


class LivingOn:
    """Owns them until they end: whoever starts a process has to take note of its end, or it stays a zombie."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Take over a process that its executor lets go of."""
        self._processes.append(process)

    def living(self) -> tuple[subprocess.Popen[bytes], ...]:
        """Those that still run; of the others note is taken."""
        self._processes = [process for process in self._processes if process.poll() is None]
        return tuple(self._processes)


LIVING_ON: Final = LivingOn()
"""Of this process. What still runs when Python ends is left alone, and `python -X dev` reports it then."""
