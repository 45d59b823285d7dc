"""At start-up: what the folder of a run says that the database believes to be running."""

from enum import Enum, auto

from leverl.executors.local import HANDLE_FILE
from leverl.record.layout import RunFolder
from leverl.record.run_record import Outcome, load_record
from leverl.tune.store.storage import Entry


class Found(Enum):
    """A run without a living process."""

    NOT_STARTED = auto()  # decided, but the tuner died before a process existed
    INTERRUPTED = auto()  # stopped at a checkpoint
    OVER = auto()  # ended while nobody watched
    LOST = auto()  # vanished without a word


def look_at(entry: Entry) -> Found:
    """What became of a run, judging by its folder; its token tells it from an earlier attempt."""
    record = load_record(RunFolder(entry.folder).record)
    if record is None or record.token != entry.token:
        started = (entry.folder / HANDLE_FILE).is_file() and _same_token(entry)
        return Found.LOST if started else Found.NOT_STARTED
    if record.outcome is None:
        return Found.LOST
    return Found.INTERRUPTED if record.outcome is Outcome.INTERRUPTED else Found.OVER


def _same_token(entry: Entry) -> bool:
    return entry.token in (entry.folder / HANDLE_FILE).read_text(encoding="utf-8", errors="replace")
