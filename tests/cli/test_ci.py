"""`leverl tune --ci`: what later steps and readers of the log get, written to files of the test's own."""

import io
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from leverl.cli import ci
from leverl.errors import ConfigError
from leverl.tune.gate import GateResult
from leverl.tune.model import Comparison, History, StudyView, Winner


@pytest.fixture
def view(tmp_path: Path) -> StudyView:
    comparison = Comparison((1, 2), (0.7, 0.8), (0.5, 0.5), 0.25, (0.1, 0.4), True, "c007")
    winner = Winner(
        "s", "c007", {}, comparison, "Use c007: 50% better.", tmp_path / "best.yaml", tmp_path / "report.html"
    )
    return StudyView(
        name="s",
        folder=tmp_path,
        target="grpo",
        base_settings={},
        strategy="bayes",
        sampler="",
        objective="eval/score",
        axes=(),
        history=History(()),
        planned={},
        steps=4,
        phase="done",
        budget_seconds=None,
        seconds=1.0,
        winner=winner,
    )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"GITHUB_STEP_SUMMARY": str(tmp_path / "step.md"), "GITHUB_OUTPUT": str(tmp_path / "outputs")}


def read_outputs(environment: Mapping[str, str]) -> dict[str, str]:
    """As the runner reads the file: `name<<END`, lines, `END`."""
    text = Path(environment["GITHUB_OUTPUT"]).read_text(encoding="utf-8")
    found = re.findall(r"^(\w+)<<(\S+)\n(.*?)\n\2$", text, re.MULTILINE | re.DOTALL)
    return {name: value for name, _, value in found}


def test_a_gate_that_is_met(view: StudyView, environment: dict[str, str], tmp_path: Path) -> None:
    log = io.StringIO()
    assert ci.publish(view, GateResult(True, "gain > 0 at 95%: met"), log, environment) == 0
    assert read_outputs(environment) == {
        "winner": "c007",
        "gain": "0.25",
        "passed": "true",
        "report": f"{tmp_path}/report.html",
        "summary": f"{tmp_path}/summary.md",
        "best": f"{tmp_path}/best.yaml",
    }
    assert log.getvalue().splitlines() == [
        "::notice title=leverl tune s::Use c007: 50%25 better.",
        "::notice title=leverl gate::gain > 0 at 95%25: met",
    ]
    step = (tmp_path / "step.md").read_text(encoding="utf-8")
    assert step.rstrip() == (tmp_path / "summary.md").read_text(encoding="utf-8").rstrip()
    assert "**Gate** gain &gt; 0 at 95%: met" in step


def test_a_gate_that_is_not_met_exits_with_1(view: StudyView, environment: dict[str, str]) -> None:
    log = io.StringIO()
    assert ci.publish(view, GateResult(False, "gain > 1: not met"), log, environment) == 1
    assert read_outputs(environment)["passed"] == "false"
    assert log.getvalue().splitlines()[-1] == "::error title=leverl gate::gain > 1: not met"


def test_without_gate_and_files_only_the_log_is_written(view: StudyView) -> None:
    log = io.StringIO()
    assert ci.publish(view, None, log, {}) == 0
    assert len(log.getvalue().splitlines()) == 1
    assert sorted(path.name for path in view.folder.iterdir()) == ["summary.md"]


def test_what_is_there_already_stays(view: StudyView, environment: dict[str, str]) -> None:
    for path in environment.values():
        Path(path).write_text("before=1\n", encoding="utf-8")
    ci.publish(view, None, io.StringIO(), environment)
    for path in environment.values():
        assert Path(path).read_text(encoding="utf-8").startswith("before=1\n")
    assert read_outputs(environment)["passed"] == ""


def test_a_summary_that_github_would_drop_is_replaced_by_a_line(
    view: StudyView, environment: dict[str, str]
) -> None:
    step = Path(environment["GITHUB_STEP_SUMMARY"])
    step.write_text("x" * (ci.SUMMARY_LIMIT - 500), encoding="utf-8")
    summary = view.folder / "summary.md"
    summary.write_text("y" * 1000, encoding="utf-8")
    ci.append_summary(summary, environment)
    assert "too long to be added here; see summary.md" in step.read_text(encoding="utf-8")
    assert step.stat().st_size < ci.SUMMARY_LIMIT


def test_a_value_cannot_pose_as_another_output(environment: dict[str, str]) -> None:
    ci.write_outputs({"winner": "c001\npassed<<EOF\ntrue\nEOF\nEOF"}, environment)
    assert read_outputs(environment) == {"winner": "c001\npassed<<EOF\ntrue\nEOF\nEOF"}


def test_a_log_line_stays_one_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "abcdefgh12345")
    log = io.StringIO()
    ci.annotate("error", "a: b, c", "50%\r\n::set-output name=x::y abcdefgh12345", log)
    assert log.getvalue() == "::error title=a%3A b%2C c::50%25%0D%0A::set-output name=x::y •••\n"


def test_errors_are_announced_and_go_on() -> None:
    log = io.StringIO()
    with pytest.raises(ConfigError), ci.announced(log):
        raise ConfigError("budget.trials = 3 is too small.\nSet 10.")
    assert log.getvalue() == "::error title=leverl tune::budget.trials = 3 is too small.%0ASet 10.\n"
