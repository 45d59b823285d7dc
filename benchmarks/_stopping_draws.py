"""Studies drawn from recorded curves: what the stop rules say of each run as it grows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _recorded import Recorded, Task
from numpy.typing import NDArray

from leverl.record.run_record import Outcome, Score
from leverl.record.series import EMPTY, Series
from leverl.tune.model import SEARCH, Cost, History, Run, RunState
from leverl.tune.stopping.curve import predict_final
from leverl.tune.stopping.rules import Incumbent, StopRules, scores_seen

Array = NDArray[np.float64]

LAST_K = 3
LOOKS = tuple(round(0.05 * i, 2) for i in range(2, 20))  # shares of a run's steps
START_UP, ENDED, PEERS, RANDOM_RUNS = 4, 10, 8, 30
TOP = 5
RULES = StopRules(last_k=LAST_K)


def state_of(run: Recorded, share: float = 1.0) -> RunState:
    """A recorded run as a study sees it when `share` of its steps are done."""
    steps = run.curve.steps
    count = sum(step <= share * run.until + 1e-9 for step in steps)
    name = f"{run.configuration}/{run.seed}"
    over = share >= 1.0
    return RunState(
        Run(name, run.configuration, {}, run.seed, run.until, SEARCH),
        Path(name),
        Outcome.FINISHED if over else None,
        Score(run.score(LAST_K), None, LAST_K) if over else None,
        evaluations=Series(steps[:count], run.curve.values[:count]),
        cost=Cost(steps[count - 1] if count else 0),
    )


@dataclass(frozen=True)
class Draw:
    """One study: its start-up runs, and for each leader the runs that have ended and what is known of the leader."""

    reference: tuple[RunState, ...]
    peers: tuple[RunState, ...]  # of a search that has converged: random ones of the best quarter
    leaders: dict[str, tuple[tuple[RunState, ...], Incumbent]]


EARLY, LATE, MOVING = "best of ten", "best of all", "moving median"
STRICT, ALONE = "best of ten, strictly below the median", "best of ten, no precedents"


def draw(task: Task, number: int) -> tuple[Draw, list[Recorded]]:
    """Study `number`, and random runs outside it."""
    generator = np.random.default_rng((number, len(task.runs)))
    configurations, ranking = task.by_configuration(), task.ranking(LAST_K)

    def runs_of(names: Sequence[str], count: int) -> list[Recorded]:
        chosen = generator.choice(len(names), size=min(count, len(names)), replace=False)
        return [configurations[names[i]][generator.integers(len(configurations[names[i]]))] for i in chosen]

    ended = runs_of(ranking, ENDED)
    states = tuple(state_of(run) for run in ended)
    best = max(ended, key=lambda run: run.score(LAST_K)).configuration
    leader = state_of(runs_of(ranking[:1], 1)[0])
    leaders = {
        EARLY: (states, _incumbent(configurations[best])),
        LATE: ((*states, leader), replace(_incumbent(configurations[ranking[0]]), standard_error=0.0)),
    }
    peers = tuple(state_of(run) for run in runs_of(ranking[: max(len(ranking) // 4, PEERS)], PEERS))
    used = {run.configuration for run in ended}
    others = [run for run in task.runs if run.configuration not in used]
    picked = generator.choice(len(others), size=min(RANDOM_RUNS, len(others)), replace=False)
    return Draw(states[:START_UP], peers, leaders), [others[i] for i in picked]


def _incumbent(runs: Sequence[Recorded]) -> Incumbent:
    """What is known of a configuration once all its recorded runs have ended."""
    scores = [run.score(LAST_K) for run in runs]
    spread = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    return Incumbent(float(np.mean(scores)), spread / math.sqrt(len(scores)))


def looks(study: Draw, run: Recorded) -> dict[str, list[float]]:
    """P(beats the leader) at each look where nothing else speaks against stopping, else NaN: by each rule.

    Beside them what the run would be predicted to score if it were stopped there, and what it scored.
    """
    found: dict[str, list[float]] = {
        name: [] for name in (EARLY, LATE, STRICT, ALONE, MOVING, "mean", "error")
    }
    for share in LOOKS:
        state = state_of(run, share)
        for name in (EARLY, LATE):
            found[name].append(_chance(state, study.reference, *study.leaders[name], precedents=True))
        found[ALONE].append(_chance(state, study.reference, *study.leaders[EARLY], precedents=False))
        found[MOVING].append(_chance(state, study.peers, *study.leaders[LATE], precedents=False))
        standing = RULES.standing(state, study.reference)
        below = standing is not None and standing.score < standing.start_up
        found[STRICT].append(found[EARLY][-1] if below else math.nan)
        seen = scores_seen(History((*study.leaders[EARLY][0], state)))
        stoppable = seen is not None and not math.isnan(found[EARLY][-1])
        scale = seen.width if stoppable and seen is not None else 0.0
        predicted = predict_final(state.evaluations, EMPTY, run.until, LAST_K, scale=scale)
        found["mean"].append(predicted.mean if predicted else math.nan)
        found["error"].append(predicted.standard_error if predicted else math.nan)
    return found | {"score": [run.score(LAST_K)]}


def _chance(
    state: RunState,
    reference: tuple[RunState, ...],
    ended: tuple[RunState, ...],
    leader: Incumbent,
    *,
    precedents: bool,
) -> float:
    standing = RULES.standing(state, reference)
    if standing is None or not standing.behind:
        return math.nan
    history = History((*ended, state))
    seen = scores_seen(history)
    if seen is None or (precedents and RULES.precedent(state, standing.score, history, seen, leader)):
        return math.nan
    chance = RULES.chance(state, seen, leader)
    return math.nan if chance is None else chance


def simulate(task: Task, draws: int) -> dict[str, Any]:
    """Looks of all draws: `top` has one entry per run of the best configurations, `random` one per random run."""
    ranking = task.ranking(LAST_K)
    decile = ranking[: max(math.ceil(len(ranking) / 10), TOP)]
    good = [run for run in task.runs if run.configuration in decile]
    best = [i for i, run in enumerate(good) if run.configuration in ranking[:TOP]]
    result: dict[str, Any] = {"good": [], "random": [], "best": best, "runs": len(task.runs)}
    for number in range(draws):
        study, others = draw(task, number)
        result["good"].append([looks(study, run) for run in good])
        result["random"].append([looks(study, run) for run in others])
    return result
