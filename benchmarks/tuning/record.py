"""Record the tuning landscapes: every cell of a grid of four levers on a small task, over seeds, with full curves.

    python benchmarks/tuning/record.py sort --work FOLDER            # records; stop it and start it again freely
    python benchmarks/tuning/record.py sort --work FOLDER --merge    # what is recorded so far → data/*.parquet
    python benchmarks/tuning/record.py sort --summary                # what the Parquet files hold

The grid is 3 × 3 × 3 × 2 = 54 cells (learning rate × KL coefficient × PPO epochs × batch size) at equal responses.
Each cell is run on the search seeds. The best cells by their search mean, and the base cell, are then run on
truth seeds, which no search may see. FOLDER keeps one JSON file for each run.

The Parquet files hold one table of evaluations (`landscape_TASK`) and one of runs (`runs_TASK`); the metadata of
both holds the exact settings and the versions. A failed run has its outcome and no score. `seconds` is wall time and
means little where the machine was shared; `cpu_seconds` is disturbed less.
"""

import argparse
import json
import os
import platform
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from landscape.grid import (
    BASE,
    DATA,
    EVALUATIONS,
    FIRST_TRUTH_SEED,
    GRID,
    RESPONSES,
    SEARCH_SEEDS,
    TASKS,
    Cell,
    Row,
    best_cells,
    cell_of,
    cells,
)
from landscape.summary import summary

_KEY_COLUMNS: Final = {
    "task": "string",
    "actor_learning_rate": "float64",
    "kl_coef": "float64",
    "ppo_epochs": "int8",
    "batch_size": "int16",
    "seed": "int16",
    "split": "string",
}
CURVE_COLUMNS: Final = {
    **_KEY_COLUMNS,
    "step": "int16",
    "responses": "int32",
    "score": "float32",
    "score_se": "float32",
}
RUN_COLUMNS: Final = {
    **_KEY_COLUMNS,
    "outcome": "string",
    "message": "string",
    "score": "float32",
    "score_se": "float32",
    "seconds": "float32",
    "cpu_seconds": "float32",
    "steps": "int16",
    "responses": "int32",
    "tokens": "int32",
    "kl_divergence": "float32",
    "response_length": "float32",
}


def record(task: str, work: Path, truth_cells: int, truth_seeds: int) -> None:
    """All runs that `work` does not hold yet: first the search seeds of all cells, then the truth seeds."""
    for seed in SEARCH_SEEDS:
        for cell in cells():
            _run_once(task, cell, seed, "search", work)
    best = best_cells(run_rows(task, work), truth_cells)
    for seed in range(FIRST_TRUTH_SEED, FIRST_TRUTH_SEED + truth_seeds):
        for cell in [*best, *([] if BASE in best else [BASE])]:
            _run_once(task, cell, seed, "truth", work)


def _run_once(task: str, cell: Cell, seed: int, split: str, work: Path) -> None:
    shard = work / f"{task}_{split}_{seed}_{'_'.join(f'{value:g}' for value in cell)}.json"
    if shard.is_file():
        return
    content = {"task": task, **cell._asdict(), "seed": seed, "split": split, **measure(task, cell, seed)}
    partial = shard.with_suffix(".partial")
    partial.write_text(json.dumps(content))
    partial.replace(shard)
    shown = "–" if content["score"] is None else f"{content['score']:.3f}"
    print(
        f"{task} {split} {seed} {tuple(cell)}: {content['outcome']} {shown} "
        f"in {content['cpu_seconds']:.1f} CPU s, {content['seconds']:.1f} s",
        flush=True,
    )


def measure(task: str, cell: Cell, seed: int) -> Row:
    """Train once in this process and read everything from the run's folder, which is deleted."""
    from leverl.api import load_config
    from leverl.engine.train import run  # before the clock starts, for a fair first run
    from leverl.record.readers.leverl import read
    from leverl.record.run_record import Outcome
    from leverl.record.series import mean_of_last

    loaded = load_config("grpo", {**cell.settings(task), "seed": seed, "threads": 1})
    began = _cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        result = run.start(loaded, Path(folder) / "run")
        if result.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt  # says nothing about the cell: to be run again
        cpu_seconds = _cpu_seconds() - began
        series = read(result.folder)
    evaluations, errors = series.get("eval/score"), series.get("eval/score_se")
    by_step = dict(zip(errors.steps, errors.values, strict=True))
    return {
        "outcome": str(result.outcome),
        "message": result.record.message,
        "score": result.score.mean if result.score else None,
        "score_se": result.score.standard_error if result.score else None,
        "seconds": result.record.seconds,
        "cpu_seconds": cpu_seconds,
        "steps": result.record.step,
        "responses": result.record.step * cell.batch_size,
        "tokens": series.get("train/tokens").last,
        "kl_divergence": mean_of_last(series.get("kl_divergence")),
        "response_length": mean_of_last(series.get("response_length/mean")),
        "curve": [
            {"step": step, "responses": step * cell.batch_size, "score": value, "score_se": by_step.get(step)}
            for step, value in zip(evaluations.steps, evaluations.values, strict=True)
        ],
    }


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run_rows(task: str, work: Path) -> list[Row]:
    """The runs recorded in `work`, in a fixed order."""
    rows = [json.loads(path.read_text()) for path in work.glob(f"{task}_*.json")]
    return sorted(rows, key=lambda run: (run["split"], *cell_of(run), run["seed"]))


def merge(task: str, work: Path, machine: str) -> None:
    """Write `landscape_TASK.parquet` and `runs_TASK.parquet`; `machine` says what the times were taken on."""
    runs = run_rows(task, work)
    if not runs:
        raise SystemExit(f"{work} holds no run of '{task}'. Record some first.")
    curves = [{**run, **point} for run in runs for point in run["curve"]]
    metadata = {"leverl_landscape": json.dumps(_metadata(task, machine))}
    DATA.mkdir(exist_ok=True)
    _write(DATA / f"landscape_{task}.parquet", curves, CURVE_COLUMNS, metadata)
    _write(DATA / f"runs_{task}.parquet", runs, RUN_COLUMNS, metadata)


def _write(path: Path, rows: Sequence[Row], columns: dict[str, str], metadata: dict[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])
    table = pa.Table.from_pylist([{name: row[name] for name in columns} for row in rows], schema=schema)
    table = table.replace_schema_metadata(metadata)
    pq.write_table(table, path, compression="zstd", compression_level=19)
    print(f"{path}: {table.num_rows} rows, {path.stat().st_size / 1024:.0f} kB")


def _metadata(task: str, machine: str) -> Row:
    import torch

    import leverl
    from leverl.api import load_config

    return {
        "leverl": leverl.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": machine,
        "seconds": "wall time of training; cpu_seconds: user and system time of the whole run",
        "score": "mean of the last 3 held-out evaluations; its standard error is that of the evaluation's prompts",
        "kl_divergence, response_length": "mean over the last tenth of the steps",
        "recipe": "grpo",
        "base_cell": BASE._asdict(),
        "shared_settings": TASKS[task],
        "grid": GRID,
        "responses": RESPONSES,
        "evaluations": EVALUATIONS,
        "base_config": load_config("grpo", BASE.settings(task)).config.model_dump(mode="json"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--work", type=Path, help="folder of recorded runs, outside the repository")
    parser.add_argument("--truth-cells", type=int, default=12, help="best cells that get truth seeds")
    parser.add_argument("--truth-seeds", type=int, default=5)
    parser.add_argument("--merge", action="store_true", help="write the Parquet files, record nothing")
    parser.add_argument(
        "--machine",
        default=f"{platform.machine()}, {os.cpu_count()} CPUs",
        help="what the times were taken on, for the files' metadata",
    )
    parser.add_argument("--summary", action="store_true", help="print what the Parquet files hold")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if arguments.summary:
        print(summary(arguments.task))
        return
    if arguments.work is None:
        parser.error("--work FOLDER is needed")
    arguments.work.mkdir(parents=True, exist_ok=True)
    if not arguments.merge:
        try:
            record(arguments.task, arguments.work, arguments.truth_cells, arguments.truth_seeds)
        except KeyboardInterrupt:
            raise SystemExit("stopped; the same command goes on") from None
    merge(arguments.task, arguments.work, arguments.machine)


if __name__ == "__main__":
    main()
