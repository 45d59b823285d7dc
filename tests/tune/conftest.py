"""Loads the shared tools of these tests (test folders are no packages)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_PATH = Path(__file__).parent / "fake" / "tools.py"


def _load() -> ModuleType:
    specification = importlib.util.spec_from_file_location("leverl_fake_tools", _PATH)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["leverl_fake_tools"] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tools() -> ModuleType:
    return sys.modules.get("leverl_fake_tools") or _load()
