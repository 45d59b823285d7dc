"""`leverl tune`: what reaches the API, what is said, and how it exits. No study is run here."""

import json
import signal
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from leverl import api
from leverl.cli.commands import tune
from leverl.cli.main import main
from leverl.errors import TrainingFailed
from leverl.report import live_tune
from leverl.tune import view as views
from leverl.tune.model import History, StudyView, Winner
from leverl.tune.plan import prepare
from leverl.tune.running.interruption import StudyInterrupted
from leverl.tune.study_file import load_study

VERDICT = "No difference shown: keep the base."

DEMO = "grpo embedded_layers=1 embedded_warm_start_steps=40 batch_size=128 mini_batch_size=64 max_response_length=4"


def study_view(folder: Path, phase: str = "done") -> StudyView:
    """The demo study before its first run, or over."""
    view = views.build_view(prepare(load_study("demo"), folder), History(()), phase=phase, seconds=1.0)
    winner = Winner("demo", "c000", {}, None, VERDICT, folder / "best.yaml", folder / "report.html")
    return replace(view, winner=winner if phase == "done" else None)


@dataclass
class Tuner:
    """Stands in for `api.tune`."""

    error: BaseException | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, study: str, overrides: tuple[str, ...], **how: Any) -> Winner:
        how.pop("observer").event("c001 ended")
        self.calls.append({"study": study, "overrides": overrides, **how})
        if self.error is not None:
            raise self.error
        folder = Path(study) if how["resume"] else how["out"] / (how["name"] or study)
        winner = study_view(folder).winner
        assert winner is not None
        return winner


@pytest.fixture
def tuner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tuner:
    monkeypatch.chdir(tmp_path)
    tuner = Tuner()
    monkeypatch.setattr(api, "tune", tuner)
    monkeypatch.setattr(views, "read_study", study_view)
    return tuner


def test_what_reaches_the_api(tuner: Tuner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "demo", "budget.trials=20", "--parallel", "1", "--name", "lr", "--out", "here"]) == 0
    assert tuner.calls == [
        {
            "study": "demo",
            "overrides": ("budget.trials=20",),
            "name": "lr",
            "out": Path("here"),
            "resume": False,
            "clean": False,
            "parallel": 1,
            "retry_failed": False,
        }
    ]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "· c001 ended"
    assert "report: here/lr/report.html" in lines
    assert lines[-1] == f"next: leverl train {DEMO} steps=60 eval_every=5"


def test_nothing_beats_the_default_is_a_result(tuner: Tuner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "demo", "--progress", "none"]) == 0
    assert VERDICT in capsys.readouterr().out


def test_resume_and_retry(tuner: Tuner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--resume", "studies/lr", "--retry", "failed", "budget.trials=40"]) == 0
    assert (tuner.calls[0]["resume"], tuner.calls[0]["retry_failed"]) == (True, True)
    assert main(["tune", "demo", "--retry", "failed"]) == 2
    assert "--retry failed needs --resume" in capsys.readouterr().err
    assert main(["tune", "--resume", "studies/lr", "--name", "x", "--clean"]) == 2
    assert "does not go with --name, --clean" in capsys.readouterr().err
    assert main(["tune", "--resume", "studies/lr", "--retry", "all"]) == 2
    assert "'all' is not" in capsys.readouterr().err


def test_existing_study_offers_three_choices(
    tuner: Tuner, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "studies" / "demo").mkdir(parents=True)
    (tmp_path / "studies" / "demo" / "study.yaml").touch()
    assert main(["tune", "demo"]) == 2
    message = capsys.readouterr().err
    for choice in ("leverl tune --resume studies/demo", "--name demo-2", "--clean"):
        assert choice in message
    assert main(["tune", "demo", "--clean"]) == 2
    assert "Add --yes" in capsys.readouterr().err
    assert tuner.calls == []
    assert main(["tune", "demo", "--clean", "--yes"]) == 0
    assert tuner.calls[0]["clean"] is True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_study_says_how_to_go_on(
    tuner: Tuner, number: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tuner.error = StudyInterrupted(Path("studies/demo"), number)
    assert main(["tune", "demo"]) == code
    assert capsys.readouterr().out.splitlines()[-1] == "next: leverl tune --resume studies/demo"
    assert main(["tune", "demo", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["outcome"] == "interrupted"


def test_no_run_finished(tuner: Tuner, capsys: pytest.CaptureFixture[str]) -> None:
    tuner.error = TrainingFailed("no run has a score")
    assert main(["tune", "demo"]) == 3
    assert capsys.readouterr().err == "error: no run has a score\n"


def test_json(tuner: Tuner, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "demo", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["folder"], found["phase"], found["winner"]["config_id"]) == ("studies/demo", "done", "c000")
    assert found["winner"]["best_yaml"] == "studies/demo/best.yaml"
    assert "c001 ended" in captured.err


def test_dry_run_is_the_plan(tuner: Tuner, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["tune", "demo", "steps=30", "budget.trials=20", "--parallel", "1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    for part in (
        "study        demo → studies/demo",
        f"target       {DEMO} steps=30 eval_every=5",
        "(Matérn GP, qLogNEI)",
        "maximize eval/score",
        "0.0001 … 0.1 (log), or 0  [base 0.001]",
        "20 runs of 30 steps, 1 side by side",
    ):
        assert part in out
    assert out.splitlines()[-1] == "next: leverl tune demo steps=30 budget.trials=20"
    assert main(["tune", "demo", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(found["runs"].values()) == 24
    assert found["space"][0]["name"] == "actor_learning_rate"
    seeds = [seed for phase in found["seeds"].values() for seed in phase]
    assert len(seeds) == len(set(seeds))
    assert tuner.calls == []
    assert list(tmp_path.iterdir()) == []


def test_dry_run_names_constraints_and_values(
    tuner: Tuner, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = """
    target: {leverl: grpo}
    strategy: grid
    space: {batch_size: [128, 256], ppo_epochs: {min: 1, max: 2}}
    constraints: ["batch_size * ppo_epochs <= 256"]
    seeds: {race: 1, confirm: 2}
    """
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
    assert main(["tune", "own.yaml", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "batch_size  128, 256  [base 256]" in out
    assert "ppo_epochs  1 … 2  [base 1]" in out
    assert "constraint   batch_size * ppo_epochs <= 256" in out
    assert "search 6, race 4, confirm 4: 14 runs of 200 steps" in out


@dataclass
class Screen:
    """Stands in for the live view."""

    seen: list[str] = field(default_factory=list)

    def refreshed(self, view: StudyView) -> None:
        self.seen.append(view.phase)

    def event(self, text: str) -> None: ...

    def ended(self, view: StudyView) -> None:
        self.seen.append(f"ended {view.phase}")


def test_watch_looks_until_the_study_is_over(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = iter(["search", "confirm", "done", "done"])
    screen = Screen()
    monkeypatch.setattr(views, "read_study", lambda folder: study_view(folder, next(phases)))
    monkeypatch.setattr(live_tune, "make_tune_view", lambda progress, stream: screen)
    monkeypatch.setattr(tune, "WATCH_SECONDS", 0)
    assert main(["tune", "--watch", "studies/demo"]) == 0
    assert screen.seen == ["search", "confirm", "ended done"]
    assert tuner.calls == []


def test_watch_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--watch", str(tmp_path)]) == 2
    assert "holds no study" in capsys.readouterr().err


def test_ctrl_c_ends_the_watching_and_not_the_study(
    tuner: Tuner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen()
    monkeypatch.setattr(views, "read_study", lambda folder: study_view(folder, "search"))
    monkeypatch.setattr(live_tune, "make_tune_view", lambda progress, stream: screen)

    def sleep(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    assert main(["tune", "--watch", "studies/demo"]) == 0
    assert screen.seen == ["search", "ended search"]
    assert capsys.readouterr().out.splitlines()[-1] == "next: leverl tune --watch studies/demo"
