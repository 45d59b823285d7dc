"""The public names are what they say, whatever else was imported before."""

import subprocess
import sys

import pytest

import leverl

LOAD_EVERYTHING = """
import importlib, pkgutil, leverl
for info in pkgutil.walk_packages(leverl.__path__, "leverl."):
    if not info.name.endswith(("__main__", "_math_worker")):
        importlib.import_module(info.name)
"""


@pytest.mark.parametrize("first", ["import leverl", LOAD_EVERYTHING], ids=["at once", "after all modules"])
def test_every_public_name_can_be_called(first: str) -> None:
    code = f"{first}\nprint([name for name in leverl.__all__ if not callable(getattr(leverl, name))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    "first", ["import leverl", "import leverl.tune.view"], ids=["at once", "after the package"]
)
def test_tune_is_the_function_of_the_api(first: str) -> None:
    call = "try:\n    leverl.tune('nostudy')\nexcept ValueError as error:\n    print(error)"
    code = f"{first}\nimport leverl\n{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "neither a packaged study nor a YAML file" in done.stdout


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tuna'"):
        leverl.tuna  # noqa: B018
