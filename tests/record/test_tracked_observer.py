"""A run that is mirrored into trackers while it trains."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import leverl
from leverl.errors import ConfigError, EnvironmentProblem
from leverl.record.observer import Silent
from leverl.record.run_record import Outcome, RunRecord, Score
from leverl.record.secrets import MASK
from leverl.record.tracked_observer import TrackedObserver
from leverl.record.tracking import Ending, TrackedRun, TrackedStudy, Verdict, open_trackers, stable_id

RECORD = RunRecord("try1", 7, 4, "grpo", started="2026-11-30T11:30:00+00:00")


class Kept:
    """A tracker, and its one run, that keeps what it is given."""

    place = "memory"
    hint = "look here"

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.run: TrackedRun | None = None
        self.steps: dict[int, Mapping[str, float]] = {}
        self.ending: Ending | None = None

    def open_study(self, study: TrackedStudy) -> None: ...
    def close_study(self, study: TrackedStudy, verdict: Verdict | None) -> None: ...

    def open_run(self, run: TrackedRun) -> "Kept":
        self._fail("open")
        self.run = run
        return self

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._fail("log")
        self.steps[step] = metrics

    def close(self, ending: Ending) -> None:
        self.ending = ending

    def _fail(self, where: str) -> None:
        if self.broken == where:
            raise ConnectionError(f"cannot {where}")


class Watched(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[int] = []
        self.over = False

    def note(self, text: str) -> None:
        self.notes.append(text)

    def stepped(self, step: int, metrics: object, samples: object) -> None:
        self.steps.append(step)

    def ended(self, record: RunRecord) -> None:
        self.over = True


def play(observer: TrackedObserver, record: RunRecord = RECORD) -> None:
    observer.started("try1", {"seed": 7, "reward": {"api_key": "abc"}}, record)
    for step in range(4):
        observer.stepped(step, {"eval/score": step / 4, "ratio/histogram": [1, 2], "steps": 3}, ())
    observer.ended(record.with_(outcome=Outcome.FINISHED, step=4, score=Score(0.5, 0.1, 3)))


def test_trackers_and_view_get_everything(tmp_path: Path) -> None:
    kept, view = Kept(), Watched()
    observer = TrackedObserver(view, {"kept": kept}, tmp_path)
    play(observer)
    assert kept.run is not None
    assert (kept.run.name, kept.run.job_type, kept.run.seed) == ("try1", "train", 7)
    assert kept.run.folder == tmp_path / "try1"
    assert kept.run.config == {"seed": 7, "reward": {"api_key": MASK}}
    assert kept.steps == {step: {"eval/score": step / 4, "steps": 3.0} for step in range(4)}
    assert kept.ending is not None
    assert (kept.ending.outcome, kept.ending.summary["score"]) == (Outcome.FINISHED, 0.5)
    assert (view.steps, view.over, view.notes) == ([0, 1, 2, 3], True, [])
    assert observer.hints == ("kept: look here",)


@pytest.mark.parametrize("broken", ["open", "log"])
def test_a_broken_tracker_is_said_once_and_harms_nothing(tmp_path: Path, broken: str) -> None:
    kept, healthy, view = Kept(broken), Kept(), Watched()
    play(TrackedObserver(view, {"kept": kept, "healthy": healthy}, tmp_path))
    assert view.steps == [0, 1, 2, 3]
    assert view.over
    told = [note for note in view.notes if "failed (ConnectionError" in note]
    assert told == [f"tracking with kept failed (ConnectionError: cannot {broken}); nothing else is affected"]
    assert len(healthy.steps) == 4


def test_a_resumed_run_keeps_its_id_and_says_since_when(tmp_path: Path) -> None:
    runs = []
    for record in (RECORD, RECORD.with_(step=2)):
        kept = Kept()
        play(TrackedObserver(Silent(), {"kept": kept}, tmp_path), record)
        runs.append(kept.run)
    assert [run.since for run in runs if run] == [None, 2]
    assert len({run.id for run in runs if run}) == 1
    assert stable_id("", "try1", RECORD.with_(started="2026-11-30T11:31:00+00:00"), tmp_path) != runs[0].id  # type: ignore[union-attr]


def test_ids_suit_every_tracker(tmp_path: Path) -> None:
    assert stable_id("lr #1/2", "c?", None, tmp_path).startswith("lr-1-2-c--")
    assert len(stable_id("x" * 300, "y", None, tmp_path)) < 128


def test_unknown_trackers_are_refused_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown tracker 'wanbd'. Did you mean 'wandb'\? Known: mlflow, tensorboard, wandb",
    ):
        open_trackers(["wanbd"])


@pytest.mark.parametrize("name", ["mlflow", "tensorboard", "wandb"])
def test_a_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leverl.plugins.find_spec", lambda module: None)
    with pytest.raises(
        EnvironmentProblem, match=rf"for --track {name}. Install it with: pip install 'leverl\[{name}\]'"
    ):
        open_trackers([name])


TINY = {
    "embedded_hidden_size": 16,
    "embedded_layers": 1,
    "embedded_heads": 2,
    "batch_size": 32,
    "steps": 2,
    "max_response_length": 4,
    "model.device": "cpu",
    "data.train_size": 64,
    "data.eval_size": 8,
}


def test_tracking_changes_nothing_that_is_learnt(
    tmp_path: Path, without_times: Callable[[Path], Any]
) -> None:
    kept = Kept()
    plain = leverl.train("grpo", TINY, name="plain", out=tmp_path)
    watched = leverl.train(
        "grpo",
        TINY,
        name="watched",
        out=tmp_path,
        observer=TrackedObserver(Silent(), {"kept": kept}, tmp_path),
    )
    assert without_times(plain.folder) == without_times(watched.folder)
    assert sorted(kept.steps) == [step for step, _ in without_times(watched.folder)]
    assert kept.run is not None
    assert kept.run.folder == watched.folder


@pytest.fixture
def without_times() -> Callable[[Path], Any]:
    from leverl.record.metrics import read_lines

    def read(folder: Path) -> list[tuple[int, dict[str, Any]]]:
        measured = ("timing", "perf/", "memory", "time")
        return [
            (
                step,
                {name: value for name, value in data.items() if not any(word in name for word in measured)},
            )
            for step, data in read_lines(folder / "metrics.jsonl")
        ]

    return read
