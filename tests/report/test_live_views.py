"""Runs and studies in the terminal while they go."""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from leverl.record.observer import Observer, Sample, Silent
from leverl.record.run_record import Outcome, RunRecord, Score
from leverl.record.series import Series
from leverl.report.live_train import LiveTrain, PlainTrain, make_train_view, sample_words
from leverl.report.live_tune import (
    LiveTune,
    PlainTune,
    SilentStudy,
    ending,
    make_tune_view,
    outlook,
    study_lines,
)
from leverl.report.terminal import run_line, run_next, study_next, study_table
from leverl.tune.model import StudyView

MakeStudy = Callable[..., StudyView]
SAMPLE = Sample("3 1 2", "1 2 3", 1.0, "1 2 3", False)
RECORD = RunRecord("x", 0, 300, "grpo")
DONE = RECORD.with_(outcome=Outcome.FINISHED, step=300, score=Score(0.61, 0.03, 3), seconds=52.0)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def metrics(step: int) -> dict[str, float | int | list[int]]:
    found: dict[str, float | int | list[int]] = {
        "critic/score/mean": 0.2 + step / 1000,
        "critic/score/std": 0.32,
        "kl_divergence": 0.021,
        "actor/pg_clipfrac": 0.04,
        "actor/grad_norm": 0.8,
        "timing_s/step": 1.0,
        "timing_s/gen": 0.61,
        "perf/tokens_per_second": 3100.0,
        "ratio/histogram": [1, 2],
    }
    return found | ({"eval/score": step / 200, "eval/score_se": 0.03} if step % 20 == 0 else {})


def train(view: Observer, clock: Clock, steps: int = 124) -> None:
    view.started("grpo-sort-1130-7f3a", {"rollout": {"batch_size": 256}}, RECORD)
    for step in range(1, steps + 1):
        clock.now += 1.0
        view.phase("generating")
        view.stepped(step, metrics(step), [SAMPLE] if step % 20 == 0 else [])
    view.saved(120, "runs/x/checkpoints/120")


def words(view: LiveTrain) -> list[str]:
    return [line.plain for line in view.lines()]


def test_five_lines_and_a_sample() -> None:
    clock = Clock()
    view = LiveTrain(io.StringIO(), clock=clock)
    train(view, clock)
    head, evaluation, reward, update, speed, sample = words(view)
    assert "step 124/300" in head
    assert "41 %" in head
    assert "2:04 · ETA 2:56 · checkpoint 120" in head
    assert "0.60 ± 0.03" in evaluation
    assert "best 0.6 @120" in evaluation
    assert "0.32 ± 0.02" in reward  # 0.32 / √256
    assert update.split()[:3] == ["ref", "KL", "0.021"]
    assert "clip 4 %  grad 0.8" in update
    assert "3.1k tok/s · generate 61 % · now: generating" in speed
    assert '"3 1 2" → "1 2 3" ✓ 1' in sample
    view.ended(DONE)


def test_silence_is_told_after_three_usual_steps() -> None:
    clock = Clock()
    view = LiveTrain(io.StringIO(), clock=clock)
    view.started("slow", {}, RECORD)
    for step in (1, 2, 3):
        clock.now += 20
        view.stepped(step, metrics(step), [])
    assert "no progress" not in " ".join(words(view))
    clock.now += 59
    assert "no progress" not in " ".join(words(view))
    clock.now += 191
    assert "no progress for 4:10 (usual 0:20)" in " ".join(words(view))
    view.ended(DONE)
    assert "no progress" not in " ".join(words(view))


def test_nothing_measured_is_shown_as_nothing() -> None:
    clock = Clock()
    view = LiveTrain(io.StringIO(), clock=clock)
    view.started("x", {}, RECORD)
    view.stepped(1, {"critic/score/mean": math.nan}, [])
    text = " ".join(words(view))
    assert "not evaluated yet" in text
    assert "NaN" in text
    view.ended(RECORD.with_(outcome=Outcome.NON_FINITE, step=1))


def test_the_redrawn_view_ends_with_the_result() -> None:
    stream, clock = Terminal(), Clock()
    view = make_train_view("rich", stream)
    train(view, clock, steps=3)
    view.ended(DONE)
    last = stream.getvalue().rstrip().splitlines()[-1]
    assert last.endswith("finished · 0.61 ± 0.03 (last 3 evaluations) · 300 of 300 steps · 52 s")


def test_plain_lines_have_no_ansi_and_stable_columns() -> None:
    stream, clock = io.StringIO(), Clock()
    view = PlainTrain(stream, clock)
    train(view, clock)
    view.ended(DONE)
    lines = stream.getvalue().splitlines()
    assert "\x1b" not in stream.getvalue()
    steps = [line for line in lines if "/300 " in line]
    assert len(steps) == 124
    assert len({len(line) for line in steps} | {len(lines[1])}) == 1
    assert len({len(line.split()) for line in steps if "±" not in line}) == 1
    assert lines[-1].startswith("grpo-sort-1130-7f3a: finished · 0.61 ± 0.03")
    assert sum(line.startswith("sample ") for line in lines) == 6


def test_a_closed_stream_does_not_stop_training() -> None:
    stream, clock = io.StringIO(), Clock()
    view = PlainTrain(stream, clock)
    view.started("x", {}, RECORD)
    stream.close()
    view.stepped(1, metrics(1), [])
    view.ended(DONE)


def test_hostile_samples_stay_on_one_line() -> None:
    shown = sample_words(Sample("a\nb\x1b[31m", "[red]x[/red]" + "y" * 99, None, "", True))
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert shown.endswith("not scored (cut off)")
    assert "[red]x[/red]" in shown


@pytest.mark.parametrize(
    ("progress", "stream", "train_view", "tune_view"),
    [
        ("auto", io.StringIO(), PlainTrain, PlainTune),
        ("auto", Terminal(), LiveTrain, LiveTune),
        ("rich", io.StringIO(), LiveTrain, LiveTune),
        ("plain", Terminal(), PlainTrain, PlainTune),
        ("none", Terminal(), Silent, SilentStudy),
    ],
)
def test_which_view(
    progress: str, stream: io.StringIO, train_view: type, tune_view: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert type(make_train_view(progress, stream)) is train_view  # type: ignore[arg-type]
    assert type(make_tune_view(progress, stream)) is tune_view  # type: ignore[arg-type]


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream, clock = Terminal(), Clock()
    view = make_train_view("rich", stream)
    train(view, clock, steps=20)
    view.ended(DONE)
    assert "\x1b[32m" not in stream.getvalue()
    assert "\x1b[36m" not in stream.getvalue()


def test_the_study_in_words(make_study: MakeStudy) -> None:
    view = make_study(count=12, ending="open")
    lines = study_lines(view)
    assert lines[0].startswith("lr-kl · bayes · 14/30 runs · 5.8 h of 6 h · 2 running 9 done 1 stopped 1 OOM")
    assert lines[1].startswith("leader c0")
    assert "(1 seed)" in lines[1]
    assert lines[2].startswith("base   c000")
    assert "P(best) 0." in lines[1]
    running = next(line for line in lines if "step 60/200" in line)
    assert "ETA 0:56" in running
    assert lines[-1].startswith("cost   ")
    assert "saved by 1 stop" in lines[-1]
    assert "lost (1 out of memory" in lines[-1]


def test_a_run_that_is_behind_may_stop(make_study: MakeStudy) -> None:
    view = make_study(count=12, ending="open")
    running = view.history.runs[-1]
    assert outlook(view, running) == ""
    low = replace(running, evaluations=Series(running.evaluations.steps, (-9.0,) * len(running.evaluations)))
    behind = replace(view, history=replace(view.history, runs=(*view.history.runs[:-1], low)))
    assert outlook(behind, low).startswith("  below the start-up median 0.")
    assert "may stop" not in outlook(behind, low)  # the study's rules are not known without its file


def test_whoever_comes_later_sees_why_runs_ended(make_study: MakeStudy) -> None:
    live = LiveTune(io.StringIO())
    live._view = make_study(count=12, ending="open")
    assert any(line.plain.startswith("! 008-s1 out of memory") for line in live.lines())


def test_the_redrawn_study_shows_events_and_what_comes_next(make_study: MakeStudy) -> None:
    view = make_study(count=12, ending="open")
    stream = io.StringIO()
    live = LiveTune(stream)
    live.refreshed(view)
    live.event("c014 stopped @60:\n0.18 < median 0.44 [red]")
    text = [line.plain for line in live.lines()]
    assert "· c014 stopped @60: 0.18 < median 0.44 [red]" in text
    assert text[-1] == "next: search 4 → race finalists 6 → confirm on fresh seeds 6"
    live.ended(view)
    assert "lr-kl: still at work, 2 running" in stream.getvalue()


def test_an_interrupted_study_says_how_to_go_on(make_study: MakeStudy) -> None:
    view = make_study(count=12, ending="open")
    over = tuple(state for state in view.history.runs if state.outcome is not None)
    assert "go on with: leverl tune --resume" in ending(
        replace(view, history=replace(view.history, runs=over))
    )


def test_the_plain_study_speaks_at_changes_only(make_study: MakeStudy) -> None:
    stream = io.StringIO()
    plain = PlainTune(stream)
    view = make_study(count=12)
    plain.refreshed(view)
    plain.refreshed(replace(view, seconds=view.seconds + 1))
    plain.event("phase confirm")
    plain.ended(view)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[1] == "· phase confirm"
    assert view.winner is not None
    assert lines[2] == f"lr-kl: {view.winner.verdict}"


def test_a_table_of_the_study(make_study: MakeStudy) -> None:
    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=160).print(study_table(make_study(count=30)))
    text = stream.getvalue()
    assert "winner" in text
    assert "c000" in text
    assert "(6 seeds)" in text


def test_next_commands(make_study: MakeStudy, make_run: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_run(Outcome.NON_FINITE, steps=1)
    assert run_next(RECORD.with_(outcome=Outcome.NON_FINITE), folder) == (
        f"leverl train {folder} actor_learning_rate=0.0005 --name grpo-sort-slower"
    )
    assert run_next(DONE, folder) == f"leverl eval {folder}"
    assert run_next(RECORD.with_(outcome=Outcome.INTERRUPTED), folder) == f"leverl train --resume {folder}"
    assert study_next(make_study(count=4)) == f"leverl train {tmp_path / 'best.yaml'}"
    assert study_next(make_study(count=4, ending="no gain")) == "leverl train grpo task=sort steps=200"
    assert run_line(RECORD) == "running · 0 of 300 steps · 0 s"
