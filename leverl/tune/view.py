"""A study as views and reports see it, from its folder alone."""

from dataclasses import replace
from pathlib import Path

from leverl.config import tree
from leverl.errors import ConfigError
from leverl.tune.model import History, ParamValue, StudyView, Winner
from leverl.tune.outputs import STUDY_FILE, read_clock, read_winner
from leverl.tune.plan import Plan, prepare
from leverl.tune.progress import read_state
from leverl.tune.storage import Store, database_of
from leverl.tune.strategy import DONE
from leverl.tune.study import Study, load_study
from leverl.vocabulary import catalog


def read_study(folder: str | Path) -> StudyView:
    """The study in `folder`, also while a tuner works on it.

    Raises:
        ConfigError: the folder holds no study.
    """
    folder = Path(folder)
    plan = prepare(load_stored(folder), folder)
    database_of(folder)
    with Store(folder, plan.study.name, maximize=plan.study.maximize) as store:
        states = tuple(read_state(entry, plan.measure) for entry in store.entries)
    seconds, phase = read_clock(folder)
    winner = read_winner(folder)
    view = build_view(plan, History(states, plan.study.maximize), phase=phase, seconds=seconds)
    return replace(view, winner=winner, phase=DONE if winner is not None else phase)


def load_stored(folder: Path) -> Study:
    """The study as it was resolved when it started.

    Raises:
        ConfigError: the folder holds no study.
    """
    path = folder / STUDY_FILE
    if not path.is_file():
        raise ConfigError(f"{folder} holds no study (no {STUDY_FILE}).")
    return load_study(path)


def build_view(
    plan: Plan, history: History, *, phase: str, seconds: float, winner: Winner | None = None
) -> StudyView:
    """The view of a study with this history."""
    study = plan.study
    return StudyView(
        name=study.name,
        folder=plan.folder,
        target=study.target.leverl,
        base_settings=_settings(plan),
        strategy=study.strategy,
        sampler=plan.strategy.sampler.name,
        objective=study.objective.name,
        axes=plan.space.view(),
        history=history,
        planned=plan.strategy.planned(history),
        steps=plan.steps,
        phase=phase,
        budget_seconds=plan.budget_seconds,
        seconds=seconds,
        winner=winner,
    )


def _settings(plan: Plan) -> dict[str, ParamValue]:
    """What the study sets on top of its target, by lever."""
    levers = [catalog.by_name(word) for word in plan.study.target.set if catalog.is_lever(word)]
    return {lever.name: tree.get(plan.backend.base, lever.path) for lever in levers}
