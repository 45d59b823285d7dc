"""A study with two runs, as trackers are given it; and a clean environment for each tracker."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from leverl.record.run_record import Outcome
from leverl.record.tracking import Ending, TrackedAxis, TrackedRun, TrackedStudy, Tracker, Verdict


@pytest.fixture(autouse=True, scope="module")
def _no_settings_of_trackers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        _clear(monkeypatch, tmp_path_factory.mktemp("trackers"))
        yield


def _clear(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("MODE", "API_KEY", "PROJECT", "ENTITY", "DIR"):
        monkeypatch.delenv(f"WANDB_{name}", raising=False)
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "wandb-config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "wandb-cache"))


@pytest.fixture
def study(tmp_path: Path) -> TrackedStudy:
    return study_in(tmp_path)


def study_in(place: Path) -> TrackedStudy:
    return TrackedStudy(
        id="lr-kl-7f3a",
        name="lr kl",
        folder=place / "studies" / "lr kl",
        objective="eval/score",
        params={"target": "grpo", "steps": 4},
        axes=(
            TrackedAxis("actor_learning_rate", 1e-4, 1e-1),
            TrackedAxis("kl_coef", 1e-4, 1e-1, (0,)),
            TrackedAxis("kl_estimator", values=("k2", "k3")),
        ),
    )


def run_of(
    study: TrackedStudy, number: int, seed: int, job_type: str = "search", since: int | None = None
) -> TrackedRun:
    name = f"{number:03}-s{seed}"
    return TrackedRun(
        id=f"lr-kl-{name}-abcd",
        name=name,
        folder=study.folder / "trials" / name,
        job_type=job_type,
        seed=seed,
        params={"actor_learning_rate": 0.01 * number, "kl_coef": 0, "kl_estimator": "k2"},
        config={"seed": seed, "actor": {"learning_rate": 0.01 * number}},
        tags={"config": f"c{number:03}", "phase": job_type},
        study=study,
        since=since,
        started="2026-11-30T11:30:00+00:00",
    )


def publish(tracker: Tracker, study: TrackedStudy) -> None:
    """Two runs, of which one fails, and the verdict."""
    tracker.open_study(study)
    first = tracker.open_run(run_of(study, 1, 1000))
    for step in range(5):
        first.log(step, {"eval/score": step / 10, "critic/score/mean": float("nan") if step == 2 else 0.5})
    summary = {"outcome": "finished", "score": 0.3, "seconds": 8.5}
    first.close(Ending(Outcome.FINISHED, summary, "2026-11-30T11:40:00+00:00"))
    second = tracker.open_run(run_of(study, 2, 3000, "confirm"))
    second.log(1, {"eval/score": 0.1})
    second.close(Ending(Outcome.NON_FINITE, {"outcome": "non_finite", "message": "grad_norm became NaN"}))
    tracker.close_study(
        study,
        Verdict(
            "Use c001.", {"actor_learning_rate": 0.01}, {"winner": "c001", "gain": 0.2, "gain_shown": True}
        ),
    )


@pytest.fixture(scope="session")
def tools() -> SimpleNamespace:
    return SimpleNamespace(publish=publish, run_of=run_of, study_in=study_in)
