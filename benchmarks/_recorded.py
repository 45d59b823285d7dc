"""Recorded learning curves for `stopping.py`: a table of evaluations becomes runs of configurations."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from leverl.record.series import Series

FOREIGN = "hpo_rl_bench_ppo.parquet"
"""PPO curves of HPO-RL-Bench, which are not ours to hand on."""

MEASURED = {"task", "seed", "split", "step", "responses", "score", "score_se"}
"""Columns of our own tables that are no levers."""

OWN = Path(__file__).parent / "tuning" / "data"
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Recorded:
    """One run at its full length."""

    configuration: str
    seed: int
    curve: Series

    @property
    def until(self) -> int:
        return self.curve.steps[-1]

    def score(self, last_k: int) -> float:
        values = self.curve.values[-last_k:]
        return sum(values) / len(values)


@dataclass(frozen=True)
class Task:
    """All recorded runs of one task."""

    name: str
    runs: tuple[Recorded, ...]

    def by_configuration(self) -> dict[str, tuple[Recorded, ...]]:
        found: dict[str, list[Recorded]] = {}
        for run in self.runs:
            found.setdefault(run.configuration, []).append(run)
        return {name: tuple(runs) for name, runs in found.items()}

    def ranking(self, last_k: int) -> list[str]:
        """Configurations, the best mean score first."""
        means = {
            name: sum(run.score(last_k) for run in runs) / len(runs)
            for name, runs in self.by_configuration().items()
        }
        return sorted(means, key=lambda name: (-means[name], name))


def foreign_data() -> Path | None:
    """HPO-RL-Bench's curves, where `LEVERL_BENCHMARK_DATA` or `../shared/benchmarks` has them."""
    named = os.environ.get("LEVERL_BENCHMARK_DATA")
    folders = [Path(named)] if named else [ROOT.parent / "shared" / "benchmarks"]
    return next((folder / FOREIGN for folder in folders if (folder / FOREIGN).is_file()), None)


def own_data() -> list[Path]:
    """The landscapes that `tuning/record.py` has recorded."""
    return sorted(OWN.glob("landscape_*.parquet")) if OWN.is_dir() else []


def load(path: Path) -> list[Task]:
    """The tasks of HPO-RL-Bench's table, or of one with columns task, seed, step, score and one for each lever.

    A column `configuration` may stand for the levers. Runs that ended before others of their configuration are left
    out: their score at full length is not known.
    """
    rows = parquet.read_table(path).to_pylist()
    return _tasks(map(_row_of_hpo_rl_bench if path.name == FOREIGN else _row_of_ours, rows))


def _row_of_ours(row: dict[str, Any]) -> dict[str, Any]:
    levers = [f"{name}={row[name]}" for name in row if name not in MEASURED | {"configuration"}]
    return {**row, "configuration": row.get("configuration", " ".join(levers))}


def _row_of_hpo_rl_bench(row: dict[str, Any]) -> dict[str, Any]:
    levers = (row["log10_learning_rate"], row["gamma"], row["clip_range"])
    return {
        "task": row["environment"],
        "configuration": " ".join(map(str, levers)),
        "seed": row["seed"],
        "step": row["evaluation"],
        "score": row["mean_return"],
    }


def _tasks(rows: Iterable[dict[str, Any]]) -> list[Task]:
    found: dict[str, dict[tuple[str, int], dict[int, float]]] = {}
    for row in rows:
        if row["score"] is not None:
            runs = found.setdefault(str(row["task"]), {})
            curve = runs.setdefault((str(row["configuration"]), int(row["seed"])), {})
            curve[int(row["step"])] = float(row["score"])
    return [Task(name, _whole(runs)) for name, runs in sorted(found.items())]


def _whole(runs: dict[tuple[str, int], dict[int, float]]) -> tuple[Recorded, ...]:
    lengths: dict[str, int] = {}
    for (configuration, _), curve in runs.items():
        lengths[configuration] = max(max(curve), lengths.get(configuration, 0))
    return tuple(
        Recorded(
            configuration, seed, Series(tuple(sorted(curve)), tuple(curve[step] for step in sorted(curve)))
        )
        for (configuration, seed), curve in sorted(runs.items())
        if max(curve) == lengths[configuration]
    )
