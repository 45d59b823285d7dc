"""What tests of the tuner share: a backend that starts the fake trainer, and a study to tune."""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from leverl.backends.leverl import LeverlBackend
from leverl.backends.protocol import Job
from leverl.config.schema import Config
from leverl.record.process import Command
from leverl.record.run_record import Outcome, Score
from leverl.tune.model import SEARCH, Cost, History, Run, RunState, StudyView, Winner
from leverl.tune.run_study import run_study

TRAINER = Path(__file__).with_name("trainer.py")
TUNER = Path(__file__).with_name("tuner.py")
PRELOAD = ("leverl.record.metrics", "leverl.record.run_record", "yaml")

STUDY: dict[str, Any] = {
    "name": "s",
    "target": {"leverl": "grpo", "set": {"steps": 4, "actor_learning_rate": 1e-3, "ppo_epochs": 1}},
    "strategy": "random",
    "space": {
        "actor_learning_rate": {"min": 1e-4, "max": 1e-1, "log": True},
        "ppo_epochs": {"min": 1, "max": 4},
    },
    "seeds": {"search": 1, "duplicates": 0, "race": 1, "confirm": 2},
    "race": {"finalists": 2},
    "stopping": {"guards": False, "curves": False},
    "budget": {"trials": 10},
    "parallel": 2,
}


class FakeBackend(LeverlBackend):
    """Real configurations, fake training."""

    def __init__(self, source: str, settings: Mapping[str, Any], fake: Mapping[str, Any]) -> None:
        super().__init__(source, settings)
        self._fake = dict(fake)

    def command(self, config: Config, job: Job) -> Command:
        real = super().command(config, job)
        more = ("--resume",) if job.resume else ()
        argv = (sys.executable, str(TRAINER), str(job.launch), str(job.folder), *more)
        return Command(argv, {**real.env, "FAKE": json.dumps(self._fake)}, PRELOAD)


class Recorder:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.views: list[StudyView] = []
        self.last: StudyView | None = None

    def refreshed(self, view: StudyView) -> None:
        self.views.append(view)

    def event(self, text: str) -> None:
        self.events.append(text)

    def ended(self, view: StudyView) -> None:
        self.last = view


def study(**changes: Any) -> dict[str, Any]:
    return {**STUDY, **changes}


def tune(out: Path, content: Any, fake: Mapping[str, Any] | None = None, **more: Any) -> Winner:
    """Run a study with the fake trainer; `content` is a study, or the folder of one to resume."""
    target = STUDY["target"] if not isinstance(content, Mapping) else content["target"]
    backend = FakeBackend(target["leverl"], target["set"], fake or {})
    return run_study(
        content if isinstance(content, Mapping) else str(content),
        out=out,
        backend=backend,
        poll_seconds=0.02,
        refresh_seconds=0.0,
        least_free=0,
        **more,
    )


def state(
    config_id: str,
    params: Mapping[str, Any],
    score: float | None = None,
    *,
    seed: int = 1000,
    phase: str = SEARCH,
    outcome: Outcome | None = Outcome.FINISHED,
    kl: float | None = None,
    seconds: float = 1.0,
    responses: int = 100,
) -> RunState:
    """A run of a made-up history."""
    run = Run(f"{config_id[1:]}-s{seed}", config_id, params, seed, 4, phase)
    return RunState(
        run,
        Path("trials") / run.id,
        outcome,
        None if score is None else Score(score, 0.01, 3),
        kl=kl,
        cost=Cost(4, responses, 1000, seconds),
    )


def history(*states: RunState, maximize: bool = True) -> History:
    return History(states, maximize)


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """Poll `condition` until it holds; fail after a deadline."""
    never, deadline = threading.Event(), monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, "the condition did not come true in time"
        never.wait(0.01)


def open_gate(path: Path) -> None:
    """Let every run through that blocks on the FIFO; from now on it is a plain file and blocks nobody."""
    import os

    empty = path.with_suffix(".open")
    empty.touch()
    held = os.open(path, os.O_RDWR)
    empty.rename(path)
    os.close(held)
