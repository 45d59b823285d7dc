"""How soon the embedded policy learns the procedural tasks, over seeds: the measurements behind the slow tests.

    python benchmarks/learning.py                     # all cases, 5 seeds, two processes side by side
    python benchmarks/learning.py --cases echo-grpo --seeds 8
    python benchmarks/learning.py --json FILE         # keeps results there; what it holds is not run again

Prints for each case the held-out accuracy at the end and the first evaluation at or above the threshold, as
mean ± standard error, smallest and largest over seeds. Learning is deterministic for a seed on one kind of CPU;
wall time is not measured here.
"""

import argparse
import json
import math
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from leverl.tune.study_file import load_study

ECHO = {"task": "echo", "max_response_length": 3, "steps": 100, "eval_every": 5}
COPY = {"task": "copy", "length": 3, "max_response_length": 6, "steps": 200, "eval_every": 10}
SORT = {"task": "sort", "length": 3, "max_response_length": 6, "steps": 150, "eval_every": 25}
DEMO = load_study("demo").target  # the packaged study's base
RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)

CASES: dict[str, dict[str, Any]] = {
    **{f"echo-{recipe}": {"recipe": recipe, **ECHO} for recipe in ("grpo", "rloo", "ppo")},
    **{f"copy-{recipe}": {"recipe": recipe, **COPY} for recipe in ("grpo", "rloo", "ppo")},
    **{f"sort-lr-{rate:g}": {"recipe": "grpo", **SORT, "actor_learning_rate": rate} for rate in RATES},
    **{
        f"demo-lr-{rate:g}": {"recipe": DEMO.leverl, **DEMO.set, "actor_learning_rate": rate}
        for rate in RATES
    },
}
THRESHOLD = 0.95


def measure(case: str, seed: int) -> dict[str, Any]:
    """One run: `{"final": accuracy, "steps": first step at the threshold or null}`."""
    import leverl
    from leverl.record.readers.leverl import read

    settings = dict(CASES[case])
    recipe = settings.pop("recipe")
    with tempfile.TemporaryDirectory() as folder:
        result = leverl.train(recipe, {**settings, "seed": seed, "save_every": 0}, name=case, out=folder)
        series = read(result.folder).get("eval/score")
    reached = [step for step, value in zip(series.steps, series.values, strict=True) if value >= THRESHOLD]
    return {
        "final": series.last,
        "steps": reached[0] if reached else None,
        "outcome": str(result.outcome),
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    """A Markdown table of the results."""
    lines = [
        "| case | seeds | final accuracy | smallest | steps to 0.95 | largest | not reached |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        runs = list(results.get(case, {}).values())
        if not runs:
            continue
        finals = [run["final"] for run in runs if run["final"] is not None]
        steps = [run["steps"] for run in runs if run["steps"] is not None]
        lines.append(
            f"| {case} | {len(runs)} | {_spread(finals)} | {min(finals, default=math.nan):.3f} | {_spread(steps)} "
            f"| {max(steps, default='–')} | {len(runs) - len(steps)} |"
        )
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    n = len(values)
    if n == 0:
        return "–"
    mean = sum(values) / n
    if n == 1:
        return f"{mean:.3g} (1 seed)"
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return f"{mean:.3g} ± {error:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=5, help="runs of each case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file to keep results in, read first")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    results: dict[str, dict[str, Any]] = {}
    if arguments.json and arguments.json.is_file():
        results = json.loads(arguments.json.read_text())
    todo = [
        (case, seed)
        for seed in range(arguments.seeds)
        for case in arguments.cases
        if str(seed) not in results.get(case, {})
    ]
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(measure, case, seed): (case, seed) for case, seed in todo}
        for done, future in enumerate(as_completed(futures), 1):
            case, seed = futures[future]
            results.setdefault(case, {})[str(seed)] = future.result()
            print(f"[{done}/{len(todo)}] {case} seed {seed}: {results[case][str(seed)]}", flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
