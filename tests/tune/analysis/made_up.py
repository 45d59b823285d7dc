"""Histories over two levers with a known best value, for the analyses."""

from pathlib import Path

import numpy as np

from leverl.record.run_record import Outcome, Score
from leverl.tune.model import BASE, SEARCH, Cost, History, Params, Prediction, Run, RunState
from leverl.tune.space import space as spaces
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space

STEPS = 100


def space() -> Space:
    """`rate` matters, best at 1e-3; `idle` does not."""
    axes = (Axis("rate", low=1e-5, high=1e-1, scale="log"), Axis("idle", low=0.0, high=1.0))
    return spaces.free(axes, base={"rate": 1e-4, "idle": 0.5})


def truth(params: Params) -> float:
    return 0.8 - 0.1 * (np.log10(float(params.get("rate", 1e-4))) + 3.0) ** 2


def run_state(
    config_id: str,
    params: Params,
    score: float | None,
    *,
    seed: int = 1,
    phase: str = SEARCH,
    outcome: Outcome | None = Outcome.FINISHED,
    steps: int = STEPS,
    seconds: float = 10.0,
    prediction: Prediction | None = None,
) -> RunState:
    return RunState(
        run=Run(f"{config_id[1:]}-s{seed}", config_id, params, seed, STEPS, phase),
        folder=Path(config_id),
        outcome=outcome,
        score=Score(score, 0.01, 3) if score is not None else None,
        prediction=prediction,
        steps_to_90=40 if score is not None else None,
        kl=0.02 if score is not None else None,
        cost=Cost(steps, steps * 8, steps * 80, seconds * steps / STEPS, 2 * seconds * steps / STEPS),
    )


def searched(count: int = 16, *, maximize: bool = True, noise: float = 0.01) -> History:
    """A search over the space; with `maximize` False all scores change their sign."""
    generator = np.random.default_rng(5)
    sign = 1.0 if maximize else -1.0
    runs = [run_state(BASE, {}, sign * truth({}))]
    for number in range(1, count):
        params = {"rate": float(10 ** generator.uniform(-5, -1)), "idle": float(generator.uniform())}
        score = sign * (truth(params) + noise * float(generator.normal()))
        runs.append(run_state(f"c{number:03}", params, score, seconds=10.0 + number))
    return History(tuple(runs), maximize)
