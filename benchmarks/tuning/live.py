"""Studies for real, at equal wall time: `leverl tune` with several strategies on one of our short tasks.

    python benchmarks/tuning/live.py --work FOLDER --minutes 10 [--task sort] [--parallel 2] [--repeats 3]
    python benchmarks/tuning/live.py --work FOLDER --minutes 10 --table    # of what FOLDER holds so far

Every study has the same base, budget of wall time, early stopping, race and proof; only who suggests differs. The
levers are those of `landscape/grid.py`: the grid has their 54 cells, which it goes through in order as far as its time
goes, the others the ranges that these span. A repeat is one seed for all strategies, and strategies take turns, so
that the machine's other work falls on all alike.

Each study recommends a configuration by search and race. What it recommends is then trained on truth seeds that no
study has seen, the same for all; a failed run counts as 0. FOLDER keeps a folder for each study and a JSON file for
each truth run: stop it and start it again freely, for a study that was interrupted goes on where it was.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from landscape.grid import BASE, FIRST_TRUTH_SEED, GRID, LEVERS, TASKS, Cell
from record import measure

from leverl.tune.model import BASE as BASE_ID
from leverl.tune.model import CONFIRM, RACE, SEARCH, Params, StudyView

STRATEGIES: Final = ("bayes", "optuna:gp", "grid")
RANGES: Final[dict[str, Any]] = {
    "actor_learning_rate": {"min": 5e-4, "max": 5e-3, "log": True},
    "kl_coef": {"min": 0.1, "max": 1.0, "log": True, "or": 0},
    "ppo_epochs": {"min": 1, "max": 3},
    "batch_size": {"min": 64, "max": 256, "pow2": True},
}
"""What the levels of GRID span."""


@dataclass(frozen=True)
class Plan:
    """What all studies share. Another plan needs another folder."""

    task: str
    minutes: float
    parallel: int
    truth_seeds: int

    @property
    def seeds(self) -> range:
        return range(FIRST_TRUTH_SEED, FIRST_TRUTH_SEED + self.truth_seeds)


@dataclass(frozen=True)
class Found:
    """One study that is over."""

    strategy: str
    repeat: int
    cell: Cell  # the configuration that search and race recommend
    verdict: str  # of the proof: "gain", "no gain", "base leads": nothing to prove, "cut short": no time
    runs: int
    stopped: int  # of these, by their curves
    configurations: int
    steps: float  # all that was trained, in runs of full length
    raced: int
    seconds: float


def run_studies(plan: Plan, work: Path, strategies: Sequence[str], repeats: int) -> None:
    """Everything that `work` does not hold yet."""
    _check_same(plan, work)
    for repeat in range(repeats):
        for strategy in strategies:
            _run_study(plan, work, strategy, repeat)
    for cell in dict.fromkeys([BASE, *(found.cell for found in studies(work))]):
        for seed in plan.seeds:
            _run_truth(plan, work, cell, seed)


def _check_same(plan: Plan, work: Path) -> None:
    """Studies of different length or task are not comparable."""
    path, content = (
        work / "plan.json",
        {"task": plan.task, "minutes": plan.minutes, "parallel": plan.parallel},
    )
    if path.is_file() and (known := json.loads(path.read_text())) != content:
        raise SystemExit(f"{work} holds studies of {known}, not of {content}: choose another --work.")
    path.write_text(json.dumps(content))


def _run_study(plan: Plan, work: Path, strategy: str, repeat: int) -> None:
    folder = _folder(work, strategy, repeat)
    if (folder / "winner.json").is_file():
        return
    if (folder / "study.yaml").is_file():
        arguments = [str(folder), "--resume"]
    else:
        file = work / f"{folder.name}.yaml"
        file.write_text(json.dumps(study_file(plan, strategy, repeat)))  # JSON is YAML
        arguments = [str(file), "--out", str(work), "--name", folder.name]
    print(f"{folder.name}: {plan.minutes:g} minutes", flush=True)
    command = [sys.executable, "-m", "leverl", "tune", *arguments, "--parallel", str(plan.parallel), "--yes"]
    path = work / f"{folder.name}.log"
    with path.open("a") as log:
        process = subprocess.Popen([*command, "--progress", "plain"], stdout=log, stderr=log)
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.wait()  # it has had the signal too, and stops its runs at a checkpoint
            raise
    if code:
        raise SystemExit(f"{folder.name} ended with {code}: see {path}. The same command goes on.")


def study_file(plan: Plan, strategy: str, repeat: int) -> dict[str, Any]:
    """The study as `study.yaml` says it."""
    space = {name: list(levels) for name, levels in GRID.items()} if strategy == "grid" else RANGES
    return {
        "target": {"leverl": "grpo", "set": {**BASE.settings(plan.task), "threads": 1}},
        "strategy": strategy,
        "space": space,
        "budget": {"hours": plan.minutes / 60},
        "seed": repeat,
    }


def _folder(work: Path, strategy: str, repeat: int) -> Path:
    return work / f"{strategy.replace(':', '-')}-{repeat}"


def _run_truth(plan: Plan, work: Path, cell: Cell, seed: int) -> None:
    shard = _shard(plan, work, cell, seed)
    if shard.is_file():
        return
    shard.parent.mkdir(exist_ok=True)
    found = measure(plan.task, cell, seed)
    content = {"task": plan.task, **cell._asdict(), "seed": seed, **found}
    partial = shard.with_suffix(".partial")
    partial.write_text(json.dumps(content))
    partial.replace(shard)
    print(f"truth {tuple(cell)} {seed}: {found['outcome']} {found['score']}", flush=True)


def _shard(plan: Plan, work: Path, cell: Cell, seed: int) -> Path:
    return work / "truth" / f"{plan.task}_{seed}_{'_'.join(str(value) for value in cell)}.json"


def studies(work: Path) -> list[Found]:
    """The studies in `work` that are over, by strategy and repeat."""
    from leverl.tune.view import read_study

    found = []
    for strategy in STRATEGIES:
        for folder in sorted(work.glob(f"{_folder(work, strategy, 0).name[:-2]}-*/")):
            if (folder / "winner.json").is_file():
                repeat = int(folder.name.rpartition("-")[2])
                found.append(_found(read_study(folder), strategy, repeat))
    return found


def _found(view: StudyView, strategy: str, repeat: int) -> Found:
    best, runs = view.recommendation, view.history.runs
    ends = Counter(str(state.outcome) for state in runs)
    return Found(
        strategy,
        repeat,
        _cell(view.history.params(best.config_id) if best is not None else {}),
        _verdict(view),
        len(runs),
        ends["stopped"],
        len({state.run.config_id for state in view.history.in_phase(SEARCH)}),
        math.fsum(state.progress for state in runs),
        len(view.history.in_phase(RACE)),
        view.seconds,
    )


def _verdict(view: StudyView) -> str:
    best, compared = view.recommendation, view.winner.comparison if view.winner is not None else None
    if best is None or best.config_id == BASE_ID:
        return "base leads"
    if len(view.history.in_phase(CONFIRM)) < view.planned[CONFIRM]:
        return "cut short"
    return "gain" if compared is not None and compared.gain else "no gain"


def _cell(params: Params) -> Cell:
    """The recommended levers; the base's where one has no effect."""
    values: dict[str, Any] = {**BASE._asdict(), **params}
    return Cell(**{name: values[name] for name in LEVERS})


def truth(plan: Plan, work: Path, cell: Cell) -> list[float] | None:
    """Scores on the truth seeds; None while some are missing."""
    shards = [_shard(plan, work, cell, seed) for seed in plan.seeds]
    if not all(shard.is_file() for shard in shards):
        return None
    return [json.loads(shard.read_text())["score"] or 0.0 for shard in shards]


def tables(plan: Plan, work: Path) -> str:
    """One table of strategies and one of studies, in Markdown."""
    every = studies(work)
    scores = {cell: truth(plan, work, cell) for cell in {BASE, *(found.cell for found in every)}}
    base = scores[BASE]
    head = (
        f"Task `{plan.task}`, {plan.minutes:g} minutes a study, {plan.parallel} runs side by side; truth: mean over "
        f"{plan.truth_seeds} fresh seeds; the base has {_mean(base or [])} (± SE over seeds)."
    )
    lines = [
        "| strategy | studies | truth of the recommended, mean ± SE | gain declared | configurations | runs "
        "| of these stopped | work in full runs | wall s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for strategy in STRATEGIES:
        found = [study for study in every if study.strategy == strategy]
        known = [statistics.mean(values) for study in found if (values := scores[study.cell])]
        if found:
            lines.append(
                f"| {strategy} | {len(found)} | {_mean(known)} | {sum(study.verdict == 'gain' for study in found)} "
                f"| {_average([study.configurations for study in found])} "
                f"| {_average([study.runs for study in found])} | {_average([study.stopped for study in found])} "
                f"| {_average([study.steps for study in found])} | {_average([study.seconds for study in found])} |"
            )
    return "\n".join([head, "", *lines, "", *_studies_table(every, scores)])


def _studies_table(every: Sequence[Found], scores: dict[Cell, list[float] | None]) -> list[str]:
    levers = ", ".join(LEVERS)
    lines = [
        f"| study | recommended: {levers} | truth, mean ± SE over seeds | proof | runs | raced | wall s |",
        "|---|---|---|---|---|---|---|",
    ]
    for study in every:
        cell = ", ".join(f"{value:.3g}" for value in study.cell)
        lines.append(
            f"| {study.strategy} {study.repeat} | {cell} | {_mean(scores[study.cell] or [])} "
            f"| {study.verdict} | {study.runs} | {study.raced} | {study.seconds:.0f} |"
        )
    return lines


def _mean(values: Sequence[float]) -> str:
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values) / math.sqrt(len(values)):.3f}"


def _average(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of studies, outside the repository")
    parser.add_argument(
        "--minutes", type=float, required=True, help="wall time of a study, its proof included"
    )
    parser.add_argument("--task", choices=list(TASKS), default="sort")
    parser.add_argument("--parallel", type=int, choices=(1, 2), default=1, help="runs side by side")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--truth-seeds", type=int, default=5)
    parser.add_argument("--table", action="store_true", help="print what the folder holds, run nothing")
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    asked.work.mkdir(parents=True, exist_ok=True)
    plan = Plan(asked.task, asked.minutes, asked.parallel, asked.truth_seeds)
    if not asked.table:
        try:
            run_studies(plan, asked.work, asked.strategies, asked.repeats)
        except KeyboardInterrupt:
            raise SystemExit("stopped; the same command goes on") from None
    print(tables(plan, asked.work))


if __name__ == "__main__":
    main()
