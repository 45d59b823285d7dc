"""How a study ended: winner, comparison with the base, and one sentence for people."""

from dataclasses import dataclass

from leverl.errors import TrainingFailed
from leverl.tune.model import CONFIRM, SEARCH, SELECT, Comparison, History, RunState
from leverl.tune.phases.search import BASE
from leverl.tune.phases.select import chosen
from leverl.tune.ranking import Standing, failed, standing
from leverl.tune.statistics import paired_t


@dataclass(frozen=True)
class Conclusion:
    """What `Winner` says of configurations; `config_id` is the base where nothing was shown to beat it."""

    config_id: str
    comparison: Comparison | None
    verdict: str


def conclude(history: History, *, finished: bool) -> Conclusion:
    """The end of a study. `finished` is False when the budget ended it before confirmation was over.

    Raises:
        TrainingFailed: no run has a score.
    """
    best = chosen(history)
    if best is None:
        raise TrainingFailed(f"no run has a score. {_first_trouble(history)}")
    if best.config_id == BASE:
        return Conclusion(BASE, None, f"No gain shown over the base, which leads ({_score(best)}): keep it.")
    comparison = compare(history, best.config_id)
    if not finished:
        return Conclusion(best.config_id, comparison, _unfinished(history, best, comparison))
    if comparison is None:
        return _without_pairs(history, best)
    name, difference = best.config_id, f"{comparison.difference:+.3g}"
    proof = f"{difference}, {_interval(comparison)}, {_seeds(len(comparison.seeds))}"
    if comparison.gain:
        better = f"{_mean(comparison.winner):.3g} against {_mean(comparison.base):.3g} of the base"
        return Conclusion(name, comparison, f"Use {name}: {better} ({proof}).")
    unstable = _failures(history, name)
    return Conclusion(
        BASE, comparison, f"No gain shown over the base ({name}: {proof}{unstable}): keep the base."
    )


def compare(history: History, config_id: str) -> Comparison | None:
    """Leader against base over the confirmation seeds on which both have a score; None without such a seed.

    A leader that failed on a confirmation seed has no gain shown, however well it did on the others.
    """
    pairs = [
        (seed, one, two)
        for seed, one in _scores(history, config_id).items()
        if (two := _scores(history, BASE).get(seed)) is not None
    ]
    if not pairs:
        return None
    seeds, ours, base = zip(*pairs, strict=True)
    sign = 1.0 if history.maximize else -1.0
    found = paired_t([sign * value for value in ours], [sign * value for value in base])
    stable = not any(failed(state) for state in history.of(config_id, CONFIRM))
    return Comparison(
        seeds=seeds,
        winner=ours,
        base=base,
        difference=found.difference,
        interval=found.interval,
        gain=stable and found.interval is not None and found.interval[0] > 0,
        config_id=config_id,
    )


def _scores(history: History, config_id: str) -> dict[int, float]:
    return {
        state.run.seed: state.score.mean
        for state in history.of(config_id, CONFIRM)
        if state.scored and state.score is not None
    }


def _without_pairs(history: History, best: Standing) -> Conclusion:
    """Confirmation is over but no seed has a score of both."""
    ours, base = standing(history, best.config_id, CONFIRM), standing(history, BASE, CONFIRM)
    if ours is not None and base is None and any(failed(state) for state in history.of(BASE, CONFIRM)):
        ends = ", ".join(sorted({str(s.outcome) for s in history.of(BASE, CONFIRM) if failed(s)}))
        return Conclusion(
            best.config_id,
            None,
            f"Use {best.config_id} ({_score(ours)}, all fresh): the base has no score on these ({ends}).",
        )
    why = _failures(history, best.config_id) or ", no pair of scores on fresh seeds"
    return Conclusion(BASE, None, f"No gain shown over the base ({best.config_id}{why}): keep the base.")


def _unfinished(history: History, best: Standing, comparison: Comparison | None) -> str:
    where = "selection" if standing(history, best.config_id, SELECT) else SEARCH
    text = f"Budget used up before confirmation: {best.config_id} leads the {where} ({_score(best)})"
    base = standing(history, BASE, SELECT if where == "selection" else SEARCH)
    text += f" before the base ({_score(base)})" if base else ""
    if comparison is not None:
        text += f"; so far {comparison.difference:+.3g} on {_seeds(len(comparison.seeds))}"
    return f"{text}. A gain over the base is not shown."


def _failures(history: History, config_id: str) -> str:
    bad = [state for state in history.of(config_id, CONFIRM) if failed(state)]
    if not bad:
        return ""
    ends = ", ".join(sorted({str(state.outcome) for state in bad}))
    return f", failed on {len(bad)} of {len(history.of(config_id, CONFIRM))} fresh seeds ({ends})"


def _interval(comparison: Comparison) -> str:
    if comparison.interval is None:
        return "no interval from one pair"
    low, high = comparison.interval
    return f"95 % interval {low:+.3g} … {high:+.3g}"


def _score(found: Standing) -> str:
    error = f" ± {found.standard_error:.2g}" if found.standard_error is not None else ""
    return f"{found.mean:.3g}{error}, {found.seeds} seed{'s' if found.seeds != 1 else ''}"


def _seeds(count: int) -> str:
    return f"{count} fresh seed{'s' if count != 1 else ''}"


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)


def _first_trouble(history: History) -> str:
    if not history.runs:
        return "The budget ended before the first one could start."
    troubled: list[RunState] = [state for state in history.runs if state.message]
    if not troubled:
        return "Does the objective's metric exist in the runs?"
    first = troubled[0]
    return (
        f"The first to fail was {first.run.id} ({first.outcome}): {first.message} See {first.folder}/log.txt."
    )
