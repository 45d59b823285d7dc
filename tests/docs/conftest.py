"""A place for documents to run in, with every training made small."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from leverl.config import loader
from leverl.config.loader import Layer, Loaded

ROOT = Path(__file__).parents[2]

SMALL = {
    "model.embedded.hidden_size": 16,
    "model.embedded.layers": 1,
    "model.embedded.heads": 2,
    "data.train_size": 64,
    "data.eval_size": 8,
    "rollout.max_response_length": 4,
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder that has `examples/`."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pretrained(place: Path) -> Path:
    """A small model in Hugging Face format at `./model`."""
    from leverl.engine.policy.embedded import EmbeddedSpec, build_embedded

    build_embedded(place / "model", EmbeddedSpec(hidden_size=16, layers=1, heads=2, alphabet="ascii"))
    return place / "model"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Switches the small settings on and off: the top layer of every configuration."""
    resolve: Callable[[Sequence[Layer], str], Loaded] = loader.resolve
    state = {"on": True}

    def smaller(layers: Sequence[Layer], source: str) -> Loaded:
        if not state["on"]:
            return resolve(layers, source)
        merged: dict[str, Any] = {path: value for layer in layers for path, value in layer.values.items()}
        steps = int(merged.get("train.steps", 200))
        settings = SMALL | {"train.steps": steps if steps <= 4 else 2 if steps <= 200 else 4}
        return resolve([*layers, Layer("small", settings, inherited=True)], source)

    monkeypatch.setattr(loader, "resolve", smaller)

    def switch(on: bool) -> None:
        state["on"] = on

    return switch
