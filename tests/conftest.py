"""What every test gets: one thread, no network, no traces outside the session's temporary folder."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Read by torch and by Hugging Face when they are first imported, so this comes before any test module.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)  # shared cores: time says nothing about the code
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(autouse=True, scope="session")
def _one_torch_thread() -> None:
    """For policies this small one thread is fastest, and pytest's workers do not fight for cores."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def leverl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where leverl caches what it builds: a temporary folder, never the user's."""
    home = tmp_path_factory.mktemp("leverl-home")
    os.environ["LEVERL_HOME"] = str(home)
    return home


@pytest.fixture(autouse=True)
def _no_process_outlives_its_test() -> Iterator[None]:
    """Runs that a tuner let live on end with the test that started them, and note is taken of their end."""
    yield
    if "leverl.executors.living_on" in sys.modules:
        for process in sys.modules["leverl.executors.living_on"].LIVING_ON.living():
            process.wait(timeout=60)
