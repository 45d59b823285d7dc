"""Colours and shapes: the same thing looks the same in every chart, table and terminal.

Okabe and Ito's palette, which colour-blind readers can tell apart; no meaning rests on colour alone.
"""

from dataclasses import dataclass
from typing import Final

from leverl.record.run_record import Outcome
from leverl.tune.model import RunState

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
GREY: Final = "#808080"  # legible on white and on black

WINNER: Final = BLUE
BASE: Final = ORANGE
FINALISTS: Final = (GREEN, PURPLE, SKY)
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")
SYMBOLS: Final = ("circle", "square", "diamond", "cross", "star")


@dataclass(frozen=True)
class Mark:
    """How a run's state is shown: a glyph for text, the same shape for charts, a colour and a word."""

    glyph: str
    symbol: str
    color: str
    word: str


RUNNING: Final = Mark("○", "circle-open", GREY, "running")
UNSCORED: Final = Mark("◌", "circle-open", GREY, "ended without a score")

OUTCOMES: Final[dict[Outcome, Mark]] = {
    Outcome.FINISHED: Mark("●", "circle", GREY, "finished"),
    Outcome.STOPPED: Mark("◐", "circle-open-dot", GREY, "stopped"),
    Outcome.OUT_OF_MEMORY: Mark("▲", "triangle-up", RED, "out of memory"),
    Outcome.NON_FINITE: Mark("✕", "x", RED, "non-finite"),
    Outcome.CRASHED: Mark("■", "square", RED, "crashed"),
    Outcome.TIMED_OUT: Mark("◆", "diamond", RED, "timed out"),
    Outcome.INTERRUPTED: Mark("□", "square-open", GREY, "interrupted"),
    Outcome.LOST: Mark("◇", "diamond-open", GREY, "lost"),
}


def mark_of(state: RunState) -> Mark:
    """The mark of a run; one that ended well but has no score is not shown as if it had one."""
    if state.outcome is None:
        return RUNNING
    if state.outcome is Outcome.FINISHED and not state.scored:
        return UNSCORED
    return OUTCOMES[state.outcome]
