"""Guards: signs that a run is broken for good, which need no other curve to compare with.

They are meant for runs that cannot recover, so each asks for several signs at once and for some persistence; a run that
is only slow or bad is left to the curve rule (`leverl.tune.stopping.rules`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from leverl.record.series import EMPTY, Series
from leverl.tune.model import RunState

SIGNALS: Final = (
    "actor/entropy",
    "actor/grad_norm",
    "critic/score/mean",
    "group/dead_share",
    "kl_divergence",
    "response_length/clip_ratio",
)
"""The series that guards watch besides the objective: `RunState.signals` holds those that were measured."""

PERSIST: Final = 3  # evaluations, or logged steps, that a sign has to last
_PERSIST_BLINDLY: Final = 5  # evaluations that a fall has to last where their errors are not known
_SHARE: Final = 0.05  # of the run's steps, likewise
_LONG_SHARE: Final = 0.1  # where the sign is the absence of change
_LEARNT: Final = 0.2  # a peak above the study's lowest score that counts, in units of the study's range
_CLEAR: Final = 4.0  # standard errors of an evaluation that the peak has to be above the lowest score
_LOST: Final = 0.8  # of the peak's height above the lowest score
_LOST_WITHOUT_ENTROPY: Final = 0.5  # likewise, when the policy has also become deterministic
_FLOOR: Final = 0.1  # a score no higher above the lowest one has got nowhere, in units of the range
_NO_ENTROPY: Final = 0.02  # nats per token
_ENTROPY_LEFT: Final = 0.1  # of what there was at the start
_DEAD: Final = 0.95  # of the groups: nothing is left to learn from
_AT_CAP: Final = 0.95  # of the responses
_BELOW_CAP: Final = 0.8  # share of truncated responses that tells of better days


@dataclass(frozen=True)
class Range:
    """Lowest and highest score seen in the study; scores to minimise have their sign turned."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def broken(
    state: RunState, seen: Range, *, maximize: bool = True, objective: str = "eval/score"
) -> str | None:
    """Why the running run is beyond recovery, as a text for people; None while it may be healthy."""
    run = _Watched(state, seen, 1.0 if maximize else -1.0, objective)
    checks: tuple[Callable[[_Watched], str | None], ...] = (
        _non_finite,
        _collapsed,
        _at_the_cap,
        _deterministic,
    )
    return next((reason for check in checks if (reason := check(run)) is not None), None)


@dataclass(frozen=True)
class _Watched:
    """A run as the guards see it; scores are larger-is-better."""

    state: RunState
    seen: Range
    sign: float
    objective: str

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """Finite evaluations: step and score."""
        series = self.state.evaluations
        pairs = zip(series.steps, series.values, strict=True)
        return tuple((step, self.sign * value) for step, value in pairs if math.isfinite(value))

    @property
    def now(self) -> int:
        """The last step that anything is known of."""
        known = [self.state.evaluations, *self.state.signals.values()]
        return max((series.steps[-1] for series in known if series.steps), default=0)

    def signal(self, name: str) -> Series:
        return self.state.signals.get(name, EMPTY)

    def lately(self, name: str, share: float) -> tuple[float, ...]:
        """Finite values of a signal over the last `share` of the run's steps; empty when that is not known yet."""
        series, begin = self.signal(name), self.now - share * self.state.run.until
        if begin < 0:
            return ()
        pairs = zip(series.steps, series.values, strict=True)
        values = tuple(value for step, value in pairs if step >= begin and math.isfinite(value))
        return values if len(values) >= PERSIST else ()

    @property
    def error(self) -> float | None:
        """Largest standard error of an evaluation; None where none is known."""
        return max(filter(math.isfinite, self.state.evaluation_errors.values), default=None)

    def lasting(self, condition: Callable[[float], bool], share: float, least: int = PERSIST) -> bool:
        """Whether the last `least` evaluations or more, over `share` of the run's steps, all meet the condition."""
        curve = self.curve
        stretch = 0
        while stretch < len(curve) and condition(curve[-1 - stretch][1]):
            stretch += 1
        long_enough = stretch > 0 and curve[-1][0] - curve[-stretch][0] >= share * self.state.run.until
        return stretch >= least and long_enough

    @property
    def nowhere(self) -> bool:
        """The score has long been flat at the study's floor."""
        limit = self.seen.low + _FLOOR * self.seen.width
        return self.lasting(lambda value: value <= limit, _LONG_SHARE)

    @property
    def has_no_entropy(self) -> bool:
        """The policy was random once and no longer is."""
        values, lately = self.signal("actor/entropy").values, self.lately("actor/entropy", _SHARE)
        start = [value for value in values if math.isfinite(value)][:PERSIST]
        return bool(lately) and max(lately) <= min(_NO_ENTROPY, _ENTROPY_LEFT * median(start))

    def shown(self, score: float) -> str:
        """A score as people know it."""
        return f"{self.sign * score:.3g}"


def _non_finite(run: _Watched) -> str | None:
    """The objective twice in a row, or for PERSIST steps a signal that was finite before."""
    series = run.state.evaluations
    if _ends_non_finite(series.values, 2):
        return f"non-finite: {run.objective} is {series.values[-1]} at step {series.steps[-1]}"
    for name in SIGNALS:
        series = run.signal(name)
        measured = any(map(math.isfinite, series.values))
        if measured and _ends_non_finite(series.values, PERSIST):
            since = max(step for step, v in zip(series.steps, series.values, strict=True) if math.isfinite(v))
            return f"non-finite: {name} is {series.values[-1]} in all steps after {since}"
    return None


def _ends_non_finite(values: Sequence[float], count: int) -> bool:
    return len(values) >= count and not any(map(math.isfinite, values[-count:]))


def _collapsed(run: _Watched) -> str | None:
    """A run that had learnt and lost it: back to where it began, or half-way there and deterministic."""
    if len(run.curve) <= PERSIST:
        return None
    peak_step, peak = max(run.curve[:-PERSIST], key=lambda point: point[1])
    height = min(peak, _best_stretch(run.curve)) - run.seen.low
    if height <= 0 or height < max(_LEARNT * run.seen.width, _CLEAR * (run.error or 0.0)):
        return None
    least = _PERSIST_BLINDLY if run.error is None else PERSIST

    def lost(share: float) -> bool:
        return run.lasting(lambda value: value <= run.seen.low + (1 - share) * height, _SHARE, least)

    deterministic = run.has_no_entropy and lost(_LOST_WITHOUT_ENTROPY)
    if not deterministic and not lost(_LOST):
        return None
    last = run.shown(run.curve[-1][1])
    why = ", with entropy near 0" if deterministic else ""
    return f"collapsed: {run.objective} {last} after a peak of {run.shown(peak)} at step {peak_step}{why}"


def _best_stretch(curve: Sequence[tuple[int, float]]) -> float:
    """The best median of PERSIST evaluations in a row: a peak that no single lucky evaluation makes."""
    values = [value for _, value in curve]
    return max(median(values[i : i + PERSIST]) for i in range(len(values) - PERSIST + 1))


def _at_the_cap(run: _Watched) -> str | None:
    """Nearly all responses are cut off, the score is at the floor, and it was better once or has been so for long."""
    name = "response_length/clip_ratio"
    lately, everything = run.lately(name, _LONG_SHARE), run.signal(name).values
    if not lately or min(lately) < _AT_CAP or not run.nowhere:
        return None
    lower_once = any(value < _BELOW_CAP for value in everything)
    half_over = run.now >= run.state.run.until / 2 and bool(run.lately("group/dead_share", _LONG_SHARE))
    hopeless = half_over and min(run.lately("group/dead_share", _LONG_SHARE)) >= _DEAD
    if not lower_once and not hopeless:
        return None
    last = run.shown(run.curve[-1][1])
    return f"at the length cap: {lately[-1]:.0%} of the responses are cut off and {run.objective} stays at {last}"


def _deterministic(run: _Watched) -> str | None:
    """A policy without entropy, whose groups of samples are all alike, at the floor: nothing can change any more."""
    if not run.has_no_entropy or not run.nowhere:
        return None
    dead = run.lately("group/dead_share", _LONG_SHARE)
    flat = min(dead) >= _DEAD if dead else _flat(run.lately("critic/score/mean", _LONG_SHARE), run.seen.width)
    if not flat:
        return None
    entropy, last = run.signal("actor/entropy").last, run.shown(run.curve[-1][1])
    return (
        f"collapsed: entropy {entropy:.2g} and {run.objective} stays at {last}: nothing is left to learn from"
    )


def _flat(values: Sequence[float], width: float) -> bool:
    return bool(values) and max(values) - min(values) <= 0.02 * max(width, 1e-12)
