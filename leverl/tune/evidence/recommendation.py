"""Which configuration to recommend: the best by posterior mean; of those that cannot be told apart, the gentler."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np

from leverl.tune.evidence.belief import failures, fingerprint, search_knowledge
from leverl.tune.evidence.posterior import Belief, probability_positive
from leverl.tune.evidence.seed_noise import SeedNoise
from leverl.tune.model import BASE, CONFIRM, RACE, History, Recommendation
from leverl.tune.ranking import Standing, standing
from leverl.tune.space.space import Space
from leverl.tune.stopping.rules import Incumbent

Allowed = Callable[[History, str], bool]
"""Whether a configuration keeps the limits that a study sets on metrics, such as KL ≤ 0.1."""

EPSILON: Final = 0.1
"""Differences that do not matter unless the study says otherwise, in standard deviations between seeds."""

NEARLY_EVEN: Final = 0.4
"""How likely to be better than the leader makes a configuration indistinguishable from it."""

_ALIKE: Final = 0.05
"""Relative difference up to which KL or cost of two configurations count as the same."""


@dataclass(frozen=True)
class Contest:
    """The configurations in question and what is believed of them; larger is better."""

    belief: Belief
    noise: SeedNoise
    epsilon: float

    @property
    def leader(self) -> int:
        return int(self.belief.mean.argmax())

    def tied(self) -> tuple[str, ...]:
        """The leader and those that are expected to lose less than epsilon, or nearly as likely to be the better.

        Choosing among them by KL or cost costs next to nothing: 0.02 standard deviations of a seed at most in
        simulated races, where choosing within the 95 % interval costs up to 0.5.
        """
        leader = self.leader
        found = [leader]
        for place in np.argsort(-self.belief.mean, kind="stable"):
            gap, sd = self.belief.difference(leader, int(place))
            if place != leader and (gap <= self.epsilon or probability_positive(-gap, sd) >= NEARLY_EVEN):
                found.append(int(place))
        return tuple(self.belief.ids[place] for place in found)


def recommend(
    space: Space,
    history: History,
    *,
    allowed: Allowed | None = None,
    epsilon: float | None = None,
    model: bool = True,
) -> Recommendation | None:
    """The recommendation after search and race; runs of the confirmation do not count.

    A configuration that failed on a seed comes behind all that never did. Once the race has begun only its
    finalists are in question. The same runs are judged once, so that a view can ask again and again.

    Args:
        allowed: a configuration for which this is false is never recommended.
        epsilon: differences that do not matter, in units of the score; by default EPSILON seed deviations.
        model: False leaves the surrogate out, which takes seconds to import and to fit.

    Returns:
        None when no configuration has a score, or none with a score is allowed.
    """
    before = _before_confirmation(history)
    permitted = frozenset(c for c in before.config_ids if allowed is None or allowed(before, c))
    return _recommended(_Asked(space, before, permitted, epsilon, model, fingerprint(before)))


def incumbent(
    space: Space, history: History, *, allowed: Allowed | None = None, model: bool = True
) -> Incumbent | None:
    """What a running run has to beat: the recommended configuration's score; None while there is none."""
    found = recommend(space, history, allowed=allowed, model=model)
    return None if found is None else Incumbent(found.mean, found.sd, found.seed_sd)


def confirmed(history: History) -> str | None:
    """The configuration whose confirmation has begun: it stays the one, whatever becomes known later."""
    names = [state.run.config_id for state in history.in_phase(CONFIRM) if state.run.config_id != BASE]
    return names[0] if names else None


def contest(
    space: Space, history: History, ids: Sequence[str], *, epsilon: float | None = None, model: bool = True
) -> Contest:
    """What search and race say of `ids`, which must all have a value from the search."""
    knowledge = search_knowledge(space, history, model=model)
    if knowledge is None:
        raise ValueError("no configuration has a score.")
    noise = knowledge.noise(history, ids)
    belief = knowledge.after_race(history, ids, noise)
    return Contest(belief, noise, EPSILON * noise.sd if epsilon is None else epsilon)


def in_question(
    space: Space, history: History, permitted: frozenset[str], *, model: bool = True
) -> tuple[str, ...]:
    """Configurations to recommend one from: with a value, permitted, and with the fewest failures among these."""
    knowledge = search_knowledge(space, history, model=model)
    if knowledge is None:
        return ()
    known = [config_id for config_id in knowledge.belief.ids if config_id in permitted]
    raced = {state.run.config_id for state in history.in_phase(RACE)}
    return steadiest(history, [c for c in known if c in raced] or known)


def steadiest(history: History, ids: Sequence[str]) -> tuple[str, ...]:
    """Those that failed least often: where some never did, a setting that sometimes dies is no recommendation."""
    shares = {config_id: failures(history, config_id) for config_id in ids}
    least = min(shares.values(), default=0.0)
    return tuple(config_id for config_id in ids if shares[config_id] == least)


@dataclass(frozen=True)
class _Asked:
    """A question to `_recommended`, compared by what decides its answer."""

    space: Space = field(compare=False)
    history: History = field(compare=False)
    permitted: frozenset[str]
    epsilon: float | None
    model: bool
    key: Hashable


@lru_cache(maxsize=32)
def _recommended(asked: _Asked) -> Recommendation | None:
    history = asked.history
    ids = in_question(asked.space, history, asked.permitted, model=asked.model)
    if not ids:
        return None
    found = contest(asked.space, history, ids, epsilon=asked.epsilon, model=asked.model)
    tied = found.tied()
    taken, advantage = _gentlest(history, tied)
    place = ids.index(taken)
    chance = float(found.belief.probability_best()[place])
    return Recommendation(
        config_id=taken,
        mean=(1.0 if history.maximize else -1.0) * float(found.belief.mean[place]),
        sd=max(float(found.belief.covariance[place, place]), 0.0) ** 0.5,
        seed_sd=found.noise.sd,
        probability_best=chance,
        expected_loss=float(found.belief.expected_loss()[place]),
        indistinguishable=tied if len(tied) > 1 else (),
        reason=_reason(tied, taken, advantage, chance, len(ids)),
    )


def _gentlest(history: History, tied: Sequence[str]) -> tuple[str, str]:
    """Of configurations in order of preference: least KL, then cheapest, then the first; and its advantage."""
    standings = {config_id: standing(history, config_id) for config_id in tied}
    left, advantage = list(tied), ""
    for words, measure in _PREFERENCES:
        known = {name: value for name in left if (value := measure(standings[name])) is not None}
        if not known:
            continue
        least = min(known.values())
        kept = [name for name in left if name in known and known[name] <= least + _ALIKE * abs(least)]
        if len(kept) < len(left) and (not advantage or tied[0] in left):
            rival = tied[0] if tied[0] not in kept else next(name for name in left if name not in kept)
            against = f" against {known[rival]:.3g}" if rival in known else ""
            advantage = f"{words} ({known[kept[0]]:.3g}{against})"
        left = kept
    return left[0], advantage or "the highest posterior mean"


_PREFERENCES: Final[tuple[tuple[str, Callable[[Standing | None], float | None]], ...]] = (
    ("less KL", lambda found: None if found is None else found.kl),
    ("fewer responses a run", lambda found: None if found is None else float(found.cost[0])),
    ("fewer seconds a run", lambda found: None if found is None else found.cost[1]),
)


def _before_confirmation(history: History) -> History:
    runs = tuple(state for state in history.runs if state.run.phase != CONFIRM)
    return History(runs, history.maximize)


def _reason(tied: Sequence[str], taken: str, advantage: str, chance: float, count: int) -> str:
    if count == 1:
        return f"{taken} is the only configuration in question"
    if len(tied) == 1:
        return f"{taken} has the highest posterior mean; P(best) {chance:.2g} among {count}"
    return f"{joined(tied)} are indistinguishable; {taken} has {advantage}"


def joined(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
