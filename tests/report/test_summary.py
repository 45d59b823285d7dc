"""`summary.md`: what a pull request shows of a study."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from leverl.record.run_record import Outcome
from leverl.report.summary import write_summary
from leverl.tune.model import History, StudyView

MakeStudy = Callable[..., StudyView]


def text_of(view: StudyView, gate: str = "") -> str:
    path = write_summary(view, gate)
    assert path == view.folder / "summary.md"
    return path.read_text(encoding="utf-8")


def row(text: str, first: str) -> list[str]:
    """The cells of the first table row that begins with `first`."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {first}"))
    return [cell.strip().replace("\\", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_it_begins_with_verdict_gate_and_winner_against_base(make_study: MakeStudy) -> None:
    view = make_study(ending="win")
    text = text_of(view, "gain > 0 at 95%: met (+0.2)")
    assert view.winner is not None
    assert view.winner.comparison is not None
    parts = text.split("\n\n")
    assert parts[0] == "# lr-kl"
    assert parts[1].startswith(f"**Use {view.winner.config_id}: 0.71")
    assert parts[2] == "**Gate** gain &gt; 0 at 95%: met (+0.2)"
    found = view.winner.comparison
    score = row(text, "eval/score, 3 fresh seeds")
    assert [float(cell) for cell in score[1:]] == pytest.approx(
        [sum(found.winner) / 3, sum(found.base) / 3], abs=0.0006
    )
    assert row(text, "difference")[1].startswith(f"+{found.difference:.3g} [")
    assert row(text, "KL to the reference")[0] == "KL to the reference"


def test_without_a_gate_nothing_is_said_of_one(make_study: MakeStudy) -> None:
    assert "Gate" not in text_of(make_study(ending="no gain"))


def test_levers_that_changed_are_a_table_and_the_others_are_named(make_study: MakeStudy) -> None:
    view = make_study(ending="win", count=14)
    assert view.winner is not None
    text = text_of(view)
    changed = {axis.name for axis in view.axes if view.winner.params.get(axis.name) != axis.base}
    levers = text.partition("| lever |")[2].partition("<details>")[0].replace("\\", "")
    for axis in view.axes:
        assert (f"\n| {axis.name} |" in levers) == (axis.name in changed)
    same = re.search(r"As in the base: (.*)\.", levers)
    assert (set(same[1].split(", ")) if same else set()) == {axis.name for axis in view.axes} - changed


def test_cost_and_commands_are_there(make_study: MakeStudy) -> None:
    text = text_of(make_study(ending="win"))
    assert re.search(r"^Cost: \d+ runs, 5.8 h of wall time, [\d.]+k steps, .* responses", text, re.MULTILINE)
    assert "leverl train " in text
    assert "--name lr-kl-again" in text


def test_folded_parts_are_closed_and_stay_markdown(make_study: MakeStudy) -> None:
    text = text_of(make_study(ending="win"))
    assert text.count("<details>") == text.count("</details>") == 2
    assert re.search(r"</summary>\n\n\| config", text)


@pytest.mark.parametrize("ending", ["win", "no gain", "open", "empty", "one seed"])
def test_every_ending_fits_a_comment(make_study: MakeStudy, ending: str) -> None:
    text = text_of(make_study(ending=ending))
    assert len(text.encode()) < 60_000
    assert "None" not in text


def test_hundreds_of_long_failures_fit_too(make_study: MakeStudy) -> None:
    view = make_study(ending="win", count=220)
    noisy = tuple(
        replace(state, outcome=Outcome.CRASHED, score=None, message="x" * 2000) if index % 3 else state
        for index, state in enumerate(view.history.runs)
    )
    text = text_of(replace(view, history=History(noisy)))
    assert len(text.encode()) < 60_000
    assert "more in report.html" in text


def test_secrets_and_markup_of_runs_and_gate_are_harmless(
    make_study: MakeStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "s3cr3t-value-1")
    text = text_of(make_study(ending="win"), "<script>alert(1)</script> @team s3cr3t-value-1")
    assert "<script" not in text
    assert "@team" not in text
    assert "s3cr3t" not in text


def test_it_is_replaced_whole(make_study: MakeStudy) -> None:
    view = make_study(ending="win")
    first = text_of(view, "one")
    assert "one" in first
    assert "**Gate** two" in text_of(view, "two")
    assert [path for path in Path(view.folder).iterdir() if path.name.startswith(".")] == []
