"""A study played in memory: leverl's strategy decides, and `outcome` says at once what a run would have given."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tasks.task import Result

from leverl.record.run_record import Outcome, Score
from leverl.record.series import Series
from leverl.tune.budget import Account
from leverl.tune.model import CONFIRM, Continue, Cost, History, Run, RunState, Start
from leverl.tune.store.observe import with_predictions
from leverl.tune.strategy import DONE, Strategy

States = dict[str, RunState]  # by the run's id, in order of start


def play(
    strategy: Strategy, outcome: Callable[[Run], Result], *, parallel: int = 1, proof: bool = True
) -> History:
    """All runs of a study, to the end of its budget; without `proof`, to where the confirmation would begin.

    Runs go on evaluation by evaluation, side by side, and the strategy may stop those that have a curve after each
    one; a run without a curve ends as it begins. The budget is the study's own. A run that failed has no score.
    """
    states: States = {}
    results: dict[str, Result] = {}
    while True:
        running = [state.run.id for state in states.values() if state.outcome is None]
        if len(running) < parallel:
            history = _history(strategy, states)
            seconds = sum(state.cost.seconds for state in states.values()) / parallel
            account = Account(strategy.study.budget, history, seconds, parallel)
            step = strategy.next(history, parallel - len(running), account)
            if step.phase == DONE or (step.phase == CONFIRM and not proof):
                return history
            begun = [_begin(states, results, decision, outcome) for decision in step.decisions]
            running += begun
            if not running:
                raise RuntimeError(f"the strategy neither starts a run of the {step.phase} nor ends it.")
        for name in running:
            states[name] = _further(states[name], results[name], strategy.rules.last_k)
        for stop in strategy.stops(_history(strategy, states)):
            states[stop.run_id] = replace(states[stop.run_id], outcome=Outcome.STOPPED, message=stop.reason)


def _begin(
    states: States,
    results: dict[str, Result],
    decision: Start | Continue,
    outcome: Callable[[Run], Result],
) -> str:
    if isinstance(decision, Continue):
        states[decision.run_id] = replace(states[decision.run_id], outcome=None, prediction=None, message="")
        return decision.run_id
    run = decision.run
    states[run.id] = RunState(run, Path(run.id))
    results[run.id] = outcome(run)
    return run.id


def _further(state: RunState, result: Result, last_k: int) -> RunState:
    """The run after its next evaluation."""
    until, count = state.run.until, len(result.curve)
    if result.score is None:
        return replace(state, outcome=Outcome.CRASHED, cost=Cost(until, seconds=result.seconds))
    done = len(state.evaluations) + 1
    share = done / count if count else 1.0
    steps = tuple(round(until * place / count) for place in range(1, done + 1)) if count else ()
    curve = Series(steps, result.curve[:done])
    errors = Series(steps, (result.error,) * len(steps)) if result.error else Series((), ())
    cost = Cost(round(share * until), seconds=share * result.seconds)
    state = replace(state, evaluations=curve, evaluation_errors=errors, cost=cost)
    if share < 1:
        return state
    score = Score(result.score, result.error or None, min(last_k, count) or 1)
    return replace(state, outcome=Outcome.FINISHED, score=score)


def _history(strategy: Strategy, states: States) -> History:
    """The runs as a study sees them."""
    history = History(tuple(states.values()), strategy.study.maximize)
    return with_predictions(history, strategy.rules.last_k)
