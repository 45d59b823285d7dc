"""PPO on two Atari games, from HPO-RL-Bench (Shala et al. 2024): learning rate × discount × clip range, 108 cells.

The table is not part of this repository. It is found through LEVERL_BENCHMARK_DATA, or in ../shared/benchmarks; columns
are environment, log10_learning_rate, gamma, clip_range, seed, evaluation (1 … 100) and mean_return.

The score of a run is the mean of its last ten evaluations, scaled so that the lowest mean over all seeds of a cell is 0
and the highest 1; single runs may lie a little outside. Every repeat draws anew which seeds are searched on and which
tell the truth: 3 and 2 on Enduro, 2 and 1 on Pong. With so few truth seeds the best truth is also the luckiest one;
that adds the same to the regret of all tuners. On Pong one run of 324 scored 1.9 times the best mean; with a single
truth seed it alone would decide, so that it is scaled down to 1.

Every repeat also draws 54 of the 108 cells anew: three of the six learning rates and all discounts, or the other way
round, the base among them. These cells are the space of all tuners, and the grid: it goes through every one of them.
"""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from leverl.tune.model import Params, ParamValue
from leverl.tune.space.axis import Axis

from .drawing import factorial, generator, subset
from .recorded import Array, RecordedTask
from .task import Task

NAMES: tuple[str, ...] = ("enduro", "pong")

FILE = "hpo_rl_bench_ppo.parquet"
ENVIRONMENTS = {"enduro": "Enduro-v0", "pong": "Pong-v0"}
TRUTH_SEEDS = {"enduro": 2, "pong": 1}
MOST = {"enduro": np.inf, "pong": 1.0}
"""Runs with a higher score are scaled down to it."""

LAST = 10
"""Evaluations at the end of a run that make its score."""

RATES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
GAMMAS = (0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
CLIPS = (0.2, 0.3, 0.4)
LEVELS: Mapping[str, Sequence[float]] = {"learning_rate": RATES, "gamma": GAMMAS, "clip_range": CLIPS}
BASE: Params = {"learning_rate": 1e-4, "gamma": 0.99, "clip_range": 0.2}


def missing() -> dict[str, str]:
    """Tasks that cannot be drawn here, with the reason."""
    if find() is not None:
        return {}
    reason = f"{FILE} is neither in the folder that LEVERL_BENCHMARK_DATA names nor in ../shared/benchmarks"
    return dict.fromkeys(NAMES, reason)


def find() -> Path | None:
    """The table, where it is."""
    named = os.environ.get("LEVERL_BENCHMARK_DATA")
    folder = Path(named) if named else Path(__file__).parents[4] / "shared" / "benchmarks"
    return folder / FILE if (folder / FILE).is_file() else None


def draw(name: str, repeat: int) -> Task:
    """Raises FileNotFoundError: the table is not here."""
    path = find()
    if path is None:
        raise FileNotFoundError(missing()[name])
    curves = _curves(path, name)
    random = generator("hpo_rl", name, repeat)
    order = random.permutation(curves.shape[1])
    truth, search = sorted(order[: TRUTH_SEEDS[name]]), sorted(order[TRUTH_SEEDS[name] :])
    levels = sub_grid(random)
    axes = tuple(Axis(lever, kind="categorical", values=tuple(values)) for lever, values in levels.items())
    curves = curves[[place for place, cell in enumerate(factorial(LEVELS, {})) if _inside(cell, levels)]]
    scores: Array = curves[:, :, -LAST:].mean(axis=2)
    return RecordedTask(
        name=name,
        family="hpo_rl",
        repeat=repeat,
        axes=axes,
        base=BASE,
        scores=scores[:, search],
        truths=scores[:, truth].mean(axis=1),
        lay_out=lambda _: factorial(levels, BASE),
        curves=curves[:, search],
    )


def sub_grid(random: np.random.Generator) -> dict[str, list[ParamValue]]:
    """Lever → levels: three of the six learning rates, the base's among them, or three such discounts; else all."""
    halved = "learning_rate" if random.random() < 0.5 else "gamma"
    levels: dict[str, list[ParamValue]] = {lever: list(values) for lever, values in LEVELS.items()}
    others = [value for value in levels[halved] if value != BASE[halved]]
    kept = {BASE[halved], *subset(others, 2, random)}
    levels[halved] = [value for value in levels[halved] if value in kept]
    return levels


def _inside(cell: Params, levels: Mapping[str, Sequence[ParamValue]]) -> bool:
    return all(cell[lever] in values for lever, values in levels.items())


@lru_cache
def _curves(path: Path, name: str) -> Array:
    """Scaled evaluations [cells, seeds, evaluations]."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(path, filters=[("environment", "=", ENVIRONMENTS[name])])
    column = {key: np.asarray(table[key]) for key in table.column_names if key != "environment"}
    rate = column["log10_learning_rate"] + 6
    gamma, clip = np.searchsorted(GAMMAS, column["gamma"]), np.searchsorted(CLIPS, column["clip_range"])
    cell = (rate * len(GAMMAS) + gamma) * len(CLIPS) + clip
    seeds, evaluations = int(column["seed"].max()) + 1, int(column["evaluation"].max())
    curves = np.full((len(RATES) * len(GAMMAS) * len(CLIPS), seeds, evaluations), np.nan)
    curves[cell, column["seed"], column["evaluation"] - 1] = column["mean_return"]
    if np.isnan(curves).any():
        raise ValueError(f"{path}: evaluations of {name} are missing.")
    means = curves[:, :, -LAST:].mean(axis=(1, 2))
    found = (curves - means.min()) / (means.max() - means.min())
    scores = found[:, :, -LAST:].mean(axis=2, keepdims=True)
    capped: Array = found / np.maximum(scores / MOST[name], 1.0)
    return capped
