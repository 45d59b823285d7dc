"""How often a study declares a gain that is not there, and one that is: whole studies on made-up landscapes.

    python benchmarks/tuning/honesty.py --work FOLDER [--repeats 400] [--seed 0] [--cases flat one …]

A study has random suggestions and 37 runs: search, race, and the proof, for which the winner and the base get five
fresh seeds each, and up to ten where the race leaves runs over. Everything but the runs is leverl's own: strategy,
phases, surrogate and verdict, with the defaults of a study file. A run's score is the truth of its configuration plus
noise between seeds whose standard deviation is 1.
FOLDER keeps one JSON file for each case: stop it and start it again freely.

Prints, for each case, the share of studies that declare a gain over the base, with its binomial standard error; the
share of the reported 95 % intervals that hold the true difference, and their number (a study in which the base leads
reports none); and how much better than the base that configuration truly is which went into the proof, on average.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from methods.simulator import play
from tasks.task import Result

from leverl.tune.model import BASE, History, Run
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space, free
from leverl.tune.strategy import Strategy, build
from leverl.tune.study import Budget, Study, Target

RUNS: Final = 27  # of search and race
PROOF: Final = 10
CANDIDATES: Final = 15  # beside the base; where there is little doubt the search looks at a few more
GAIN: Final = 2.0  # of the best configuration over the base, in standard deviations between seeds
SAVED_EVERY: Final = 20
STEPS: Final = 10  # of a run: any number, for there are no curves

SPACE: Final[Space] = free(
    [Axis(name) for name in ("first", "second", "third", "fourth")],
    base=dict.fromkeys(("first", "second", "third", "fourth"), 0.25),
)

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Truth = Callable[[FloatArray, np.random.Generator], FloatArray]
"""Configurations as points of the unit cube, the base first [n, 4] → their true means [n], the base's 0."""
Noise = Callable[[int, str, int], float]
"""Repeat, configuration, seed → what is added to the configuration's truth, always the same."""


@dataclass(frozen=True)
class Case:
    words: str
    truth: Truth
    noise: Noise


@dataclass(frozen=True)
class Ending:
    """One study: what it declared, and whether that is so."""

    declared: bool
    confirmed: str | None  # the configuration that went into the proof; None where the base led
    gain: float  # its true gain
    covered: bool | None  # whether the reported interval holds that gain; None without an interval
    runs: int


def study_once(case: Case, seed: int, repeat: int) -> Ending:
    """A whole study; `repeat` decides its seeds, its suggestions and its noise."""
    strategy = _strategy(seed + repeat)
    truths = _truths(strategy, case.truth, _generator(seed + repeat, stream=1))

    def outcome(run: Run) -> Result:
        return Result(truths[run.config_id] + case.noise(seed + repeat, run.config_id, run.seed))

    return _ending(strategy, play(strategy, outcome), truths)


def _strategy(seed: int) -> Strategy:
    study = Study(
        name="honesty",
        target=Target(leverl="made up"),
        strategy="random",
        space={},
        budget=Budget(trials=RUNS + PROOF),
        seed=seed,
    )
    return build(study, SPACE, lambda _: STEPS, last_k=1)


def _truths(strategy: Strategy, truth: Truth, generator: np.random.Generator) -> Mapping[str, float]:
    """True means by configuration. Random suggestions do not depend on scores, so they are known in advance."""
    found = [SPACE.base_params(), *strategy.sampler.suggest(SPACE, History(()), RUNS)]
    points = np.array([[axis.unit(params[axis.name]) for axis in SPACE.axes] for params in found])
    means = truth(points, generator)
    return {f"c{number:03d}": float(mean) for number, mean in enumerate(means)}


def _ending(strategy: Strategy, history: History, truths: Mapping[str, float]) -> Ending:
    conclusion = strategy.conclude(history)
    comparison = conclusion.comparison
    if comparison is None:
        return Ending(conclusion.config_id != BASE, None, 0.0, None, len(history.runs))
    gain = truths[comparison.config_id] - truths[BASE]
    interval = comparison.interval
    covered = None if interval is None else interval[0] <= gain <= interval[1]
    return Ending(conclusion.config_id != BASE, comparison.config_id, gain, covered, len(history.runs))


def flat(points: FloatArray, _: np.random.Generator) -> FloatArray:
    return np.zeros(len(points))


def better(count: int) -> Truth:
    """`count` of the candidates are better by GAIN, wherever they lie; all others equal the base."""

    def truth(points: FloatArray, generator: np.random.Generator) -> FloatArray:
        means = np.zeros(len(points))
        means[1 + generator.permutation(CANDIDATES)[:count]] = GAIN
        return means

    return truth


def bump(points: FloatArray, generator: np.random.Generator) -> FloatArray:
    """A round hill with its top anywhere; in units in which the best candidate is better by GAIN."""
    while True:
        top = generator.random(points.shape[1])
        height = np.exp(-np.sum((points - top) ** 2, axis=1) / (2 * 0.3**2))
        gains = height - height[0]
        highest = gains[: CANDIDATES + 1].max()
        if highest > 0.2:  # else the base stands at the top, and there is nothing to gain
            return np.asarray(GAIN * gains / highest)


def gaussian(repeat: int, config_id: str, seed: int) -> float:
    return float(_generator(repeat, config_id, seed).standard_normal())


def heavy_tailed(repeat: int, config_id: str, seed: int) -> float:
    """Student's t with three degrees of freedom, which has a variance of 3."""
    return float(_generator(repeat, config_id, seed).standard_t(3)) / math.sqrt(3)


def common_seed(repeat: int, config_id: str, seed: int) -> float:
    """Half of the variance is what a seed does to all configurations alike."""
    shared = float(_generator(repeat, seed=seed, stream=2).standard_normal())
    return math.sqrt(0.5) * (shared + gaussian(repeat, config_id, seed))


def heteroscedastic(repeat: int, config_id: str, seed: int) -> float:
    """Each configuration has a deviation of its own, between half and twice that of the base, even on a log scale."""
    power = _generator(repeat, config_id, stream=3).uniform(-1, 1)
    return (1.0 if config_id == BASE else 2**power) * gaussian(repeat, config_id, seed)


def _generator(repeat: int, config_id: str = BASE, seed: int = 0, stream: int = 4) -> np.random.Generator:
    """Independent for different arguments. `stream` is never 0, for numpy takes [1] and [1, 0] for the same."""
    return np.random.default_rng([repeat, seed, int(config_id.removeprefix("c")), stream])


CASES: Final[Mapping[str, Case]] = {
    "flat": Case("flat, Gaussian noise", flat, gaussian),
    "flat-heavy": Case("flat, heavy-tailed noise", flat, heavy_tailed),
    "flat-common": Case("flat, half of the noise common to a seed", flat, common_seed),
    "flat-unequal": Case("flat, unequal noise", flat, heteroscedastic),
    "one": Case(f"one of 15 at +{GAIN:g}", better(1), gaussian),
    "three": Case(f"three of 15 at +{GAIN:g}", better(3), gaussian),
    "bump": Case(f"smooth, the best of 15 at +{GAIN:g}", bump, gaussian),
    "bump-heavy": Case(f"smooth, the best of 15 at +{GAIN:g}, heavy-tailed noise", bump, heavy_tailed),
}


def measure(name: str, work: Path, seed: int, repeats: int) -> list[Ending]:
    """The case's studies; those that `work` holds already are not repeated."""
    shard = work / f"honesty_{name}_{seed}.json"
    known = json.loads(shard.read_text()) if shard.is_file() else []
    endings = [Ending(**ending) for ending in known]
    began, before = time.process_time(), len(endings)
    while len(endings) < repeats:
        endings.append(study_once(CASES[name], seed, len(endings)))
        if len(endings) % SAVED_EVERY == 0 or len(endings) == repeats:
            _save(shard, endings)
            each = (time.process_time() - began) / (len(endings) - before)
            print(f"\r{name}: {len(endings)} of {repeats}, {each:.2f} CPU s each", end="", flush=True)
    if len(endings) > before:
        print()
    return endings[:repeats]


def _save(shard: Path, endings: Sequence[Ending]) -> None:
    partial = shard.with_suffix(".partial")
    partial.write_text(json.dumps([asdict(ending) for ending in endings]))
    partial.replace(shard)


def table(found: Mapping[str, Sequence[Ending]]) -> str:
    lines = [
        "| landscape | repeats | gain declared | coverage of 95 % intervals | n | true gain of the one confirmed |",
        "|---|---|---|---|---|---|",
    ]
    for name, endings in found.items():
        declared = [ending.declared for ending in endings]
        covered = [ending.covered for ending in endings if ending.covered is not None]
        gains = [ending.gain for ending in endings if ending.confirmed is not None]
        mean = f"{np.mean(gains):+.2f}" if gains else "–"
        lines.append(
            f"| {CASES[name].words} | {len(endings)} | {_share(declared)} | {_share(covered)} | {len(covered)} "
            f"| {mean} |"
        )
    return "\n".join(lines)


def _share(happened: Sequence[bool]) -> str:
    """A share in per cent with its binomial standard error."""
    if not happened:
        return "–"
    share = float(np.mean(happened))
    return f"{100 * share:.1f} ± {100 * math.sqrt(share * (1 - share) / len(happened)):.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of finished studies")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="repeats use this number and those after it")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    try:
        found = {name: measure(name, asked.work, asked.seed, asked.repeats) for name in asked.cases}
    except KeyboardInterrupt:
        raise SystemExit("\nstopped; the same command goes on") from None
    print(table(found))


if __name__ == "__main__":
    main()
