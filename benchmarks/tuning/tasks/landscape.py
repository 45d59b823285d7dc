"""Our own landscapes: the 54 cells that `record.py` has trained, on two small tasks.

Searching sees the three search seeds, in an order drawn anew in each repeat. The truth of the best dozen cells by their
search mean, and of the base cell, is the mean of their truth seeds; of the others nothing but the search mean is known,
so that this is their truth. A failed run counts as 0 in a truth. The score of a run has its known standard error over
prompts; curves are whole, without the evaluation before training. The grid is the whole space: its 54 cells were fixed
when they were recorded.

A landscape whose recording has not ended is left out, which `missing` says.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from landscape import grid
from landscape.grid import (
    BASE,
    EVALUATIONS,
    GRID,
    RESPONSES,
    SEARCH_SEEDS,
    TASKS,
    Row,
    best_cells,
    by_cell,
    cell_of,
    cells,
    read_runs,
)

from leverl.tune.space.axis import Axis

from .drawing import generator
from .recorded import Array, RecordedTask, configurations
from .task import Task

NAMES: tuple[str, ...] = tuple(TASKS)

BEST = 12
"""Cells with truth seeds, beside the base."""
TRUTH_SEEDS = 5
AXES = tuple(Axis(name, kind="categorical", values=levels) for name, levels in GRID.items())


class Recorded(NamedTuple):
    """Search runs [cells, seeds] with NaN for no score, their curves [cells, seeds, evaluations], truths [cells]."""

    scores: Array
    errors: Array
    seconds: Array
    curves: Array
    truths: Array


def missing() -> dict[str, str]:
    """Tasks that cannot be drawn here, with the reason."""
    reasons = {name: _what_is_missing(name) for name in NAMES}
    return {name: reason for name, reason in reasons.items() if reason}


def _what_is_missing(name: str) -> str:
    if not all(path.is_file() for path in _files(name)):
        return f"{_files(name)[0].name} is not in benchmarks/tuning/data; record.py {name} writes it"
    runs = read_runs(name)
    search, truth = by_cell(runs, "search"), by_cell(runs, "truth")
    lacking = sum(max(len(SEARCH_SEEDS) - len(search.get(cell, ())), 0) for cell in cells())
    if lacking:
        return f"incomplete: {lacking} of {len(cells()) * len(SEARCH_SEEDS)} search runs are not recorded yet"
    wanted = len({*best_cells(runs, BEST), BASE}) * TRUTH_SEEDS
    lacking = wanted - sum(min(len(scores), TRUTH_SEEDS) for scores in truth.values())
    return f"incomplete: {lacking} of {wanted} truth runs are not recorded yet" if lacking > 0 else ""


def draw(name: str, repeat: int) -> Task:
    """Raises ValueError: the landscape is not there, or incomplete."""
    reason = _what_is_missing(name)
    if reason:
        raise ValueError(f"landscape, {name}: {reason}.")
    found = _recorded(name, grid.DATA)
    order = generator("landscape", name, repeat).permutation(len(SEARCH_SEEDS))
    return RecordedTask(
        name=name,
        family="landscape",
        repeat=repeat,
        axes=AXES,
        base=dict(BASE._asdict()),
        scores=found.scores[:, order],
        truths=found.truths,
        lay_out=lambda _: configurations(AXES),
        errors=found.errors[:, order],
        curves=found.curves[:, order],
        seconds=found.seconds[:, order],
    )


def _files(name: str) -> tuple[Path, Path]:
    return grid.DATA / f"landscape_{name}.parquet", grid.DATA / f"runs_{name}.parquet"


@lru_cache
def _recorded(name: str, folder: Path) -> Recorded:
    """The landscape in `folder`, which is `grid.DATA` and a key of the cache."""
    import pyarrow.parquet as parquet

    runs = read_runs(name)
    shape = (len(cells()), len(SEARCH_SEEDS))
    scores, errors, seconds = (np.full(shape, np.nan) for _ in range(3))
    curves = np.full((*shape, EVALUATIONS), np.nan)
    for run in runs:
        if run["split"] == "search":
            at = _place(run)
            scores[at], errors[at] = _number(run["score"]), _number(run["score_se"])
            seconds[at] = _number(run["cpu_seconds"])
    for row in parquet.read_table(folder / f"landscape_{name}.parquet").to_pylist():
        if row["split"] == "search" and row["step"] > 0:
            evaluation = row["responses"] * EVALUATIONS // RESPONSES - 1
            curves[(*_place(row), evaluation)] = _number(row["score"])
    return Recorded(scores, errors, seconds, curves, _truths(runs))


def _truths(runs: Sequence[Row]) -> Array:
    """Mean of the truth seeds where there are such, else of the search seeds [cells]."""
    search, truth = by_cell(runs, "search"), by_cell(runs, "truth")
    known = [truth.get(cell, search[cell]) for cell in cells()]
    return np.array([np.mean([score or 0.0 for score in scores]) for scores in known])


def _place(row: Row) -> tuple[int, int]:
    """The index of a search run's cell and of its seed."""
    return _PLACES[cell_of(row)], SEARCH_SEEDS.index(row["seed"])


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


_PLACES = {cell: number for number, cell in enumerate(cells())}
