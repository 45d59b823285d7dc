"""How many good runs early stopping would have ended, and what it would have saved, on recorded curves.

    python benchmarks/stopping.py                        # all curves there are
    python benchmarks/stopping.py --tasks Pong-v0 --draws 10
    python benchmarks/stopping.py --json FILE            # keeps results there; what it holds is not run again

Curves: HPO-RL-Bench's PPO runs (hpo_rl_bench_ppo.parquet, found through LEVERL_BENCHMARK_DATA or in
../shared/benchmarks; left out where it is absent) and our own landscapes in benchmarks/tuning/data.

A draw is a study: 4 start-up configurations and 6 more that have ended, all at random with one seed each; then the stop
rules look at other runs as they grow, at every 5 % of their steps. The leader is the best of the ten (early in a
study), or the best configuration of all, its mean known without error (the hardest case for good runs). "Good" runs are
all runs of the 5, or of the 10 %, best configurations; "steps saved" is over random runs. Intervals in brackets are
95 % bootstrap intervals over draws and runs; where no run was stopped they are empty, and the number of distinct
runs says how much that is worth. Coverage has Clopper-Pearson intervals.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from _recorded import FOREIGN, Task, foreign_data, load, own_data
from _stopping_draws import (
    ALONE,
    EARLY,
    LAST_K,
    LATE,
    LOOKS,
    MOVING,
    PEERS,
    RULES,
    STRICT,
    TOP,
    Array,
    simulate,
    state_of,
)
from numpy.typing import NDArray

from leverl.record.series import EMPTY
from leverl.tune.stopping.curve import predict_final
from leverl.tune.stopping.guards import Range, broken

AFTERS = (0.1, 0.2, 0.3)
PROBABILITIES = (0.02, 0.05, 0.1, 1.0)  # 1: without this condition
CHOSEN = (RULES.probability, 1.0)
SHARES = (0.2, 0.3, 0.5)


def stopped_at(
    entries: list[list[dict[str, list[float]]]], leader: str, after: float, probability: float
) -> Array:
    """Share of the steps at which each run would have been stopped [draws, runs]; 1 where it would not."""
    chances = np.array([[entry[leader] for entry in row] for row in entries], dtype=np.float64)
    shares = np.array(LOOKS)
    hit = (np.nan_to_num(chances, nan=2.0) < probability + (probability == 1.0)) & (shares >= after - 1e-9)
    return np.where(hit.any(axis=-1), shares[hit.argmax(axis=-1)], 1.0)


def interval(values: Array, repeats: int = 1000) -> tuple[float, float, float]:
    """Mean over draws and runs [draws, runs] and its 95 % bootstrap interval, both resampled."""
    generator = np.random.default_rng(0)
    rows, columns = (generator.integers(size, size=(repeats, size)) for size in values.shape)
    means = values[rows[:, :, None], columns[:, None, :]].mean(axis=(1, 2))
    low, high = np.quantile(means, (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def predictions_of_stopped(entries: list[list[dict[str, list[float]]]]) -> tuple[Array, Array]:
    """Errors of the predictions of those runs that the rules, as they are by default, would have stopped: [n], and
    the standard errors that came with them.
    """
    missed, claimed = [], []
    for entry in (entry for row in entries for entry in row):
        for share, chance, mean, error in zip(
            LOOKS, entry[EARLY], entry["mean"], entry["error"], strict=True
        ):
            if share >= RULES.after - 1e-9 and chance < RULES.probability:
                missed.append(mean - entry["score"][0])
                claimed.append(error)
                break
    return np.array(missed), np.array(claimed)


def calibration(task: Task, share: float, scale_factor: float = 1.0) -> dict[str, float]:
    """Coverage of the 95 % interval of `predict_final` over all runs, with errors in units of the task's range."""
    values = [value for run in task.runs for value in run.curve.values]
    scale = max(values) - min(values)
    errors, spreads = [], []
    for run in task.runs:
        state = state_of(run, share)
        found = predict_final(state.evaluations, EMPTY, run.until, LAST_K, scale=scale * scale_factor)
        if found is not None:
            errors.append((found.mean - run.score(LAST_K)) / scale)
            spreads.append(found.standard_error / scale)
    misses, widths = np.array(errors), np.array(spreads)
    return {
        "runs": len(misses),
        "covered": int((np.abs(misses) <= 1.96 * widths + 1e-12).sum()),
        "bias": float(misses.mean()),
        "bias_error": float(misses.std(ddof=1) / math.sqrt(len(misses))),
        "rmse": float(np.sqrt((misses**2).mean())),
        "claimed": float(np.sqrt((widths**2).mean())),
    }


def guarded(task: Task) -> dict[str, Any]:
    """Runs that the guards would have stopped, which see only the score here."""
    values = [value for run in task.runs for value in run.curve.values]
    seen = Range(min(values), max(values))
    decile = task.ranking(LAST_K)[: math.ceil(len(task.by_configuration()) / 10)]
    shares, good, recovered = [], 0, 0
    for run in task.runs:
        at = next((s for s in LOOKS if broken(state_of(run, s), seen) is not None), 1.0)
        shares.append(at)
        if at < 1.0:
            good += run.configuration in decile
            peak = max(run.curve.values[: sum(step <= at * run.until for step in run.curve.steps)])
            recovered += run.score(LAST_K) - seen.low > 0.5 * (peak - seen.low)
    stopped = sum(share < 1.0 for share in shares)
    return {
        "stopped": stopped,
        "runs": len(shares),
        "good": good,
        "recovered": recovered,
        "share": float(np.mean(shares)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", help="names of tasks; all by default")
    parser.add_argument("--draws", type=int, default=20, help="studies per task")
    parser.add_argument("--json", type=Path, help="file to keep results in, read first")
    arguments = parser.parse_args()
    tasks = [
        task
        for path in _files()
        for task in load(path)
        if not arguments.tasks or task.name in arguments.tasks
    ]
    results: dict[str, Any] = {}
    if arguments.json and arguments.json.is_file():
        results = json.loads(arguments.json.read_text())
    for task in tasks:
        if len(results.get(task.name, {}).get("good", [])) != arguments.draws:
            began = time.process_time()
            results[task.name] = simulate(task, arguments.draws)
            results[task.name]["cpu"] = time.process_time() - began
            if arguments.json:
                arguments.json.write_text(json.dumps(results))
        print(_report(task, results[task.name]), flush=True)


def _files() -> list[Path]:
    foreign = foreign_data()
    if foreign is None:
        print(f"{FOREIGN} is not here (LEVERL_BENCHMARK_DATA, ../shared/benchmarks): its tasks are left out.")
    return [*([foreign] if foreign else []), *own_data()]


def _report(task: Task, found: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"\n## {task.name}: {len(task.by_configuration())} configurations, {len(task.runs)} runs, "
            f"{len(found['good'])} draws ({found['cpu']:.0f} CPU s)\n",
            *_rule_table(found),
            "",
            *_moving_table(found),
            "",
            *_calibration_table(task),
            "",
            _stopped_line(task, found),
            "",
            _guards_line(task),
        ]
    )


def _rule_table(found: dict[str, Any]) -> list[str]:
    lines = [
        f"| leader | after | P below | top-{TOP} stopped | distinct | top 10 % stopped | distinct | steps saved |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for leader, probabilities in ((EARLY, PROBABILITIES), (LATE, CHOSEN), (STRICT, CHOSEN), (ALONE, CHOSEN)):
        for after in AFTERS:
            lines += [
                f"| {leader} | {after:.0%} | {_name(p)} | {_cells(found, leader, after, p)} |"
                for p in probabilities
            ]
    return lines


def _moving_table(found: dict[str, Any]) -> list[str]:
    lines = [
        f"Control: the median of {PEERS} peers of a converged search instead of the start-up runs.\n",
        f"| after | P below | top-{TOP} stopped | distinct | top 10 % stopped | distinct | steps saved |",
        "|---|---|---|---|---|---|---|",
    ]
    for after in AFTERS:
        lines += [f"| {after:.0%} | {_name(p)} | {_cells(found, MOVING, after, p)} |" for p in CHOSEN]
    return lines


def _name(probability: float) -> str:
    return "no such condition" if probability == 1.0 else f"{probability:g}"


def _cells(found: dict[str, Any], leader: str, after: float, probability: float) -> str:
    good = stopped_at(found["good"], leader, after, probability) < 1.0
    best = good[:, found["best"]]
    saved = 1.0 - stopped_at(found["random"], leader, after, probability)
    cells = [_share(best), _ever(best), _share(good), _ever(good), _percent(*interval(saved))]
    return " | ".join(cells)


def _share(hit: NDArray[np.bool_]) -> str:
    return _percent(*interval(hit.astype(np.float64)))


def _ever(hit: NDArray[np.bool_]) -> str:
    """Distinct runs that were stopped in any draw."""
    return f"{int(hit.any(axis=0).sum())} of {hit.shape[1]}"


def _percent(mean: float, low: float, high: float) -> str:
    return f"{100 * mean:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _calibration_table(task: Task) -> list[str]:
    lines = [
        "`predict_final`, errors in units of the task's range; scale ½: the study has seen half of it.\n",
        "| seen | scale | inside the 95 % interval | bias ± SE | RMSE | claimed |",
        "|---|---|---|---|---|---|",
    ]
    for share in SHARES:
        for factor in (1.0, 0.5):
            c = calibration(task, share, factor)
            covered = _percent(c["covered"] / c["runs"], *_exact(int(c["covered"]), int(c["runs"])))
            lines.append(
                f"| {share:.0%} | {'1' if factor == 1 else '½'} | {covered} | {c['bias']:+.3f} ± {c['bias_error']:.3f} "
                f"| {c['rmse']:.3f} | {c['claimed']:.3f} |"
            )
    return lines


def _stopped_line(task: Task, found: dict[str, Any]) -> str:
    values = [value for run in task.runs for value in run.curve.values]
    missed, claimed = predictions_of_stopped(found["random"])
    if not len(missed):
        return "No random run was stopped."
    width = max(values) - min(values)
    inside = float((np.abs(missed) <= 1.96 * claimed + 1e-12).mean())
    return (
        f"Stopped random runs, all draws (after {RULES.after:.0%}, P below {RULES.probability:g}): {len(missed)}; the "
        f"prediction's 95 % interval holds {inside:.1%}, bias {missed.mean() / width:+.3f}, "
        f"RMSE {math.sqrt((missed**2).mean()) / width:.3f}, claimed {math.sqrt((claimed**2).mean()) / width:.3f}."
    )


def _exact(count: int, total: int) -> tuple[float, float]:
    """Clopper-Pearson interval of a share, 95 %."""
    from scipy.special import betaincinv

    low = float(betaincinv(count, total - count + 1, 0.025)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 0.975)) if count < total else 1.0
    return low, high


def _guards_line(task: Task) -> str:
    g = guarded(task)
    return (
        f"Guards (score alone): {g['stopped']} of {g['runs']} runs stopped, {g['good']} of them of the top 10 %, "
        f"{g['recovered']} that ended above half of their peak; {1 - g['share']:.1%} of all steps saved."
    )


if __name__ == "__main__":
    main()
