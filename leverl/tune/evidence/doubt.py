"""How much of what a search has seen may be luck."""

import math
from statistics import quantiles
from typing import Final

from leverl.tune.model import GRID, SEARCH, History
from leverl.tune.statistics import mean

FULL: Final = 0.5
"""Spread between seeds ÷ spread between configurations from which on the choice among them is in full doubt."""

_PRIOR_DF: Final = 1.0  # what FULL counts beforehand, in degrees of freedom of replicates
_LEAST: Final = 4  # configurations with a score, for quartiles
_QUARTILES_OF_NORMAL: Final = 1.349  # their distance in standard deviations


def doubt(history: History) -> float:
    """Between 0, where a score says all of its configuration, and 1; 1 while too little is known.

    The spread between configurations is taken from the quartiles of their means, which a few hopeless ones do not
    move; that between seeds from replicates, with a first guess.
    """
    scores: dict[str, list[float]] = {}
    for state in history.runs:
        if state.run.phase in (SEARCH, GRID) and state.scored and state.score is not None:
            scores.setdefault(state.run.config_id, []).append(state.score.mean)
    if len(scores) < _LEAST:
        return 1.0
    means = {config_id: mean(values) for config_id, values in scores.items()}
    low, _, high = quantiles(means.values(), n=4, method="inclusive")
    between = (high - low) / _QUARTILES_OF_NORMAL
    if between <= 0:
        return 1.0
    squares = math.fsum((value - means[name]) ** 2 for name, values in scores.items() for value in values)
    df = sum(len(values) - 1 for values in scores.values())
    within = (squares + _PRIOR_DF * (FULL * between) ** 2) / (df + _PRIOR_DF)
    return min(math.sqrt(within) / (FULL * between), 1.0)
