"""A tuner in a process of its own, to be killed: tuner.py OUT STUDY_JSON FAKE_JSON, or OUT FOLDER FAKE_JSON."""

import importlib.util
import json
import sys
from pathlib import Path

specification = importlib.util.spec_from_file_location("fake_tools", Path(__file__).with_name("tools.py"))
assert specification is not None
assert specification.loader is not None
tools = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tools)

if __name__ == "__main__":
    out, what, fake = sys.argv[1:4]
    content = json.loads(what) if what.startswith("{") else what
    try:
        winner = tools.tune(Path(out), content, json.loads(fake), resume=isinstance(content, str))
    except KeyboardInterrupt as interruption:
        print(f"interrupted: {interruption}")
        sys.exit(getattr(interruption, "exit_code", 1))
    print(winner.verdict)
