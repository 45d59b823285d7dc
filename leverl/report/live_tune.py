"""A study as it goes: leader, base, running runs and events, redrawn in place or as plain lines."""

import math
import os
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TextIO

from leverl.errors import ConfigError
from leverl.record.run_record import Outcome
from leverl.report import numbers
from leverl.report.screen import Screen, drawable
from leverl.report.study_data import Configuration, StudyData
from leverl.report.terminal import study_next
from leverl.tune.ledger import total_of
from leverl.tune.model import BASE, CONFIRM, GRID, RACE, SEARCH, Cost, RunState, StudyObserver, StudyView
from leverl.tune.stopping.rules import StopRules, start_up
from leverl.tune.study import Stopping
from leverl.tune.view import load_stored

if TYPE_CHECKING:
    from rich.text import Text

Progress = Literal["auto", "rich", "plain", "none"]
_NOTHING: Final = 1e-9  # a standard deviation that only keeps logarithms finite
_EVENTS: Final = 5
_RUNNING: Final = 8
_REASONS: Final = 2
_WORDS: Final = {
    SEARCH: "search",
    GRID: "look around the best",
    RACE: "race finalists",
    CONFIRM: "confirm on fresh seeds",
}
_SHORT: Final = {
    Outcome.FINISHED: "done",
    Outcome.STOPPED: "stopped",
    Outcome.OUT_OF_MEMORY: "OOM",
    Outcome.NON_FINITE: "non-finite",
    Outcome.CRASHED: "crashed",
    Outcome.TIMED_OUT: "timed out",
    Outcome.LOST: "lost",
    Outcome.INTERRUPTED: "interrupted",
}


def make_tune_view(progress: Progress, stream: TextIO) -> StudyObserver:
    """The view for `progress`; "auto" redraws on a terminal and writes plain lines elsewhere."""
    if progress == "none":
        return SilentStudy()
    if progress == "rich" or (progress == "auto" and drawable(stream, os.environ)):
        return LiveTune(stream, forced=progress == "rich")
    return PlainTune(stream)


class SilentStudy:
    """Watches nothing."""

    def refreshed(self, view: StudyView) -> None: ...
    def event(self, text: str) -> None: ...
    def ended(self, view: StudyView) -> None: ...


class LiveTune:
    """The study in a dozen lines that rich redraws."""

    def __init__(self, stream: TextIO, *, forced: bool = False) -> None:
        self._view: StudyView | None = None
        self._events: deque[str] = deque(maxlen=_EVENTS)
        self._screen = Screen(stream, self.lines, forced=forced)

    def refreshed(self, view: StudyView) -> None:
        self._view = view
        self._screen.open()

    def event(self, text: str) -> None:
        self._events.append(_one_line(text))

    def ended(self, view: StudyView) -> None:
        self._view = view
        self._screen.close(ending(view))

    def lines(self) -> list["Text"]:
        """The view as it is now."""
        from rich.text import Text

        if self._view is None:
            return []
        words = study_lines(self._view)
        words += [_marked(text) for text in list(self._events) or latest_reasons(self._view)]
        words += [plan(self._view)] if self._view.winner is None else []
        styled = [Text(line, no_wrap=True, overflow="ellipsis") for line in words if line]
        for line in styled:
            line.highlight_regex(r"^(leader|base)\b", "bold")
            line.highlight_regex(r"^!", "bold yellow")
            line.highlight_regex(r"[▁▂▃▄▅▆▇█]+", "cyan")
        return styled


class PlainTune:
    """Events as they come, and a summary line whenever runs started or ended."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = ""

    def refreshed(self, view: StudyView) -> None:
        counts = _counts(view)
        if counts == self._last:
            return
        self._last = counts
        data = StudyData(view)
        leader = data.leader
        known = f" · leader {leader.id} {_score(leader)}{_belief(data, leader)}" if leader else ""
        self._write(head(view) + known)

    def event(self, text: str) -> None:
        self._write(_marked(_one_line(text)))

    def ended(self, view: StudyView) -> None:
        self._write(ending(view))

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # whoever read this has gone (closed pipe); the study goes on


def study_lines(view: StudyView) -> list[str]:
    """Head, leader, base and running runs in words."""
    data = StudyData(view)
    lines = [head(view)]
    leader, base = data.leader, data.base
    if leader is not None and leader is not base:
        lines.append(f"leader {_configuration(data, leader)}")
    if base is not None:
        label = "leader" if leader is base else "base  "
        lines.append(f"{label} {_configuration(data, base)}{'  (base)' if leader is base else ''}")
    if data.indistinguishable and view.recommendation is not None:
        lines.append(f"       {view.recommendation.reason}")
    running = [state for state in view.history.runs if state.outcome is None]
    lines += [f" {running_words(state)}{outlook(view, state)}" for state in running[:_RUNNING]]
    if len(running) > _RUNNING:
        lines.append(f" … and {len(running) - _RUNNING} more")
    return [*lines, cost_line(data)]


def head(view: StudyView) -> str:
    """`lr-kl · bayes · 17/30 runs · 1.9 h of 6 h · 2 running 12 done 1 OOM`."""
    started, planned = len(view.history.runs), sum(view.planned.values())
    runs = f"{started}/{planned} runs" if planned >= started else f"{started} runs"
    spent = numbers.duration(view.seconds)
    if view.budget_seconds is not None:
        spent += f" of {numbers.duration(view.budget_seconds)}"
    return " · ".join(part for part in (view.name, view.strategy, runs, spent, _counts(view)) if part)


def running_words(state: RunState) -> str:
    """`c016 s1 ▁▂▄▅  step 120/200  0.60  ETA 3:10`."""
    cost, last = state.cost, state.evaluations.last
    left = state.run.until - cost.steps
    pace = cost.seconds / cost.steps if cost.steps and cost.seconds else None
    spark = numbers.sparkline(state.evaluations.values, 10)
    score = numbers.short(last) if last is not None else numbers.UNKNOWN
    words = (
        f"{state.run.config_id} s{state.run.seed:<4}{spark:<11}step {cost.steps}/{state.run.until}  {score}"
    )
    return f"{words}  ETA {numbers.clock(left * pace)}" if pace is not None else words


def outlook(view: StudyView, state: RunState) -> str:
    """`  below the start-up median 0.44, may stop at 60`; empty while the run's curve is not behind."""
    stopping = _stopping(view.folder)
    searched = state.run.phase in (SEARCH, GRID) and state.run.config_id != BASE
    reference = start_up(view.history) if searched else ()
    if not reference:
        return ""
    found = StopRules(maximize=view.history.maximize).standing(state, reference)
    if found is None or not found.behind:
        return ""
    worse = "below" if view.history.maximize else "above"
    words = f"  {worse} the start-up median {numbers.short(found.start_up)}"
    if stopping is None or not stopping.curves:
        return words
    earliest = math.ceil(stopping.after * state.run.until)
    return f"{words}, may stop" + (f" at {earliest}" if found.step < earliest else "")


@lru_cache(maxsize=8)
def _stopping(folder: Path) -> Stopping | None:
    """How the study in `folder` stops runs; None where its file is not there yet."""
    try:
        return load_stored(folder).stopping
    except ConfigError:
        return None


def cost_line(data: StudyData) -> str:
    """`cost   1.9 h of runs · 24 min saved by 2 stops · 3 min lost (1 out of memory)`."""
    found = data.balance
    parts = [f"{_amount(found.spent)} of runs"] if found.spent.steps else []
    if found.stopped:
        parts.append(f"{_amount(found.saved)} saved by {numbers.plural(found.stopped, 'stop')}")
    if found.lost_runs:
        causes = ", ".join(f"{count} {cause}" for cause, count in found.lost_runs.items())
        parts.append(f"{_amount(total_of(found.lost.values()))} lost ({causes})")
    return f"cost   {' · '.join(parts)}" if parts else ""


def _amount(cost: Cost) -> str:
    if cost.gpu_seconds:
        return f"{numbers.duration(cost.gpu_seconds)} GPU time"
    return numbers.duration(cost.seconds) if cost.seconds else f"{numbers.amount(cost.steps)} steps"


def latest_reasons(view: StudyView) -> list[str]:
    """Why the last runs ended that did not simply finish, for whoever watches without having seen it."""
    ended = [s for s in view.history.runs if s.outcome not in (None, Outcome.FINISHED) and s.message]
    return [f"! {s.run.id} {_one_line(s.message)}" for s in ended[-_REASONS:]]


def plan(view: StudyView) -> str:
    """`next: search 13 → race finalists 6 → confirm on fresh seeds 6`: what is still to be started."""
    parts = []
    for phase, planned in view.planned.items():
        left = planned - len(view.history.in_phase(phase))
        if left > 0:
            parts.append(f"{_WORDS.get(phase, phase)} {left}")
    return f"next: {' → '.join(parts)}" if parts else ""


def ending(view: StudyView) -> str:
    """The last word: the verdict, or how to go on."""
    if view.winner is not None:
        return f"{view.name}: {view.winner.verdict}"
    if any(state.outcome is None for state in view.history.runs):  # seen by a watcher who leaves
        return f"{view.name}: still at work, {_counts(view)}"
    runs = numbers.plural(len(view.history.runs), "run")
    return f"{view.name}: interrupted after {runs}; go on with: {study_next(view)}"


def _counts(view: StudyView) -> str:
    outcomes = [state.outcome for state in view.history.runs]
    parts = [f"{outcomes.count(None)} running"] if None in outcomes else []
    parts += [f"{n} {word}" for outcome, word in _SHORT.items() if (n := outcomes.count(outcome))]
    return " ".join(parts)


def _configuration(data: StudyData, configuration: Configuration) -> str:
    pairs: Sequence[tuple[str, str]] = [
        (axis.name, numbers.setting(value))
        for axis, value in zip(data.view.axes, configuration.values, strict=True)
        if value is not None
    ]
    settings = "  ".join(f"{name} {value}" for name, value in pairs)
    return f"{configuration.id}  {_score(configuration)}{_belief(data, configuration)}  {settings}"


def _belief(data: StudyData, configuration: Configuration) -> str:
    """`  posterior 0.70 ± 0.02  P(best) 0.64`, of the configuration that is recommended."""
    found = data.view.recommendation
    if found is None or found.config_id != configuration.id:
        return ""
    chance = numbers.probability(found.probability_best)
    sd = found.sd if found.sd > _NOTHING else 0.0
    return f"  posterior {numbers.with_error(found.mean, sd)}  P(best) {chance}"


def _score(configuration: Configuration) -> str:
    count = len(configuration.scores)
    return numbers.seeds_text(configuration.mean, configuration.standard_error, count)


def _marked(event: str) -> str:
    """Events that tell of a problem come with their "!"."""
    return event if event.startswith("!") else f"· {event}"


def _one_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
