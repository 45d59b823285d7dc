"""Processes that outlive their executor."""

import os
import subprocess
import sys

from leverl.executors.living_on import LIVING_ON
from leverl.executors.local import LocalExecutor


def test_note_is_taken_of_their_end_when_a_later_executor_closes() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, bufsize=0
    )
    LIVING_ON.add(process)
    assert process in LIVING_ON.living()
    assert process.stdin is not None
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is a zombie still
    assert process.returncode is None
    LocalExecutor().close()
    assert process.returncode == 0
    assert process not in LIVING_ON.living()
