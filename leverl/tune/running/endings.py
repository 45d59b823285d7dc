"""How a run ended, in words for people; and what an earlier attempt left, put out of the way."""

import signal
from pathlib import Path

from leverl.record.layout import RunFolder
from leverl.record.process import Exit
from leverl.record.run_record import Outcome, load_record
from leverl.tune.model import RunState


def move_aside(folder: Path) -> None:
    """Keep what an earlier attempt left, out of the way of the new one."""
    if not RunFolder(folder).exists():
        return
    attic = folder.parent / ".earlier"
    attic.mkdir(exist_ok=True)
    number = 1
    while (attic / f"{folder.name}-{number}").exists():
        number += 1
    folder.rename(attic / f"{folder.name}-{number}")


def describe(exit: Exit) -> str:
    """How a process ended."""
    if exit.signal is not None:
        return f"killed by {signal.Signals(exit.signal).name}"
    return "its process vanished" if exit.code is None else f"ended with exit code {exit.code}"


def message_of(folder: Path, outcome: Outcome, exit: Exit) -> str:
    """Why a run has no score; empty for one that finished."""
    if outcome in (Outcome.FINISHED, Outcome.STOPPED):
        return ""
    record = load_record(RunFolder(folder).record)
    if record is not None and record.message:
        return record.message
    return " ".join(part for part in (f"{describe(exit)}.", _last_line(RunFolder(folder).log)) if part)


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-50:]
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def tell(state: RunState, objective: str) -> str:
    """One line on a run that is over."""
    run, learnt = state.run, "; learnt from, never scored"
    if state.score is not None:
        return f"{run.id} {state.outcome}: {objective} {state.score.mean:.3g}"
    if state.outcome is Outcome.FINISHED:
        return f"! {run.id} finished without {objective}"
    if state.outcome is Outcome.STOPPED:
        return f"! {run.config_id} {state.message}"
    note = "" if state.outcome is Outcome.LOST else learnt
    return f"! {run.id} {str(state.outcome).replace('_', ' ')}: {state.message}{note}"
