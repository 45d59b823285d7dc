"""A study in trackers: what is published, when, and that trouble with it harms nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leverl.record.layout import RunFolder
from leverl.record.metrics import MetricsWriter
from leverl.record.run_record import Outcome, RunRecord, Score
from leverl.record.secrets import MASK
from leverl.record.tracking import Ending, TrackedRun, TrackedStudy, Verdict
from leverl.tune.model import (
    BASE,
    CONFIRM,
    SEARCH,
    Comparison,
    Cost,
    History,
    LeverAxis,
    Params,
    Prediction,
    Run,
    RunState,
    StudyView,
    Winner,
)
from leverl.tune.running.tracking import LEDGER, TrackedStudyObserver, track_study

AXES = (
    LeverAxis("actor_learning_rate", "log", 1e-4, 1e-1, (), 1e-3),
    LeverAxis("ppo_epochs", "int", 1, 4, (), 1),
)


@dataclass
class Published:
    """One opening of a run."""

    run: TrackedRun
    steps: dict[int, Mapping[str, float]] = field(default_factory=dict)
    ending: Ending | None = None

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self.steps[step] = metrics

    def close(self, ending: Ending) -> None:
        self.ending = ending


class Kept:
    """A tracker that keeps what it is given; `broken` names a run that it cannot take."""

    hint = "look here"

    def __init__(self, place: str = "memory", broken: str = "") -> None:
        self.place = place
        self.broken = broken
        self.studies: list[TrackedStudy] = []
        self.published: list[Published] = []
        self.closed: list[Verdict | None] = []

    def open_study(self, study: TrackedStudy) -> None:
        self.studies.append(study)

    def open_run(self, run: TrackedRun) -> Published:
        if run.name == self.broken:
            raise ConnectionError("no route to host")
        found = Published(run)
        self.published.append(found)
        return found

    def close_study(self, study: TrackedStudy, verdict: Verdict | None) -> None:
        self.closed.append(verdict)

    @property
    def names(self) -> list[str]:
        return [found.run.name for found in self.published]


def observer(view: Any, *trackers: Kept) -> TrackedStudyObserver:
    names = {f"kept{number}": tracker for number, tracker in enumerate(trackers)}
    return TrackedStudyObserver(view, names, "leverl")


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunState]:
    """A run with its folder: `make_run("c001", 1000, Outcome.FINISHED, until=4)`."""

    def build(
        config_id: str,
        seed: int,
        outcome: Outcome | None = Outcome.FINISHED,
        *,
        until: int = 4,
        phase: str = SEARCH,
        params: Params | None = None,
        token: str = "",
    ) -> RunState:
        name = f"{config_id[1:]}-s{seed}"
        paths = RunFolder(tmp_path / "s" / "trials" / name)
        paths.path.mkdir(parents=True, exist_ok=True)
        paths.config.write_text(f"seed: {seed}\nreward: {{api_key: quite-secret}}\n", encoding="utf-8")
        paths.metrics.unlink(missing_ok=True)
        with MetricsWriter(paths.metrics) as writer:
            for step in range(until + 1):
                writer.write(step, {"eval/score": step / 10, "ratio/histogram": [1, 2]})
        record = RunRecord(
            name, seed, 4, "grpo", outcome, step=until, token=token or name, started="2026-11-30T11:30:00"
        )
        record.with_(ended="2026-11-30T11:40:00").save(paths.record)
        return RunState(
            Run(
                name,
                config_id,
                params if params is not None else {"actor_learning_rate": 0.01},
                seed,
                4,
                phase,
            ),
            paths.path,
            outcome,
            Score(0.4, 0.02, 3) if outcome is Outcome.FINISHED else None,
            kl=0.03,
            cost=Cost(until, 100 * until, 1000, 8.5),
            message="" if outcome is Outcome.FINISHED else f"{outcome}: of key hf_abcdefghijklmnopqrstuvwx",
        )

    return build


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., StudyView]:
    def build(*runs: RunState, winner: Winner | None = None) -> StudyView:
        (tmp_path / "s").mkdir(exist_ok=True)
        return StudyView(
            name="s",
            folder=tmp_path / "s",
            target="grpo",
            base_settings={"steps": 4, "task": "sort", "actor_learning_rate": 1e-3},
            strategy="bayes",
            sampler="x",
            objective="eval/score",
            axes=AXES,
            history=History(runs),
            planned={},
            steps=4,
            phase="search",
            budget_seconds=None,
            seconds=12.0,
            winner=winner,
        )

    return build


Make = Callable[..., Any]


def test_runs_are_published_when_they_are_over_and_once(
    make_run: Make, study: Make, tools: ModuleType
) -> None:
    kept, view = Kept(), tools.Recorder()
    watched = observer(view, kept)
    base, running = make_run("c000", 1000, params={}), make_run("c001", 1000, None)
    watched.refreshed(study(running))
    watched.refreshed(study(base, running))
    watched.refreshed(study(base, running))
    over = make_run("c001", 1000, Outcome.OUT_OF_MEMORY)
    watched.ended(study(base, over))
    assert kept.names == ["000-s1000", "001-s1000"]
    assert len(view.views) == 3
    assert view.last is not None
    assert watched.hints == ("kept0: look here",)


def test_what_is_published_of_a_run(make_run: Make, study: Make, tools: ModuleType) -> None:
    kept = Kept()
    watched = observer(tools.Recorder(), kept)
    watched.ended(study(make_run("c001", 3000, phase=CONFIRM), make_run("c002", 1000, Outcome.NON_FINITE)))
    first, second = kept.published
    run, ending = first.run, first.ending
    assert (run.job_type, run.seed, run.tags) == (CONFIRM, 3000, {"config": "c001", "phase": CONFIRM})
    assert run.params == {"actor_learning_rate": 0.01}
    assert run.config == {"seed": 3000, "reward": {"api_key": MASK}}
    assert run.started == "2026-11-30T11:30:00"
    assert first.steps == {step: {"eval/score": step / 10} for step in range(5)}
    assert ending is not None
    assert ending.ended == "2026-11-30T11:40:00"
    assert ending.summary["score"] == 0.4
    assert (ending.summary["final_kl"], ending.summary["tokens"]) == (0.03, 1000)
    assert second.ending is not None
    assert second.ending.outcome is Outcome.NON_FINITE
    assert "score" not in second.ending.summary
    assert second.ending.summary["message"] == f"non_finite: of key {MASK}"


def test_all_runs_share_what_the_study_is(make_run: Make, study: Make, tools: ModuleType) -> None:
    kept = Kept()
    observer(tools.Recorder(), kept).ended(study(make_run("c000", 1000, params={}), make_run("c001", 1000)))
    (shared,) = kept.studies
    assert shared.params == {
        "study": "s",
        "target": "grpo",
        "strategy": "bayes",
        "objective": "eval/score",
        "steps": 4,
        "task": "sort",
    }
    assert [(axis.name, axis.low, axis.high) for axis in shared.axes] == [
        ("actor_learning_rate", 1e-4, 1e-1),
        ("ppo_epochs", 1, 4),
    ]
    base, other = (found.run for found in kept.published)
    assert base.params == {"actor_learning_rate": 1e-3, "ppo_epochs": 1}
    assert other.table == {**shared.params, "actor_learning_rate": 0.01, "seed": 1000}


def test_a_second_sitting_publishes_only_what_is_new(make_run: Make, study: Make, tools: ModuleType) -> None:
    first, second = Kept(), Kept()
    one, two = make_run("c000", 1000), make_run("c001", 1000)
    observer(tools.Recorder(), first).ended(study(one))
    observer(tools.Recorder(), second).ended(study(one, two))
    assert (first.names, second.names) == (["000-s1000"], ["001-s1000"])
    assert first.studies[0].id == second.studies[0].id
    elsewhere = Kept(place="another server")
    observer(tools.Recorder(), elsewhere).ended(study(one, two))
    assert elsewhere.names == ["000-s1000", "001-s1000"]


def test_a_run_that_was_stopped_and_goes_on_is_the_same_run(
    make_run: Make, study: Make, tools: ModuleType
) -> None:
    kept = Kept()
    watched = observer(tools.Recorder(), kept)
    stopped = replace(make_run("c001", 1000, Outcome.STOPPED, until=2), prediction=Prediction(0.3, 0.05))
    watched.refreshed(study(stopped))
    ledger = study().folder / LEDGER
    tools.wait_until(lambda: ledger.is_file() and "001-s1000" in ledger.read_text(encoding="utf-8"))
    watched.refreshed(study(make_run("c001", 1000, None, until=3)))
    watched.ended(study(make_run("c001", 1000)))
    first, second = kept.published
    assert first.run.id == second.run.id
    assert first.ending is not None
    assert first.ending.summary["predicted_score"] == 0.3
    assert (sorted(first.steps), sorted(second.steps)) == ([0, 1, 2], [3, 4])
    assert (first.run.since, second.run.since) == (None, 2)


def test_of_a_stopped_run_nothing_is_published_that_came_later(
    make_run: Make, study: Make, tools: ModuleType
) -> None:
    kept = Kept()
    stopped = make_run("c001", 1000, Outcome.STOPPED, until=2)
    make_run("c001", 1000, None, until=4)  # it goes on already when the tracker gets to it
    observer(tools.Recorder(), kept).ended(study(stopped))
    (found,) = kept.published
    assert sorted(found.steps) == [0, 1, 2]


def test_another_attempt_is_another_run(make_run: Make, study: Make, tools: ModuleType) -> None:
    kept = Kept()
    observer(tools.Recorder(), kept).ended(study(make_run("c001", 1000, Outcome.CRASHED, token="one")))
    observer(tools.Recorder(), kept).ended(study(make_run("c001", 1000, token="two")))
    first, second = kept.published
    assert first.run.id != second.run.id
    assert second.run.since is None


def test_studies_of_one_name_are_told_apart(
    tmp_path: Path, make_run: Make, study: Make, tools: ModuleType
) -> None:
    kept = Kept()
    observer(tools.Recorder(), kept).ended(study(make_run("c000", 1000)))
    (tmp_path / "s" / LEDGER).unlink()  # what --clean does
    observer(tools.Recorder(), kept).ended(study(make_run("c000", 1000, token="again")))
    one, two = kept.studies
    assert (one.name, two.name) == ("s", "s")
    assert one.id != two.id


def test_a_broken_ledger_does_no_harm(tmp_path: Path, make_run: Make, study: Make, tools: ModuleType) -> None:
    kept, view = Kept(), study(make_run("c000", 1000))
    for text in ("", "[]", '{"key": 1'):
        (tmp_path / "s" / LEDGER).write_text(text, encoding="utf-8")
        observer(tools.Recorder(), kept).ended(view)
    assert kept.names == ["000-s1000"] * 3


def test_trouble_is_an_event_and_the_next_sitting_adds_the_rest(
    make_run: Make, study: Make, tools: ModuleType
) -> None:
    broken, healthy, view = Kept(broken="001-s1000"), Kept("other"), tools.Recorder()
    watched = observer(view, broken, healthy)
    runs = [make_run(f"c00{number}", 1000) for number in range(3)]
    watched.ended(study(*runs))
    assert broken.names == ["000-s1000", "002-s1000"]
    assert len(healthy.names) == 3
    assert view.last is not None
    folder = study().folder
    assert watched.hints == (
        "tracking with kept0 failed (ConnectionError: no route to host); nothing else is affected",
        f"kept0 has not got everything; this adds the rest: leverl tune --resume {folder} --track kept0",
        "kept1: look here",
    )
    mended = Kept()
    observer(tools.Recorder(), mended).ended(study(*runs))
    assert mended.names == ["001-s1000"]


def test_trouble_is_told_while_the_study_goes_on(make_run: Make, study: Make, tools: ModuleType) -> None:
    view = tools.Recorder()
    watched = observer(view, Kept(broken="000-s1000"))
    running = study(make_run("c000", 1000))

    def told() -> bool:
        watched.refreshed(running)
        return bool(view.events)

    tools.wait_until(told)
    assert view.events == [
        "! tracking with kept0 failed (ConnectionError: no route to host); nothing else is affected"
    ]


def test_the_verdict_comes_last(tmp_path: Path, make_run: Make, study: Make, tools: ModuleType) -> None:
    kept = Kept()
    comparison = Comparison((3000, 3001), (0.7, 0.8), (0.5, 0.6), 0.2, (0.1, 0.3), True, "c001")
    winner = Winner("s", "c001", {"ppo_epochs": 2}, comparison, "Use c001.", tmp_path / "b", tmp_path / "r")
    observer(tools.Recorder(), kept).ended(study(make_run("c000", 1000), winner=winner))
    (verdict,) = kept.closed
    assert verdict is not None
    assert (verdict.text, verdict.params) == ("Use c001.", {"ppo_epochs": 2})
    assert verdict.summary == {
        "winner": "c001",
        "runs": 1,
        "seconds": 12.0,
        "compared": "c001",
        "gain": 0.2,
        "gain_shown": True,
        "gain_low": 0.1,
        "gain_high": 0.3,
    }


def test_an_interrupted_study_has_no_verdict(make_run: Make, study: Make, tools: ModuleType) -> None:
    kept = Kept()
    observer(tools.Recorder(), kept).ended(study(make_run("c000", 1000)))
    assert kept.closed == [None]


def test_without_trackers_nothing_is_written(make_run: Make, study: Make, tools: ModuleType) -> None:
    view = tools.Recorder()
    watched = track_study(view, ())
    watched.refreshed(study(make_run("c000", 1000)))
    watched.event("hello")
    watched.ended(study())
    assert (len(view.views), view.events, watched.hints) == (1, ["hello"], ())
    assert not (study().folder / LEDGER).exists()


def test_a_real_study_is_published_whole(tmp_path: Path, tools: ModuleType) -> None:
    kept = Kept()
    watched = observer(tools.Recorder(), kept)
    small = tools.study(race={"finalists": 1}, budget={"trials": 7})
    winner = tools.tune(tmp_path, small, {"oom_above": 0.05}, observer=watched)
    database = {path.name for path in (tmp_path / "s" / "trials").iterdir() if path.is_dir()}
    assert set(kept.names) == {name for name in database if not name.startswith(".")}
    assert len(kept.names) == len(set(kept.names))
    assert all(found.steps for found in kept.published)
    assert {found.run.job_type for found in kept.published} >= {SEARCH, CONFIRM}
    assert BASE in {found.run.tags["config"] for found in kept.published}
    (verdict,) = kept.closed
    assert verdict is not None
    assert verdict.text == winner.verdict
