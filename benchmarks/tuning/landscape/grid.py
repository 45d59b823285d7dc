"""Our own tuning landscapes: which grid, on which tasks, with which seeds, and what was recorded of it."""

import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

DATA: Final = Path(__file__).parents[1] / "data"

RESPONSES: Final = 6144  # of every run, whatever its batch size
EVALUATIONS: Final = 12  # beside the one before training
SEARCH_SEEDS: Final = (1000, 1001, 1002)
FIRST_TRUTH_SEED: Final = 9000

GRID: Final[dict[str, tuple[float, ...]]] = {
    "actor_learning_rate": (5e-4, 1.5e-3, 5e-3),
    "kl_coef": (0.0, 0.1, 1.0),
    "ppo_epochs": (1, 2, 3),
    "batch_size": (64, 256),
}
LEVERS: Final = tuple(GRID)
SHARED: Final[dict[str, Any]] = {
    "length": 3,
    "max_response_length": 4,
    "embedded_layers": 1,
    "mini_batch_size": 64,
    "kl_in": "loss",
    "reference": "always",  # so that the divergence is known at kl_coef = 0 too
    "eval_size": 256,
    "save_every": 0,
    "log_samples": 0,
}
TASKS: Final[dict[str, dict[str, Any]]] = {
    "sort": {**SHARED, "task": "sort", "reward": "dense", "embedded_warm_start_steps": 40},
    "copy": {**SHARED, "task": "copy", "reward": "exact", "embedded_warm_start_steps": 60},
}
"""What all cells of a task share, on top of the recipe `grpo`. A short warm start stands in for a pretrained model:
the reference is worth staying near, and there is something to lose."""


class Cell(NamedTuple):
    """One value of each lever."""

    actor_learning_rate: float
    kl_coef: float
    ppo_epochs: int
    batch_size: int

    def settings(self, task: str) -> dict[str, Any]:
        """The settings of a run of this cell, seed apart."""
        steps = RESPONSES // self.batch_size
        return {**TASKS[task], **self._asdict(), "steps": steps, "eval_every": steps // EVALUATIONS}


BASE: Final = Cell(actor_learning_rate=5e-4, kl_coef=0.1, ppo_epochs=1, batch_size=256)
Row = dict[str, Any]


def cells() -> list[Cell]:
    """The whole grid."""
    return [
        Cell(rate, kl, int(epochs), int(batch))
        for rate, kl, epochs, batch in itertools.product(*GRID.values())
    ]


def best_cells(runs: Sequence[Row], count: int) -> list[Cell]:
    """The cells with the highest mean over their search seeds; a cell with a failed run counts as the worst."""
    scores = {cell: found for cell, found in by_cell(runs, "search").items() if None not in found}
    means = {cell: statistics.mean(s for s in found if s is not None) for cell, found in scores.items()}
    return sorted(means, key=lambda cell: means[cell], reverse=True)[:count]


def by_cell(runs: Sequence[Row], split: str) -> dict[Cell, list[float | None]]:
    """Scores of each cell in the order of seeds; None for a failed run."""
    found: dict[Cell, list[float | None]] = {}
    for run in sorted(runs, key=lambda run: int(run["seed"])):
        if run["split"] == split:
            found.setdefault(cell_of(run), []).append(run["score"])
    return found


def cell_of(run: Row) -> Cell:
    return Cell(
        float(run["actor_learning_rate"]),
        float(run["kl_coef"]),
        int(run["ppo_epochs"]),
        int(run["batch_size"]),
    )


def read_runs(task: str) -> list[Row]:
    """The runs in `data/`."""
    import pyarrow.parquet as pq

    rows: list[Row] = pq.read_table(DATA / f"runs_{task}.parquet").to_pylist()
    return rows
