"""How good the configuration is that a tuner recommends after so many runs: leverl, its peers and grids.

    python benchmarks/tuning/regret.py --work FOLDER                      # everything; stop and go on freely
    python benchmarks/tuning/regret.py --work FOLDER --families synthetic --methods leverl --budget-cpu-minutes 10
    python benchmarks/tuning/regret.py --work FOLDER --table              # what FOLDER holds, as tables
    python benchmarks/tuning/regret.py --work FOLDER --figures docs/figures

FOLDER gets one JSON file for each method, task and repeat; what is there is not run again. A repeat is a task with its
split of seeds, its sub-grid and its methods' seeds drawn anew, the same for all methods: differences are paired. Two
versions of leverl are compared by PYTHONPATH and a folder for each.

Regret is the best truth minus the truth of the recommended configuration, in units of the task's scores (0 … 1).
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from methods.catalogue import METHODS
from methods.method import Method
from results import shards
from results.figures import draw_all
from results.summary import report
from tasks.catalogue import FAMILIES, absent, available
from tasks.task import Task

import leverl

REPEATS = 12


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _arguments(arguments)
    if asked.table or asked.figures:
        found = shards.read(asked.work)
        if not found:
            sys.exit(f"{asked.work} holds no results yet: run without --table and --figures first.")
        if asked.table:
            print(report(found))
        if asked.figures:
            for path in draw_all(found, asked.figures):
                print(path)
        return
    measure(asked)


def measure(asked: argparse.Namespace) -> None:
    """Run what is missing, repeat by repeat, so that what there is can be compared at any time."""
    print(f"leverl of {Path(leverl.__file__).parent}", flush=True)
    one_thread()
    for name, reason in absent().items():
        print(f"{name} is left out: {reason}.")
    names = _tasks(asked.families, asked.tasks)
    began = time.process_time()
    for repeat in range(asked.repeats):
        for task, method, path in _missing(asked.work, names, [METHODS[n] for n in asked.methods], repeat):
            if time.process_time() - began > 60 * asked.budget_cpu_minutes:
                print(f"{asked.budget_cpu_minutes:g} CPU minutes are used up; the same command goes on.")
                return
            run_one(task, method, path, repeat)


def run_one(task: Task, method: Method, path: Path, repeat: int) -> None:
    """One shard."""
    began = time.process_time()
    readings = method.path(task, repeat)
    shards.write(path, task, method, repeat, readings)
    last = readings[-1]
    print(
        f"{task.family}/{task.name} {repeat} {method.name}: regret {task.best - task.truth(last.params):.4f} "
        f"after {last.runs} runs ({time.process_time() - began:.1f} CPU s)",
        flush=True,
    )


def one_thread() -> None:
    """Torch has a number of threads of its own, which CPU seconds would count."""
    import torch

    torch.set_num_threads(1)


def _missing(
    work: Path, names: Sequence[tuple[str, str]], methods: Sequence[Method], repeat: int
) -> Iterator[tuple[Task, Method, Path]]:
    for family, name in names:
        paths = [(method, shards.place_of(work, family, name, method.name, repeat)) for method in methods]
        due = [(method, path) for method, path in paths if not path.is_file()]
        if not due:
            continue
        task = FAMILIES[family].draw(name, repeat)
        has_curves = bool(task.run(task.base, 0).curve)
        for method, path in due:
            another_came_first = path.is_file()
            if (has_curves or not method.curves) and not another_came_first:
                yield task, method, path


def _tasks(families: Sequence[str] | None, tasks: Sequence[str] | None) -> list[tuple[str, str]]:
    """(family, task) of all that are asked for and here."""
    return [
        (family, name)
        for family, names in available().items()
        if not families or family in families
        for name in names
        if not tasks or name in tasks
    ]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER", help="one file per result")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--families", nargs="+", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="names of tasks; all by default")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD",
        help=f"of {', '.join(METHODS)}",
    )  # fmt: skip
    parser.add_argument("--budget-cpu-minutes", type=float, default=float("inf"), metavar="N")
    parser.add_argument("--table", action="store_true", help="print tables of what is there")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="write figures of what is there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
