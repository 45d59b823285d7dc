"""Seconds of one suggestion by the sampler `bayes`, beside `optuna:gp`, on the same made-up studies.

    python benchmarks/suggestion_time.py [--repeats N] [--samplers bayes optuna:gp LeverlSampler]

A study of n runs has a mixed space (log and linear ranges, a range with a value beside it, whole numbers, powers of
two, words, a switch), noisy scores, some configurations with two seeds, one run in sixteen out of memory, and costs.
`LeverlSampler` is `bayes` in a study of Optuna's, which holds the same trials in memory.
Prints the median and the maximum over N studies of wall time and of CPU time, in one thread, imports left out.
"""

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import optuna
import torch
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from leverl import LeverlSampler
from leverl.record.run_record import Outcome, Score
from leverl.tune.model import SEARCH, Cost, History, Params, Run, RunState
from leverl.tune.sampling import sampler_named
from leverl.tune.space.axis import Axis
from leverl.tune.space.optuna_space import distributions, encode
from leverl.tune.space.space import Space, free

SIZES = ((27, 4), (60, 6), (200, 10))  # runs, levers
LEVERS = (
    Axis("learning_rate", low=1e-6, high=1e-3, scale="log"),
    Axis("kl_coef", low=1e-4, high=1e-1, scale="log", other=0.0),
    Axis("epochs", kind="int", low=1, high=8),
    Axis("clip_range", low=0.05, high=0.4),
    Axis("batch_size", kind="int", low=64, high=1024, scale="pow2"),
    Axis("loss", kind="categorical", values=("token", "sequence", "group")),
    Axis("temperature", low=0.5, high=1.5),
    Axis("discount", low=0.9, high=0.9999, scale="logit"),
    Axis("normalize", kind="categorical", values=(True, False)),
    Axis("warmup", kind="int", low=0, high=100, step=10),
)


def history(space: Space, runs: int, seed: int) -> History:
    """A study of `runs` runs at random configurations."""
    generator = np.random.default_rng([seed, runs])
    weights = generator.random(len(space.axes))
    states: list[RunState] = []
    while len(states) < runs:
        params = space.draw(generator)
        place = np.array([axis.unit(params[axis.name]) for axis in space.axes])
        truth = float(np.sin(3 * place + 6 * weights) @ weights)
        number = len(states)
        if number % 16 == 15:
            states.append(_state(number, params, None))
            continue
        for replicate in range(min(2 if number < 12 else 1, runs - number)):
            value = truth + 0.3 * generator.standard_normal()
            states.append(_state(number, params, value, replicate, 100 * 2 ** place[0]))
    return History(tuple(states), spent=0.5)


def _state(
    number: int, params: Params, value: float | None, replicate: int = 0, seconds: float = 1.0
) -> RunState:
    run = Run(f"{number:03d}-s{replicate}", f"c{number:03d}", params, replicate, 10, SEARCH)
    if value is None:
        return RunState(run, Path(run.id), Outcome.OUT_OF_MEMORY)
    score, cost = Score(value, 0.05, 3), Cost(steps=10, seconds=seconds)
    return RunState(run, Path(run.id), Outcome.FINISHED, score, cost=cost)


def measure(name: str, runs: int, levers: int, repeats: int) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of one suggestion in each of `repeats` studies."""
    space = free(LEVERS[:levers])
    walls, cpus = [], []
    for seed in range(repeats):
        known = history(space, runs, seed)
        suggest = (
            _in_optuna(space, known, seed)
            if name == "LeverlSampler"
            else _in_leverl(name, space, known, seed)
        )
        wall, cpu = time.perf_counter(), time.process_time()
        suggest()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return walls, cpus


def _in_leverl(name: str, space: Space, known: History, seed: int) -> Callable[[], object]:
    sampler = sampler_named(name, seed)
    return lambda: sampler.suggest(space, known, 1)


def _in_optuna(space: Space, known: History, seed: int) -> Callable[[], object]:
    asked = distributions(space.axes)
    study = optuna.create_study(direction="maximize", sampler=LeverlSampler(seed=seed))
    study.add_trials([_trial(space, asked, state) for state in known.runs])
    return lambda: study.ask(asked)


def _trial(space: Space, asked: dict[str, BaseDistribution], state: RunState) -> FrozenTrial:
    params = encode(space.axes, state.run.params)
    found = {name: distribution for name, distribution in asked.items() if name in params}
    if state.score is None:
        return create_trial(state=TrialState.FAIL, params=params, distributions=found)
    known = {"standard_error": state.score.standard_error}
    return create_trial(value=state.score.mean, params=params, distributions=found, user_attrs=known)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--samplers", nargs="+", default=["bayes", "optuna:gp"])
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for name in asked.samplers:
        measure(name, *SIZES[0], 1)  # imports
    print(
        "| runs × levers | sampler | wall s: median | max | CPU s: median | max |\n|---|---|---|---|---|---|"
    )
    for runs, levers in SIZES:
        for name in asked.samplers:
            cells = [
                f"{number:.2f}"
                for values in measure(name, runs, levers, asked.repeats)
                for number in (statistics.median(values), max(values))
            ]
            print(f"| {runs} × {levers} | {name} | {' | '.join(cells)} |", flush=True)
    print(
        f"\n{math.floor(os.getloadavg()[0] + 0.5)} other processes were running or waiting on {os.cpu_count()} cores."
    )


if __name__ == "__main__":
    main()
