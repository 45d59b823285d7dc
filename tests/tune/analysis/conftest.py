"""Loads the made-up histories of these tests (test folders are no packages)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def made() -> ModuleType:
    name = "leverl_made_up_histories"
    if name not in sys.modules:
        found = importlib.util.spec_from_file_location(name, Path(__file__).parent / "made_up.py")
        assert found is not None
        assert found.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(found)
        found.loader.exec_module(sys.modules[name])
    return sys.modules[name]
