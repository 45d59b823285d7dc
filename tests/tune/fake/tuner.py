"""A tuner in a process of its own, to be killed: tuner.py OUT STUDY_JSON FAKE_JSON, or OUT FOLDER FAKE_JSON.

With `die: n` in FAKE it kills itself at its n-th change to a file or a process: as exact as a moment can be.
"""

import importlib.util
import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

specification = importlib.util.spec_from_file_location("fake_tools", Path(__file__).with_name("tools.py"))
assert specification is not None
assert specification.loader is not None
tools = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tools)

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.kill", "os.killpg", "os.fork",
           "subprocess.Popen", "fcntl.flock")  # fmt: skip


def die_at(number: int) -> None:
    """Have this process end by SIGKILL before its `number`-th change to the outside."""
    seen = itertools.count(1)

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[1], str) and not arguments[1].startswith("r")
        if (writes or event in CHANGES) and next(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


if __name__ == "__main__":
    out, what, fake = sys.argv[1:4]
    content = json.loads(what) if what.startswith("{") else what
    if "die" in json.loads(fake):
        die_at(json.loads(fake)["die"])
    try:
        winner = tools.tune(Path(out), content, json.loads(fake), resume=isinstance(content, str))
    except KeyboardInterrupt as interruption:
        print(f"interrupted: {interruption}")
        sys.exit(getattr(interruption, "exit_code", 1))
    print(winner.verdict)
