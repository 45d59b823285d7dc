"""Which checkpoints a study keeps: those of configurations that are still in question."""

import shutil
from collections.abc import Collection
from typing import Final

from leverl.record.layout import RunFolder
from leverl.record.run_record import Outcome
from leverl.tune.model import BASE, CONFIRM, RACE, SEARCH, History, RunState
from leverl.tune.ranking import ranked

STOPPED_KEPT: Final = 6
"""Runs stopped early whose checkpoint is kept, the most promising first, so that they can go on."""


def prune(
    history: History, finalists: int, winner: str | None = None, *, spared: Collection[str] = ()
) -> None:
    """Delete the checkpoints of runs that are over and whose configuration is no longer in question.

    Kept: during the search those of the base, of the best `finalists` and of promising stopped runs; from the
    race on those of its contestants; with `winner` (the study is over) those of the winner's latest phase;
    and `spared` runs, such as those of an earlier round's winner.
    """
    keep = _latest_runs(history, winner) if winner is not None else _in_question(history, finalists)
    for state in history.runs:
        if state.outcome is not None and state.run.id not in keep and state.run.id not in spared:
            shutil.rmtree(RunFolder(state.folder).checkpoints, ignore_errors=True)


def _in_question(history: History, finalists: int) -> set[str]:
    for phase in (CONFIRM, RACE):
        names = {state.run.config_id for state in history.in_phase(phase)}
        if names:
            return {state.run.id for state in history.runs if state.run.config_id in names | {BASE}}
    best = {BASE, *(found.config_id for found in ranked(history)[:finalists])}
    kept = {state.run.id for state in history.runs if state.run.config_id in best}
    return kept | set(_promising(history))


def _promising(history: History) -> list[str]:
    sign = -1.0 if history.maximize else 1.0
    stopped = [state for state in history.runs if state.outcome is Outcome.STOPPED]
    order = sorted((sign * _expected(state), state.run.id) for state in stopped if len(state.evaluations))
    return [run_id for _, run_id in order[:STOPPED_KEPT]]


def _expected(state: RunState) -> float:
    """What a stopped run would have scored; where its curve was too short to tell, what it had reached."""
    return state.prediction.mean if state.prediction is not None else state.evaluations.values[-1]


def _latest_runs(history: History, config_id: str) -> set[str]:
    states = [state for state in history.of(config_id) if state.scored]
    phase = states[-1].run.phase if states else SEARCH
    return {state.run.id for state in states if state.run.phase == phase}
