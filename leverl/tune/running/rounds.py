"""More budget for a study that is over: another round, which learns from all that was found before."""

from collections.abc import Callable

from leverl.errors import ConfigError
from leverl.tune.budget import Account
from leverl.tune.model import CONFIRM
from leverl.tune.plan import Plan
from leverl.tune.store.observe import observe
from leverl.tune.store.outputs import keep_earlier, read_clock
from leverl.tune.store.storage import Store
from leverl.tune.strategy import DONE
from leverl.tune.study import Study


def another_round(before: Plan, plan: Plan, store: Store, parallel: int, tell: Callable[[str], None]) -> None:
    """Begin another round if the study is over by the plan that it had `before`; nothing if it is not.

    Search goes on first. To it, all runs so far count as runs of the search, for it learns from their scores;
    therefore the race and the confirmation of the new round take seeds that no run has used.

    Raises:
        ConfigError: what is left of the budget is too little for a round, or would prolong a confirmation that
            has begun. Nothing was changed.
    """
    history = observe(store.entries, plan.measure, maximize=plan.study.maximize)
    seconds, _ = read_clock(plan.folder)
    step = before.strategy.next(history, 1, Account(before.study.budget, history, seconds, parallel))
    if step.phase != DONE or step.out_of_budget:
        if history.in_phase(CONFIRM) and plan.study.budget.trials != before.study.budget.trials:
            raise ConfigError(
                f"{plan.folder} is confirming its winner: more runs now, with a part of the result known, would make "
                f"its interval false. Let it end first (leverl tune --resume {plan.folder}), then give it more budget."
            )
        return
    left = Account(plan.study.budget, history, seconds, parallel).runs_left
    if left < plan.study.reserved_runs + 1:
        raise ConfigError(
            f"{plan.folder} is over, and its new budget leaves {left:.3g} runs. Another round takes at least "
            f"{plan.study.reserved_runs + 1}: one to search, {plan.study.race_runs} to race and "
            f"{plan.study.confirm_runs} to confirm on fresh seeds{_at_least(plan.study, len(history.runs))}."
        )
    keep_earlier(plan.folder, store.rounds + 1)
    store.begin_round()
    tell(
        f"round {store.rounds + 1}: the search goes on with all {len(history.runs)} runs so far; race and confirmation "
        "will take fresh seeds"
    )


def _at_least(study: Study, done: int) -> str:
    """The smallest budget of runs for another round: what race and confirmation take grows with the budget."""
    if study.budget.trials is None:
        return ""
    trials = done + 1
    while trials - done <= _with_trials(study, trials).reserved_runs:
        trials += 1
    return f" (budget.trials={trials} or more)"


def _with_trials(study: Study, trials: int) -> Study:
    return study.model_copy(update={"budget": study.budget.model_copy(update={"trials": trials})})
