"""A study as views and reports see it, from its folder alone."""

from dataclasses import replace
from pathlib import Path

from leverl.config import tree
from leverl.errors import ConfigError
from leverl.tune.model import History, ParamValue, StudyView, Winner
from leverl.tune.plan import Plan, prepare
from leverl.tune.store.observe import observe
from leverl.tune.store.outputs import STUDY_FILE, read_clock, read_winner
from leverl.tune.store.storage import Store, database_of
from leverl.tune.strategy import DONE
from leverl.tune.study import Study
from leverl.tune.study_file import load_study
from leverl.vocabulary import catalog


def read_study(folder: str | Path) -> StudyView:
    """The study in `folder`, also while a tuner works on it.

    Raises:
        ConfigError: the folder holds no study.
    """
    folder = Path(folder)
    plan = read_plan(folder)
    database_of(folder)
    with Store(folder, plan.study.name, maximize=plan.study.maximize) as store:
        history = observe(store.entries, plan.measure, maximize=plan.study.maximize)
    seconds, phase = read_clock(folder)
    winner = read_winner(folder)
    view = build_view(plan, history, phase=phase, seconds=seconds)
    return replace(view, winner=winner, phase=DONE if winner is not None else phase)


def read_plan(folder: str | Path) -> Plan:
    """The plan of the study in `folder`: its space, for what a view does not carry.

    Raises:
        ConfigError: the folder holds no study.
    """
    folder = Path(folder)
    return prepare(load_stored(folder), folder)


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
        recommendation=plan.strategy.recommend(history),
    )


def _settings(plan: Plan) -> dict[str, ParamValue]:
    """What the study sets on top of its target, by lever."""
    levers = [catalog.by_name(word) for word in plan.study.target.set if catalog.is_lever(word)]
    return {lever.name: tree.get(plan.backend.base, lever.path) for lever in levers}
