"""Open a study's database; where it is damaged or has lost runs, make it anew from the folders of the runs."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from leverl.errors import EnvironmentProblem
from leverl.tune.store.decisions import Decided, read_decisions
from leverl.tune.store.progress import read_state
from leverl.tune.store.storage import DATABASE, TRIALS, Entry, Store
from leverl.tune.store.trouble import LOCK_SECONDS, DatabaseDamaged, database_errors

if TYPE_CHECKING:
    from leverl.tune.plan import Plan

_SIDE_FILES: Final = ("-journal", "-wal", "-shm")
"""What SQLite keeps beside a database: a new one must not find that of the old one."""

_WORKSHOP: Final = ".rebuilt"


def open_store(plan: "Plan", tell: Callable[[str], None]) -> Store:
    """The database of the study, whole; `tell` hears if it had to be made anew.

    Raises:
        EnvironmentProblem: it is locked, foreign or not writable; or it has to be made anew, and for some run it
            is not written down what was decided.
    """
    path, decided = plan.folder / DATABASE, read_decisions(plan.folder)
    try:
        wrong = _what_is_wrong(plan, path, decided)
    except DatabaseDamaged as error:
        wrong = str(error).partition(". ")[0]
    if wrong:
        _refuse_unknown_runs(plan.folder, decided, wrong)
        _rebuild(plan, decided)
        kept = _set_aside(path)
        (plan.folder / _WORKSHOP / DATABASE).rename(path)
        shutil.rmtree(plan.folder / _WORKSHOP)
        tell(f"{wrong}: made anew from the folders of {len(decided)} runs{kept}")
    return _open(plan)


def _what_is_wrong(plan: "Plan", path: Path, decided: Sequence[Decided]) -> str:
    """Why the database has to be made anew; empty for one that is whole.

    Raises:
        DatabaseDamaged: it cannot be read.
    """
    if not path.exists():
        return f"{path} was missing" if decided else ""
    with database_errors(path), closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        return f"{path} is damaged ({found})"
    with _open(plan) as store:
        lost = {one.run.id for one in decided} - {entry.run.id for entry in store.entries}
    return f"{path} had lost {len(lost)} of {len(decided)} runs" if lost else ""


def _open(plan: "Plan") -> Store:
    return Store(plan.folder, plan.study.name, maximize=plan.study.maximize)


def _refuse_unknown_runs(folder: Path, decided: Sequence[Decided], wrong: str) -> None:
    known = {one.run.id for one in decided}
    unknown = sorted(
        path.name for path in (folder / TRIALS).glob("*") if path.name[0] != "." and path.name not in known
    )
    if unknown:
        raise EnvironmentProblem(
            f"{wrong}, and it cannot be made anew: what was decided on {len(unknown)} of its runs is not written down "
            f"({unknown[0]}: no launch/{unknown[0]}/decision.json). Put a copy of {DATABASE} from a backup there, or "
            f"start a new study with --name; the results of the runs stay in {folder / TRIALS}."
        )


def _rebuild(plan: "Plan", decided: Sequence[Decided]) -> None:
    """A new database, in a folder of its own until it is whole."""
    workshop = plan.folder / _WORKSHOP
    shutil.rmtree(workshop, ignore_errors=True)
    with Store(workshop, plan.study.name, maximize=plan.study.maximize, draft=True) as store:
        for one in decided:
            run_id = one.run.id
            store.add(one.run, plan.space, one.token, continued=one.continued)
            if one.attempts > 1:
                store.again(run_id, one.token, one.attempts)
            if one.outcome is not None:
                folder = plan.folder / TRIALS / run_id
                state = read_state(
                    Entry(one.run, folder, one.token, outcome=one.outcome, message=one.message), plan.measure
                )
                value = state.score.mean if state.score else None
                store.finish(run_id, one.outcome, value, one.message, state.evaluations)
    with (workshop / DATABASE).open("rb") as file:
        os.fsync(file.fileno())


def _set_aside(path: Path) -> str:
    """Keep a damaged database under another name; says which, for people."""
    if not path.exists():
        return ""
    kept, number = path.with_name(f"{path.name}.damaged"), 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.damaged-{number}")
    path.rename(kept)
    for suffix in _SIDE_FILES:
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + suffix))
    return f"; the old file is kept as {kept.name}"
