"""What configurations cost and bring: seconds of a run, steps to most of the gain, KL, and score."""

from collections.abc import Sequence
from dataclasses import replace

from leverl.record.run_record import Outcome
from leverl.tune.analysis.result import Standing, TradeOff
from leverl.tune.model import History, RunState
from leverl.tune.statistics import mean_or_none


def trade_offs(history: History, standings: Sequence[Standing]) -> tuple[TradeOff, ...]:
    """In the order of `standings`; the Pareto front of seconds against posterior mean is marked."""
    found = [_trade_off(history, standing) for standing in standings]
    sign = 1.0 if history.maximize else -1.0
    return tuple(replace(one, best_buy=_on_front(one, found, sign)) for one in found)


def _trade_off(history: History, standing: Standing) -> TradeOff:
    runs = history.of(standing.config_id)
    scored = [state for state in runs if state.scored]
    gains = [float(state.steps_to_90) for state in scored if state.steps_to_90 is not None]
    kls = [state.kl for state in scored if state.kl is not None]
    return TradeOff(
        config_id=standing.config_id,
        score=standing.mean,
        sd=standing.sd,
        seconds=_mean([_whole(state, state.cost.seconds) for state in runs]),
        gpu_seconds=_mean([_whole(state, state.cost.gpu_seconds) for state in runs]),
        steps_to_90=mean_or_none(gains),
        kl=mean_or_none(kls),
    )


def _whole(state: RunState, spent: float) -> float | None:
    """The cost at full length: of a run that was stopped early at its own pace; None for one that failed."""
    if state.outcome not in (Outcome.FINISHED, Outcome.STOPPED) or spent <= 0 or state.progress <= 0:
        return None
    return spent / state.progress


def _mean(values: Sequence[float | None]) -> float | None:
    return mean_or_none([value for value in values if value is not None])


def _on_front(one: TradeOff, others: Sequence[TradeOff], sign: float) -> bool:
    """Whether no other is at least as good and as cheap, and better in one of the two."""
    if one.seconds is None:
        return False
    for other in others:
        if other.seconds is None or other is one:
            continue
        as_good = sign * other.score >= sign * one.score and other.seconds <= one.seconds
        if as_good and (other.score != one.score or other.seconds < one.seconds):
            return False
    return True
