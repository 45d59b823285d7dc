"""How a study ended: winner, comparison with the base, and one sentence for people."""

from dataclasses import dataclass

from leverl.errors import TrainingFailed
from leverl.record.run_record import Score
from leverl.tune.evidence.belief import search_knowledge, spread_of_differences
from leverl.tune.evidence.posterior import probability_positive
from leverl.tune.evidence.recommendation import Allowed, confirmed, contest, recommend
from leverl.tune.model import BASE, CONFIRM, Comparison, History, Recommendation, RunState
from leverl.tune.ranking import failed, standing
from leverl.tune.space.space import Space
from leverl.tune.statistics import KNOWN_WEIGHT, Spread, interval_format, mean, paired_t


@dataclass(frozen=True)
class Conclusion:
    """What `Winner` says of configurations; `config_id` is the base where nothing was shown to beat it."""

    config_id: str
    comparison: Comparison | None
    verdict: str


@dataclass(frozen=True)
class _Case:
    """What a verdict rests on."""

    space: Space
    history: History
    name: str  # the configuration that was confirmed, or would have been
    best: Recommendation | None
    comparison: Comparison | None
    model: bool


def conclude(
    space: Space,
    history: History,
    *,
    cut_short: str = "",
    allowed: Allowed | None = None,
    epsilon: float | None = None,
    model: bool = True,
) -> Conclusion:
    """The end of a study. `cut_short` is the limit that ended it before confirmation was over, if one did.

    `allowed`, `epsilon` and `model` are those of `recommend`.

    Raises:
        TrainingFailed: no run has a score.
    """
    known = search_knowledge(space, history, model=False)
    if known is None:
        raise TrainingFailed(f"no run has a score. {_first_trouble(history)}")
    best = recommend(space, history, allowed=allowed, epsilon=epsilon, model=model)
    name = confirmed(history) or (best.config_id if best else None)
    if name is None:
        return Conclusion(
            BASE, None, "No configuration with a score keeps the study's limits: keep the base."
        )
    if name == BASE:
        if len(known.belief.ids) == 1:
            text = "nothing but the base has a score: keep it."
        else:
            text = f"no gain shown over the base, which leads ({_belief(best)}): keep it."
        ended = f"Ended by {cut_short}: {text}" if cut_short else text[0].upper() + text[1:]
        return Conclusion(BASE, None, ended)
    case = _Case(space, history, name, best, compare(history, name), model)
    if cut_short:
        return Conclusion(name, case.comparison, _unfinished(case, cut_short))
    if case.comparison is None:
        return _without_pairs(case)
    return _proven(case, case.comparison)


def compare(history: History, config_id: str, level: float = 0.95) -> Comparison | None:
    """Leader against base over the confirmation seeds on which both have a score; None without such a seed.

    A leader that failed on a confirmation seed has no gain shown, however well it did on the others.
    """
    ours, base = _scored(history, config_id), _scored(history, BASE)
    seeds = tuple(seed for seed in ours if seed in base)
    if not seeds:
        return None
    winner, other = ([runs[seed].mean for seed in seeds] for runs in (ours, base))
    sign = 1.0 if history.maximize else -1.0
    known = _spread(history, config_id, seeds)
    found = paired_t([sign * x for x in winner], [sign * x for x in other], known, level)
    stable = not any(failed(state) for state in history.of(config_id, CONFIRM))
    return Comparison(
        seeds=seeds,
        winner=tuple(winner),
        base=tuple(other),
        difference=found.difference,
        interval=found.interval,
        gain=stable and found.interval is not None and found.interval[0] > 0,
        config_id=config_id,
    )


def _scored(history: History, config_id: str) -> dict[int, Score]:
    return {
        state.run.seed: state.score
        for state in history.of(config_id, CONFIRM)
        if state.scored and state.score is not None
    }


def _spread(history: History, config_id: str, seeds: tuple[int, ...]) -> Spread | None:
    """What earlier replicates, or else the evaluations' own errors, say of the variance of paired differences."""
    measured = spread_of_differences(history)
    if measured is not None and measured.variance > 0:
        return measured
    pairs = [(_scored(history, config_id)[seed], _scored(history, BASE)[seed]) for seed in seeds]
    errors = [score.standard_error for pair in pairs for score in pair]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return None
    return Spread(2 * mean([error**2 for error in known]), KNOWN_WEIGHT)


def _proven(case: _Case, comparison: Comparison) -> Conclusion:
    """Confirmation is over."""
    number = interval_format(comparison.interval)
    proof = f"{comparison.difference:+{number}}, {_interval(comparison)}, {_seeds(len(comparison.seeds))}"
    if comparison.gain:
        better = f"{mean(comparison.winner):{number}} against {mean(comparison.base):{number}} of the base"
        return Conclusion(case.name, comparison, f"Use {case.name}: {better} ({proof}){_choice(case)}.")
    unstable = _failures(case.history, case.name)
    text = f"No gain shown over the base ({case.name}: {proof}{unstable}): keep the base."
    return Conclusion(BASE, comparison, text)


def _choice(case: _Case) -> str:
    """That others could not be told apart from the winner, and why it was taken."""
    best = case.best
    if best is None or best.config_id != case.name or not best.indistinguishable:
        return ""
    return f"; {best.reason}"


def _without_pairs(case: _Case) -> Conclusion:
    """Confirmation is over but no seed has a score of both."""
    history, name = case.history, case.name
    ours, base = standing(history, name, CONFIRM), standing(history, BASE, CONFIRM)
    dead = [state for state in history.of(BASE, CONFIRM) if failed(state)]
    if ours is not None and base is None and dead:
        ends = ", ".join(sorted({str(state.outcome) for state in dead}))
        error = f" ± {ours.standard_error:.2g}" if ours.standard_error is not None else ""
        text = f"Use {name} ({ours.mean:.3g}{error}, {_seeds(ours.seeds)}): the base has no score on these ({ends})."
        return Conclusion(name, None, text)
    why = _failures(history, name) or ", no pair of scores on fresh seeds"
    return Conclusion(BASE, None, f"No gain shown over the base ({name}{why}): keep the base.")


def _unfinished(case: _Case, cut_short: str) -> str:
    """The best so far as far as search and race tell, with how sure that is."""
    text = f"Ended by {cut_short} before confirmation was over: {case.name} leads"
    best = case.best
    if best is not None and best.config_id == case.name:
        text += f" ({_belief(best)}{_against_base(case)}){_choice(case)}"
    if case.comparison is not None:
        text += f"; so far {case.comparison.difference:+.3g} on {_seeds(len(case.comparison.seeds))}"
    return f"{text}. A gain over the base is not shown."


def _against_base(case: _Case) -> str:
    """How likely the leader is better than the base, by search and race."""
    knowledge = search_knowledge(case.space, case.history, model=case.model)
    if knowledge is None or BASE not in knowledge.belief.ids:
        return ", the base has no score"
    belief = contest(case.space, case.history, (case.name, BASE), model=case.model).belief
    chance = probability_positive(*belief.difference(0, 1))
    base = knowledge.sign * float(belief.mean[1])
    return f", better than the base at {base:.3g} with P {chance:.2g}"


def _belief(best: Recommendation | None) -> str:
    if best is None:
        return "no other score counts"
    return f"{best.mean:.3g} ± {best.sd:.2g}, P(best) {best.probability_best:.2g}"


def _failures(history: History, config_id: str) -> str:
    bad = [state for state in history.of(config_id, CONFIRM) if failed(state)]
    if not bad:
        return ""
    ends = ", ".join(sorted({str(state.outcome) for state in bad}))
    return f", failed on {len(bad)} of {len(history.of(config_id, CONFIRM))} fresh seeds ({ends})"


def _interval(comparison: Comparison) -> str:
    if comparison.interval is not None:
        low, high = comparison.interval
        number = interval_format(comparison.interval)
        return f"95 % interval {low:+{number}} … {high:+{number}}"
    return "no interval from one pair" if len(comparison.seeds) == 1 else "no interval: the pairs do not vary"


def _seeds(count: int) -> str:
    return f"{count} fresh seed{'s' if count != 1 else ''}"


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
