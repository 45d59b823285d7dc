"""The parts of benchmarks/stopping.py, on made-up curves; the recorded ones need not be here."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script as a module; `benchmark._recorded` loads the curves."""
    monkeypatch.syspath_prepend(FOLDER)
    import importlib

    module = importlib.import_module("stopping")
    monkeypatch.setattr(module, "_recorded", importlib.import_module("_recorded"), raising=False)
    yield module
    for name in ("stopping", "_stopping_draws", "_recorded"):
        sys.modules.pop(name, None)


@pytest.fixture
def landscape(tmp_path: Path) -> Path:
    """Twelve configurations, the first ones the best, two seeds, ten evaluations after the first."""
    rows = [
        {"task": "made-up", "rate": 0.1 * c, "epochs": c % 3, "seed": seed, "split": "search", "step": step}
        | {"responses": 8 * step, "score": (1 - c / 12) * step / (step + 20) + 0.01 * seed, "score_se": 0.01}
        for c in range(12)
        for seed in (0, 1)
        for step in range(0, 101, 10)
        if not (c == 11 and seed == 1 and step > 50)  # a run that broke off
    ]
    path = tmp_path / "landscape_made-up.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_a_landscape_is_read_as_whole_runs(benchmark: ModuleType, landscape: Path) -> None:
    (task,) = benchmark._recorded.load(landscape)
    assert task.name == "made-up"
    assert len(task.by_configuration()) == 12
    assert len(task.runs) == 23
    assert task.ranking(3)[0] == "rate=0.0 epochs=0"
    assert task.runs[0].until == 100


def test_draws_and_looks_give_shares(benchmark: ModuleType, landscape: Path) -> None:
    (task,) = benchmark._recorded.load(landscape)
    found = benchmark.simulate(task, 2)
    stopped = benchmark.stopped_at(found["random"], benchmark.EARLY, 0.2, 1.0)
    assert stopped.shape == (2, 4)  # the runs of the two configurations that the study did not have
    assert set(np.unique(stopped)) <= {*benchmark.LOOKS, 1.0}
    never = benchmark.stopped_at(found["random"], benchmark.EARLY, 0.2, 0.0)
    assert (never == 1.0).all()
    moving = benchmark.stopped_at(found["good"], benchmark.MOVING, 0.2, 1.0)
    assert (moving < 1.0).any()


def test_the_report_has_its_tables(benchmark: ModuleType, landscape: Path) -> None:
    (task,) = benchmark._recorded.load(landscape)
    text = benchmark._report(task, {**benchmark.simulate(task, 1), "cpu": 1.0})
    assert "## made-up: 12 configurations, 23 runs, 1 draws" in text
    assert text.count("| best of ten |") == 12
    assert "inside the 95 % interval" in text
    assert "Guards (score alone): 0 of 23 runs stopped" in text


def test_the_share_of_stopped_runs_has_an_interval(benchmark: ModuleType) -> None:
    mean, low, high = benchmark.interval(np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]]))
    assert mean == 0.375
    assert low < mean < high


def test_missing_curves_are_said(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEVERL_BENCHMARK_DATA", str(tmp_path))
    assert benchmark._files() == benchmark.own_data()
    assert "hpo_rl_bench_ppo.parquet is not here" in capsys.readouterr().out
