"""What was decided on each run, in a file beside its configuration: enough to make the database anew.

`launch/ID/decision.json` follows the database at each change: when the run is decided, when it gets another
process, when it is over. What happened inside the run is in the run's own folder.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leverl.record.layout import write_json
from leverl.record.run_record import Outcome
from leverl.tune.model import Run

if TYPE_CHECKING:
    from leverl.tune.store.storage import Entry

LAUNCH: Final = "launch"

_FILE: Final = "decision.json"


@dataclass(frozen=True)
class Decided:
    """A run as its decision file knows it. `order` counts the runs of the study from 0."""

    order: int
    run: Run
    token: str
    attempts: int = 1
    continued: bool = False
    outcome: Outcome | None = None
    message: str = ""


def write_decision(study: Path, entry: "Entry", order: int) -> None:
    """Write down in the study's folder what the database has just been told of a run."""
    run = entry.run
    content = Decided(order, run, entry.token, entry.attempts, entry.continued, entry.outcome, entry.message)
    parent = None if run.parent is None else str(run.parent)
    described = {**asdict(content), "run": {**asdict(run), "params": dict(run.params), "parent": parent}}
    write_json(study / LAUNCH / run.id / _FILE, described)


def read_decisions(study: Path) -> tuple[Decided, ...]:
    """All runs of which there is a decision file, in order of start."""
    found = [_read(path) for path in sorted((study / LAUNCH).glob(f"*/{_FILE}"))]
    return tuple(sorted((decided for decided in found if decided is not None), key=lambda d: d.order))


def _read(path: Path) -> Decided | None:
    """None for a file that is not whole: nothing is known of its run then."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        run = content.pop("run")
        parent = run.pop("parent")
        outcome = content.pop("outcome")
        return Decided(
            run=Run(**run, parent=None if parent is None else Path(parent)),
            outcome=None if outcome is None else Outcome(outcome),
            **content,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
