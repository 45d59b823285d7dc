"""A study's numbers for its report."""

from leverl.tune.analysis.course import course
from leverl.tune.analysis.result import Analysis, Bound
from leverl.tune.analysis.standings import agreement, standings
from leverl.tune.analysis.surface import model_of
from leverl.tune.analysis.trade_off import trade_offs
from leverl.tune.bounds import allowed
from leverl.tune.evidence.belief import MODEL_FROM, search_knowledge
from leverl.tune.evidence.recommendation import confirmed, recommend
from leverl.tune.model import History
from leverl.tune.plan import Plan
from leverl.tune.space.space import Space
from leverl.tune.statistics import mean_or_none


def analyse_study(plan: Plan, history: History) -> Analysis | None:
    """The analysis of a study as its file has it."""
    return analyse(plan.space, history, epsilon=plan.study.race.epsilon)


def analyse(space: Space, history: History, *, epsilon: float | None = None) -> Analysis | None:
    """All numbers of a report, from the history alone; seconds of work. None while no run has a score.

    Args:
        epsilon: differences that do not matter, as in `recommend`.
    """
    keeps = allowed(space.metric_constraints)
    knowledge = search_knowledge(space, history)
    best = recommend(space, history, allowed=keeps, epsilon=epsilon)
    found = standings(space, history, allowed=keeps)
    if knowledge is None or not found:
        return None
    leader = confirmed(history) or (best.config_id if best is not None else found[0].config_id)
    enough = len(knowledge.belief.ids) >= MODEL_FROM
    model = model_of(space, history, leader) if enough else None
    return Analysis(
        leader=leader,
        standings=found,
        course=course(space, history, allowed=keeps),
        trade_offs=trade_offs(history, found),
        agreement=agreement(history),
        bounds=_bounds(space, history, leader),
        left_out_levers=space.left_out,
        model=model,
        without_model="" if model is not None else _why_no_model(len(knowledge.belief.ids)),
    )


def _bounds(space: Space, history: History, config_id: str) -> tuple[Bound, ...]:
    found = []
    for constraint in space.metric_constraints:
        runs = [state.bounded for state in history.of(config_id) if state.scored]
        values = [run[constraint.metric] for run in runs if constraint.metric in run]
        value = mean_or_none(values)
        found.append(Bound(constraint.text, value, value is not None and constraint.holds(value)))
    return tuple(found)


def _why_no_model(known: int) -> str:
    if known < MODEL_FROM:
        have = (
            f"only {known} configuration{'s' if known != 1 else ''} {'have' if known != 1 else 'has'} a value"
        )
        return f"The model needs {MODEL_FROM} configurations with a score or a prediction; {have} so far."
    return "The configurations with a score lie outside the space, so there is nothing to fit the model to."
