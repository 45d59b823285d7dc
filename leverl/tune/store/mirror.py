"""A second Optuna study in the database, derived for dashboards: one trial per configuration instead of per run."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leverl.record.series import Series
from leverl.tune.model import History, RunState
from leverl.tune.optuna_log import quiet_optuna
from leverl.tune.ranking import failed
from leverl.tune.space.space import Space
from leverl.tune.statistics import mean, mean_or_none, standard_error

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

SUFFIX: Final = " (configurations)"

_FAILED: Final = "runs failed"


def mirror(database: Path, name: str, space: Space, history: History) -> None:
    """Make the mirror of the study `name` in `database` anew.

    The value of a trial is the mean score of the configuration's runs, its intermediate values their mean curve.
    Scores, seeds, phases and outcomes of the runs are in its attributes. A configuration that failed violates a
    constraint, one without a score failed or is running.
    """
    import optuna

    storage: Any = optuna.storages.RDBStorage(
        f"sqlite:///{database.resolve()}", engine_kwargs={"connect_args": {"timeout": 60}}
    )
    with quiet_optuna():
        try:
            if name + SUFFIX in {study.study_name for study in storage.get_all_studies()}:
                optuna.delete_study(study_name=name + SUFFIX, storage=storage)
            study = optuna.create_study(
                storage=storage,
                study_name=name + SUFFIX,
                direction="maximize" if history.maximize else "minimize",
            )
            study.add_trials(list(_trials(space, history)))
        finally:
            storage.remove_session()
            storage.engine.dispose()


def _trials(space: Space, history: History) -> Iterator["FrozenTrial"]:
    from optuna.trial import TrialState, create_trial

    distributions = space.distributions()
    for config_id in history.config_ids:
        states = history.of(config_id)
        scores = [state.score.mean for state in states if state.scored and state.score is not None]
        params = space.encode(history.params(config_id) or space.base_params())
        running = any(state.outcome is None for state in states)
        kind = TrialState.COMPLETE if scores else TrialState.RUNNING if running else TrialState.FAIL
        trial = create_trial(
            state=kind,
            value=mean_or_none(scores),
            params=params,
            distributions={name: distributions[name] for name in params},
            intermediate_values=_mean_curve(states),
            user_attrs=_attributes(config_id, states, scores),
        )
        if scores:
            trial.set_constraint(_FAILED, float(sum(map(failed, states))))
        yield trial


def _attributes(config_id: str, states: tuple[RunState, ...], scores: list[float]) -> dict[str, Any]:
    return {
        "config_id": config_id,
        "seeds": len(scores),
        "standard_error": standard_error(scores),
        "runs": [
            {
                "id": state.run.id,
                "seed": state.run.seed,
                "phase": state.run.phase,
                "outcome": None if state.outcome is None else str(state.outcome),
                "score": None if state.score is None else state.score.mean,
            }
            for state in states
        ],
    }


def _mean_curve(states: tuple[RunState, ...]) -> dict[int, float]:
    """Mean over the runs at every step that all of them measured."""
    curves: list[Series] = [state.evaluations for state in states if state.scored and len(state.evaluations)]
    if not curves:
        return {}
    by_step = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    shared = set(by_step[0]).intersection(*by_step[1:])
    means = {step: mean([curve[step] for curve in by_step]) for step in sorted(shared)}
    return {step: value for step, value in means.items() if math.isfinite(value)}
