"""What a fresh clone is set up from: constraints, Makefile, the script of CI."""

import os
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[]", name.strip(), maxsplit=1)[0]).lower()


def test_every_requirement_is_pinned_exactly() -> None:
    extras = [name for names in PROJECT["project"]["optional-dependencies"].values() for name in names]
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"], *extras]
    pinned = {plain(pin) for pin in PINS}
    assert {plain(name) for name in wanted} - pinned == {
        "leverl",
        "ax-platform",
    }  # not in `all`, so not in the venv
    assert [pin for pin in PINS if "==" not in pin] == []


def test_torch_is_pinned_and_nothing_asks_for_cuda() -> None:
    assert [pin for pin in PINS if plain(pin) == "torch"] == ["torch==2.13.0"]
    assert [pin for pin in PINS if plain(pin).startswith(("nvidia-cu", "cuda", "triton"))] == []


def test_makefile_has_what_its_help_lists() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = set(re.findall(r"make (\w+)", "\n".join(re.findall(r"^# make .*", text, re.M))))
    targets = set(re.findall(r"^(\w+):(?!=)", text, re.M))
    assert listed == {"demo", "test", "slow", "lint", "types", "venv", "clean"}
    assert listed <= targets


@pytest.mark.parametrize("script", [".ci/run", "examples/demo.sh"])
def test_scripts_stop_at_the_first_error(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert "\nset -euo pipefail\n" in path.read_text(encoding="utf-8")
