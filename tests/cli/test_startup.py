"""`import leverl` and help stay quick because nothing heavy is imported for them (benchmarks/startup.py)."""

import json
import subprocess
import sys

import pytest

from leverl import plugins
from leverl.cli.group import COMMANDS

HEAVY = (
    "torch", "transformers", "safetensors", "datasets", "optuna", "scipy", "pandas", "plotly", "pyarrow",
    "numpy", "omegaconf", "yaml", "rich", "jinja2", "psutil", "leverl.config.schema",
)  # fmt: skip

PROBE = """
import contextlib, io, json, sys
import leverl
from leverl.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as out:
    code = main(sys.argv[1:])
print(json.dumps({"code": code, "modules": sorted(sys.modules), "text": out.getvalue()}))
"""


def probe(*arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("arguments", [[], *([name] for name in plugins.names(COMMANDS))], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    found = probe(*arguments, "--help")
    assert found["code"] == 0
    assert "Usage: leverl" in str(found["text"])
    modules = found["modules"]
    assert isinstance(modules, list)
    assert sorted(set(HEAVY) & set(modules)) == []


def test_import_of_the_package_loads_none_of_its_parts() -> None:
    code = "import sys, leverl; print([name for name in sys.modules if name.startswith('leverl.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
