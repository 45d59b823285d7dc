"""leverl's own engine as a backend: its keys are the levers, its runs are `leverl train` processes."""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from leverl.backends.protocol import Job, Resolved
from leverl.config import combinations, loader
from leverl.config.loader import Layer
from leverl.config.schema import Config
from leverl.record.layout import RunFolder, write_atomically
from leverl.record.process import TOKEN_VARIABLE, Command, Exit
from leverl.record.run_record import Outcome, load_record
from leverl.vocabulary import catalog

PRELOAD: Final = ("leverl.engine.train.run", "leverl.cli.commands.train", "omegaconf")
"""What a training process imports; by name, for the coach never imports the engine."""

_STOPPED_CODES: Final = (128 + signal.SIGINT, 128 + signal.SIGTERM)


class LeverlBackend:
    """A recipe or configuration file plus settings, trained by leverl.

    Raises:
        ConfigError: the base configuration is wrong.
    """

    reader = "leverl"

    def __init__(self, source: str, settings: Mapping[str, Any]) -> None:
        self._loaded = loader.load(source, settings)

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        return {lever.name: (lever.path,) for lever in catalog.LEVERS}

    @property
    def base(self) -> Config:
        return self._loaded.config

    def resolve(self, params: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> Resolved:
        """Base plus levers plus settings; whatever has no effect under the sampled values is dropped.

        A search moves levers together: `clip_range` beside `ppo_epochs = 1`, say, is no mistake of the user.
        """
        asked = loader.canonical(dict(params), "trial")
        layers = [
            *self._loaded.layers,
            Layer("trial", asked),
            Layer("tuner", dict(settings or {})),
        ]
        if params:
            layers = _without_inert(layers, self._loaded.source)
        config = loader.resolve(layers, self._loaded.source).config
        live = {
            name: value
            for name, value in params.items()
            if combinations.inert(config, catalog.by_name(name).path) is None
        }
        return Resolved(config, live)

    def check(self, config: Config) -> list[Any]:  # noqa: ARG002 - the protocol's
        """No findings of its own: what is impossible was refused when the configuration was resolved."""
        return []

    def command(self, config: Config, job: Job) -> Command:
        """`python -m leverl train`, from a configuration file that holds every setting."""
        env = {TOKEN_VARIABLE: job.token, "OMP_NUM_THREADS": str(config.train.threads)}
        train = (sys.executable, "-m", "leverl", "train")
        if job.resume:
            return Command((*train, str(job.folder), "--resume", "--progress", "none"), env, PRELOAD)
        write_atomically(RunFolder(job.launch).config, loader.dump(config, f"Run {job.id} of a study."))
        place = ("--out", str(job.folder.parent), "--name", job.folder.name)
        return Command((*train, str(job.launch), *place, "--progress", "none"), env, PRELOAD)

    def outcome(self, folder: Path, exit: Exit) -> Outcome:
        """What `run.json` says; where the process could not write it, what its exit says."""
        record = load_record(RunFolder(folder).record)
        recorded = record.outcome if record else None
        if recorded is not None and recorded is not Outcome.INTERRUPTED:
            return recorded
        if exit.code is None and exit.signal is None:  # adopted: nobody told us
            return recorded or Outcome.LOST
        if exit.signal == signal.SIGKILL:
            return Outcome.LOST
        if exit.signal in (signal.SIGINT, signal.SIGTERM) or exit.code in _STOPPED_CODES:
            return Outcome.INTERRUPTED
        return Outcome.CRASHED

    def portable(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The recipe below, and every setting that the user or the search put on top of it."""
        layers = [*self._loaded.layers, Layer("trial", loader.canonical(dict(params), "trial"))]
        recipes = [layer.origin.removeprefix("recipe ") for layer in layers if _is_recipe(layer)]
        settings: dict[str, Any] = {"extends": recipes[-1]} if recipes else {}
        for layer in _without_inert(layers, self._loaded.source):
            if not _is_recipe(layer):
                settings |= {catalog.by_path(path).name: value for path, value in layer.values.items()}
        return settings


def create(source: str, settings: Mapping[str, Any]) -> LeverlBackend:
    """The backend for `target: {leverl: SOURCE, set: SETTINGS}`."""
    return LeverlBackend(source, settings)


def _is_recipe(layer: Layer) -> bool:
    return layer.inherited and layer.origin.startswith("recipe ")


def _without_inert(layers: list[Layer], source: str) -> list[Layer]:
    """`layers` without the settings of user and search that have no effect once all are merged."""
    config = loader.resolve([part for layer in layers for part in _tolerated(layer)], source).config
    return [layer if layer.inherited else _live(layer, config) for layer in layers]


def _live(layer: Layer, config: Config) -> Layer:
    values = {p: value for p, value in layer.values.items() if combinations.inert(config, p) is None}
    return Layer(layer.origin, values)


def _tolerated(layer: Layer) -> tuple[Layer, Layer]:
    """`layer` in two: what can be inert is marked as inherited, so that the loader does not refuse it."""
    maybe = {path: value for path, value in layer.values.items() if path in combinations.INERT}
    always = {path: value for path, value in layer.values.items() if path not in combinations.INERT}
    return Layer(layer.origin, always, layer.inherited), Layer(layer.origin, maybe, inherited=True)
