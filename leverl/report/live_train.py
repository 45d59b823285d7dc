"""A training run as it goes: five lines redrawn in place, or one plain line a step."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from leverl.record.metrics import MetricValue
from leverl.record.observer import Observer, Sample, Silent
from leverl.record.run_record import RunRecord
from leverl.report import numbers
from leverl.report.screen import Screen, drawable
from leverl.report.terminal import run_line
from leverl.report.train_state import TrainState

if TYPE_CHECKING:
    from rich.text import Text

Progress = Literal["auto", "rich", "plain", "none"]
_LABEL: Final = 12
_SAMPLE_WIDTH: Final = 36


def make_train_view(progress: Progress, stream: TextIO) -> Observer:
    """The view for `progress`; "auto" redraws on a terminal and writes plain lines elsewhere.

    NO_COLOR is honoured by both: the redrawn view then has no colours.
    """
    if progress == "none":
        return Silent()
    if progress == "rich" or (progress == "auto" and drawable(stream, os.environ)):
        return LiveTrain(stream, forced=progress == "rich")
    return PlainTrain(stream)


class LiveTrain:
    """Five lines that rich redraws; it repaints by itself, so that a silence is seen as it lasts."""

    def __init__(
        self, stream: TextIO, *, forced: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._state = TrainState(clock)
        self._screen = Screen(stream, self.lines, forced=forced)

    def started(self, name: str, config: Mapping[str, Any], record: RunRecord) -> None:
        self._state.start(name, config, record)
        self._screen.open()

    def note(self, text: str) -> None:
        self._screen.say(f"! {text}")

    def phase(self, name: str) -> None:
        self._state.doing = name

    def stepped(self, step: int, metrics: Mapping[str, MetricValue], samples: Sequence[Sample]) -> None:
        self._state.add(step, metrics, samples)

    def saved(self, step: int, path: str) -> None:  # noqa: ARG002 - the protocol has the path; the view the step
        self._state.checkpoint = step

    def ended(self, record: RunRecord) -> None:
        self._state.end(record)
        self._screen.close(f"{self._state.name}: {run_line(record)}")

    def lines(self) -> list["Text"]:
        """The view as it is now."""
        state = self._state
        drawn = [_head(state), _evaluation(state), _reward(state), _update(state), _speed(state)]
        if state.sample is not None:
            drawn.append(_sample(state.sample))
        return [line for line in drawn if line is not None]


def _text(*parts: str | tuple[str, str]) -> "Text":
    from rich.text import Text

    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _row(label: str, value: str, spark: str, *rest: str) -> "Text":
    words = "  ".join(word for word in rest if word)
    return _text((f"{label:<{_LABEL}}", "bold"), f"{value:<15}", (f"{spark:<13}", "cyan"), words)


def _head(state: TrainState) -> "Text":
    done = state.share
    filled = round(20 * done)
    parts = [f"step {state.step}/{state.until}  "]
    tail = f" {numbers.percent(done)}  {numbers.clock(state.elapsed)}"
    tail += f" · ETA {numbers.clock(state.remaining)}" if state.remaining else ""
    tail += f" · checkpoint {state.checkpoint}" if state.checkpoint is not None else ""
    return _text(
        (f"{state.name}  ", "bold"), *parts, ("━" * filled, "green"), ("─" * (20 - filled), "dim"), tail
    )


def _evaluation(state: TrainState) -> "Text":
    scores = state.series("eval/score")
    if not scores:
        return _row("eval/score", numbers.UNKNOWN, "", "not evaluated yet")
    value = numbers.with_error(scores[-1], state.last("eval/score_se"))
    best_step, best = state.best
    return _row("eval/score", value, numbers.sparkline(scores), f"best {numbers.short(best)} @{best_step}")


def _reward(state: TrainState) -> "Text":
    dead, truncated = state.last("group/dead_share"), state.last("rollout/truncated")
    return _row(
        "reward",
        numbers.with_error(state.last("critic/score/mean"), state.reward_error),
        numbers.sparkline(state.series("critic/score/mean")),
        f"dead groups {numbers.percent(dead)}" if dead is not None else "",
        f"truncated {numbers.percent(truncated)}" if truncated is not None else "",
    )


def _update(state: TrainState) -> "Text":
    rest = [
        f"clip {numbers.percent(clip)}" if (clip := state.last("actor/pg_clipfrac")) is not None else "",
        f"grad {numbers.short(norm, 2)}" if (norm := state.last("actor/grad_norm")) is not None else "",
        f"entropy {numbers.short(entropy, 2)}"
        if (entropy := state.last("actor/entropy")) is not None
        else "",
    ]
    kl = state.last("kl_divergence")
    shown = numbers.short(kl, 2) if kl is not None else numbers.UNKNOWN
    return _row("ref KL", shown, numbers.sparkline(state.series("kl_divergence")), *rest)


def _speed(state: TrainState) -> "Text":
    speed = state.last("perf/tokens_per_second")
    parts = [f"{numbers.amount(speed)} tok/s"] if speed is not None else []
    parts += (
        [" ".join(f"{name} {numbers.percent(share)}" for name, share in state.time_shares)]
        if state.time_shares
        else []
    )
    parts += [f"now: {state.doing}"] if state.doing else []
    words = " · ".join(part for part in parts if part)
    if state.silence is None:
        return _text((f"{'speed':<{_LABEL}}", "bold"), words)
    return _text((f"{'speed':<{_LABEL}}", "bold"), words, (f"  {state.silence}", "bold yellow"))


def _sample(sample: Sample) -> "Text":
    return _text((f"{'sample':<{_LABEL}}", "bold"), sample_words(sample))


def sample_words(sample: Sample) -> str:
    """`"312" → "123" ✓ 1`, on one line, control characters shown as text."""
    score = "not scored" if sample.score is None else numbers.short(sample.score)
    mark = "✓ " if sample.response.strip() == sample.ground_truth.strip() != "" else ""
    cut = " (cut off)" if sample.truncated else ""
    return f"{_quoted(sample.prompt)} → {_quoted(sample.response)} {mark}{score}{cut}"


def _quoted(text: str) -> str:
    visible = "".join(sign if sign.isprintable() else " " for sign in text)
    whole = " ".join(visible.split())
    return f'"{whole if len(whole) <= _SAMPLE_WIDTH else whole[: _SAMPLE_WIDTH - 1] + "…"}"'


_COLUMNS: Final = (
    ("reward", "critic/score/mean"),
    ("kl", "kl_divergence"),
    ("clip", "actor/pg_clipfrac"),
    ("grad", "actor/grad_norm"),
    ("entropy", "actor/entropy"),
    ("length", "response_length/mean"),
    ("cut off", "rollout/truncated"),
    ("tok/s", "perf/tokens_per_second"),
)
_WIDTH: Final = 11  # the longest number, -1.23e-10, and two spaces


class PlainTrain:
    """One line a step without colours or cursor movements; the same columns on every line."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._state = TrainState(clock)

    def started(self, name: str, config: Mapping[str, Any], record: RunRecord) -> None:
        self._state.start(name, config, record)
        going_on = f" from step {record.step}" if record.step else ""
        self._write(f"{name}: {numbers.plural(record.until, 'step')}{going_on}, seed {record.seed}")
        titles = "".join(f"{title:>{_WIDTH}}" for title, _ in _COLUMNS)
        self._write(f"{'step':>11}{'eval/score':>15}{titles}{'time':>9}{'ETA':>9}")

    def note(self, text: str) -> None:
        self._write(f"! {text}")

    def phase(self, name: str) -> None:
        self._state.doing = name

    def stepped(self, step: int, metrics: Mapping[str, MetricValue], samples: Sequence[Sample]) -> None:
        state = self._state
        state.add(step, metrics, samples)
        cells = "".join(f"{_cell(metrics.get(metric)):>{_WIDTH}}" for _, metric in _COLUMNS)
        where = f"{step}/{state.until}"
        times = f"{numbers.clock(state.elapsed):>9}{numbers.clock(state.remaining):>9}"
        self._write(f"{where:>11}{_evaluated(metrics):>15}{cells}{times}")
        if "eval/score" in metrics and samples:
            self._write(f"sample {sample_words(samples[0])}")

    def saved(self, step: int, path: str) -> None:
        self._write(f"checkpoint {step}: {path}")

    def ended(self, record: RunRecord) -> None:
        self._write(f"{self._state.name}: {run_line(record)}")

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # whoever read this has gone (closed pipe); training goes on


def _cell(value: MetricValue | None) -> str:
    return numbers.short(float(value)) if isinstance(value, int | float) else numbers.UNKNOWN


def _evaluated(metrics: Mapping[str, MetricValue]) -> str:
    score, error = metrics.get("eval/score"), metrics.get("eval/score_se")
    if not isinstance(score, int | float):
        return numbers.UNKNOWN
    return numbers.with_error(float(score), float(error) if isinstance(error, int | float) else None)
