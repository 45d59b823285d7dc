"""Where configurations stand: posterior, probability to be the best, intervals of ranks, agreement of seeds."""

import itertools
from collections.abc import Mapping
from typing import Final

import numpy as np

from leverl.tune.analysis.result import Agreement, Standing
from leverl.tune.evidence.belief import search_knowledge
from leverl.tune.evidence.posterior import Belief, FloatArray
from leverl.tune.evidence.recommendation import Allowed, contest, in_question
from leverl.tune.model import CONFIRM, GRID, RACE, SEARCH, History
from leverl.tune.space.space import Space
from leverl.tune.statistics import mean

_DRAWS: Final = 4000
_FEWEST: Final = 3  # configurations on two seeds, below which their order says nothing

_STAGES: Final = {"search": (SEARCH, GRID), "race": (RACE,), "confirm": (CONFIRM,)}
"""Phases that share their seeds count as one."""


def standings(space: Space, history: History, *, allowed: Allowed | None = None) -> tuple[Standing, ...]:
    """All configurations with a score or a prediction, best posterior mean first."""
    knowledge = search_knowledge(space, history)
    if knowledge is None:
        return ()
    permitted = frozenset(c for c in history.config_ids if allowed is None or allowed(history, c))
    chosen = in_question(space, history, permitted)
    whole = contest(space, history, knowledge.belief.ids).belief
    best = contest(space, history, chosen).belief if chosen else None
    chances = dict(zip(chosen, best.probability_best(), strict=True)) if best is not None else {}
    ranks = _ranks(whole)
    sign = 1.0 if history.maximize else -1.0
    found = []
    for config_id in whole.ids:
        belief = best if best is not None and config_id in chosen else whole
        place = belief.ids.index(config_id)
        median, low, high = ranks[config_id]
        found.append(
            Standing(
                config_id=config_id,
                mean=sign * float(belief.mean[place]),
                sd=max(float(belief.covariance[place, place]), 0.0) ** 0.5,
                probability_best=float(chances[config_id]) if config_id in chances else None,
                rank=median,
                rank_low=low,
                rank_high=high,
            )
        )
    return tuple(sorted(found, key=lambda one: -sign * one.mean))


def _ranks(belief: Belief) -> Mapping[str, tuple[float, float, float]]:
    """Median and 90 % interval of each configuration's rank over draws from the joint posterior."""
    draws = _draws(belief, np.random.default_rng(0))
    places = (-draws).argsort(axis=1).argsort(axis=1) + 1
    low, median, high = np.quantile(places, [0.05, 0.5, 0.95], axis=0)
    return {name: (float(median[i]), float(low[i]), float(high[i])) for i, name in enumerate(belief.ids)}


def _draws(belief: Belief, generator: np.random.Generator) -> FloatArray:
    values, vectors = np.linalg.eigh(belief.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    found: FloatArray = belief.mean + generator.standard_normal((_DRAWS, len(belief.ids))) @ root.T
    return found


def agreement(history: History) -> tuple[Agreement, ...]:
    """Kendall's tau between seeds, for each stage in which two seeds have enough configurations in common."""
    found = []
    for stage, phases in _STAGES.items():
        scores: dict[int, dict[str, float]] = {}
        for state in history.runs:
            if state.run.phase in phases and state.scored and state.score is not None:
                scores.setdefault(state.run.seed, {})[state.run.config_id] = state.score.mean
        taus, shared = [], set()
        for one, two in itertools.combinations(scores.values(), 2):
            common = sorted(one.keys() & two.keys())
            tau = _tau([one[c] for c in common], [two[c] for c in common]) if len(common) >= _FEWEST else None
            if tau is not None:
                taus.append(tau)
                shared |= set(common)
        if taus:
            found.append(Agreement(stage, mean(taus), len(taus), len(shared)))
    return tuple(found)


def _tau(one: list[float], two: list[float]) -> float | None:
    """Kendall's tau-b; None where all scores of a seed are equal."""
    pairs = list(itertools.combinations(range(len(one)), 2))
    first = np.sign([one[a] - one[b] for a, b in pairs])
    second = np.sign([two[a] - two[b] for a, b in pairs])
    untied = float(np.sqrt(np.abs(first).sum() * np.abs(second).sum()))
    return float((first * second).sum()) / untied if untied else None
