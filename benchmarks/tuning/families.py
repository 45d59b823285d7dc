"""What the tasks look like that tuners are compared on.

    python benchmarks/tuning/families.py                    # all families
    python benchmarks/tuning/families.py --families hpo_rl synthetic --repeat 3

Prints a table with one row for each task in one repeat, and says which tasks cannot be drawn on this machine and why.

Truths are taken over all configurations, of a space with ranges over 20,000 uniform draws. Noise is measured on the
recorded search seeds (5 at most) of up to 2,000 of these at random: `ICC` is the intraclass correlation of one run,
over configurations without a failed run; `seed SD, best 5 %` that of one run around its mean among the 5 % of those
configurations with the highest truth; `failed` the share of all these runs. `within .01` is the share of configurations
whose truth is at most .01 below the best one; `best of a grid` how far the highest truth in a grid
lies below the best truth, mean over 100 grids: what a grid loses before any noise.
"""

import argparse
import math
from typing import Final

import numpy as np
from tasks.catalogue import FAMILIES, absent, available
from tasks.drawing import generator
from tasks.recorded import Array, configurations
from tasks.task import Task

from leverl.tune.model import Params

GRIDS: Final = 100
DRAWS: Final = 20_000
MEASURED: Final = 2_000
SEEDS: Final = 5
HEADER: Final = (
    "| task | levers | configurations | search seeds | ICC | seed SD, best 5 % | failed | base truth | best truth "
    "| within .01 | best of a grid |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def row(task: Task) -> str:
    """The task's row of the table."""
    space, finite = points(task)
    truths = np.array([task.truth(params) for params in space])
    scores, known = measure(task, space, truths)
    whole = ~np.isnan(scores).any(axis=1)
    high = whole & (known >= np.quantile(known[whole], 0.95))
    cells = (
        f"{task.family}, {task.name}",
        str(len(task.axes)),
        f"{len(space):,}" if finite else "ranges",
        str(task.search_seeds) if task.search_seeds < 1000 else "any",
        f"{icc(scores[whole]):.3f}",
        f"{math.sqrt(scores[high].var(axis=1, ddof=1).mean()):.4f}",
        f"{np.isnan(scores).mean():.1%}",
        f"{task.truth(task.base):.3f}",
        f"{task.best:.3f}",
        f"{(truths >= task.best - 0.01).mean():.2%}",
        f"{missed_by_grids(task):.3f}",
    )
    return f"| {' | '.join(cells)} |"


def missed_by_grids(task: Task) -> float:
    """How far the best configuration of a grid lies below the best of all, mean over GRIDS grids."""
    random = generator("grids", task.name)
    highest = [max(task.truth(params) for params in task.grid(random)) for _ in range(GRIDS)]
    return task.best - sum(highest) / GRIDS


def points(task: Task) -> tuple[list[Params], bool]:
    """All configurations, and True; or uniform draws, and False."""
    if all(axis.finite for axis in task.axes):
        return configurations(task.axes), True
    random = generator("points", task.name)
    drawn = random.random((DRAWS, len(task.axes)))
    return [
        {axis.name: axis.at(float(unit)) for axis, unit in zip(task.axes, units, strict=True)}
        for units in drawn
    ], False


def measure(task: Task, space: list[Params], truths: Array) -> tuple[Array, Array]:
    """Scores [configurations, seeds] of some of the space, NaN for failed runs, and their truths."""
    chosen = generator("measured", task.name).permutation(len(space))[:MEASURED]
    seeds = range(min(SEEDS, task.search_seeds))
    scores = [[task.run(space[place], seed).score for seed in seeds] for place in chosen]
    return np.array(scores, dtype=np.float64), truths[chosen]


def icc(scores: Array) -> float:
    """One-way random-effects intraclass correlation of one run, from scores [configurations, seeds]."""
    within: float = scores.var(axis=1, ddof=1).mean()
    between: float = scores.mean(axis=1).var(ddof=1) - within / scores.shape[1]
    return between / (between + within)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--repeat", type=int, default=0)
    arguments = parser.parse_args()
    print(HEADER)
    for family, names in available().items():
        if family in arguments.families:
            for name in names:
                print(row(FAMILIES[family].draw(name, arguments.repeat)), flush=True)
    for name, reason in absent().items():
        print(f"\n{name} is left out: {reason}.")


if __name__ == "__main__":
    main()
