"""eval, levers, env, report: output for people and for programs."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leverl import api
from leverl.cli.commands import env
from leverl.cli.main import main
from leverl.config import tree
from leverl.config.loader import dump, load
from leverl.config.schema import Config
from leverl.record.layout import RunFolder
from leverl.record.metrics import MetricsWriter
from leverl.record.observer import Sample
from leverl.record.run_record import Outcome, RunRecord, Score
from leverl.vocabulary.catalog import LEVERS

CARD = (
    "KL 散度系数", "algorithm.kl_coef", "a number, ≥ 0, ≤ 10", "0.0001 … 0.1 (log), or 0", "too low",
    "too high", "advice", "in verl", "algorithm.kl_ctrl.kl_coef", "in TRL",
)  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    mean: float = 0.625
    standard_error: float | None = 0.031
    prompts: int = 256
    unscored: int = 0
    length: float = 3.9
    truncated: float = 0.02
    samples: tuple[Sample, ...] = tuple(Sample(f"{n}\n1", "1", 1.0, "1", False) for n in range(8))


def make_run(folder: Path, *overrides: str) -> Path:
    """The folder of a finished run of two steps."""
    paths = RunFolder(folder)
    paths.checkpoints.joinpath("step-000002").mkdir(parents=True)
    paths.config.write_text(dump(load("grpo", overrides).config), encoding="utf-8")
    RunRecord(
        id=folder.name,
        seed=0,
        until=2,
        step=2,
        source="grpo",
        outcome=Outcome.FINISHED,
        score=Score(0.5, 0.1, 2),
    ).save(paths.record)
    with MetricsWriter(paths.metrics) as writer:
        for step in (1, 2):
            writer.write(step, {"eval/score": 0.5, "eval/score_se": 0.1, "critic/score/mean": 0.4})
    return folder


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    monkeypatch.chdir(tmp_path)
    seen: list[dict[str, Any]] = []

    def evaluate(model: str, config: str, overrides: tuple[str, ...], *, samples: int | None) -> Evaluation:
        seen.append({"model": model, "config": config, "overrides": overrides, "samples": samples})
        return Evaluation()

    monkeypatch.setattr(api, "evaluate", evaluate)
    return seen


def test_eval_of_a_model_on_a_recipe(calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "some/model", "task=add", "--config", "grpo-llm", "--samples", "4"]) == 0
    assert calls == [{"model": "some/model", "config": "grpo-llm", "overrides": ("task=add",), "samples": 4}]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "score      0.62 ± 0.03 over 256 prompts"
    assert lines[1] == "length     3.9 tokens on average, 2 % truncated"
    assert len([line for line in lines if line.startswith("sample ")]) == 3
    assert lines[-1] == "next: leverl train grpo-llm model=some/model"


def test_eval_finds_the_run_of_a_checkpoint(
    calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make_run(tmp_path / "runs" / "a")
    for model in ("runs/a", "runs/a/checkpoints/step-000002"):
        assert main(["eval", model]) == 0
        assert capsys.readouterr().out.splitlines()[-1].endswith("runs/a")
    assert [Path(call["config"]).absolute() for call in calls] == [tmp_path / "runs" / "a"] * 2
    assert main(["eval", "elsewhere"]) == 0
    assert calls[-1]["config"] == "grpo"


def test_eval_for_programs(calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "some/model", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["mean"], found["standard_error"], found["prompts"]) == (0.625, 0.031, 256)
    assert found["samples"][0] == {
        "prompt": "0\n1", "response": "1", "score": 1.0, "ground_truth": "1", "truncated": False,
    }  # fmt: skip


def test_eval_interrupted(calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(*args: Any, **how: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "evaluate", evaluate)
    assert main(["eval", "some/model"]) == 130


def test_lever_card_tells_everything(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("kl_coef", "algorithm.kl_coef", "beta"):
        assert main(["levers", word]) == 0
        out = capsys.readouterr().out
        for part in CARD:
            assert part in out
        assert out.splitlines()[-1] == "next: leverl train grpo kl_coef=0.001"


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_every_lever_has_a_card(lever: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levers", lever.name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == lever.path
    assert found["default"] == tree.get(Config(), lever.path)
    assert found["allowed"]
    assert main(["levers", lever.name]) == 0
    assert lever.zh in capsys.readouterr().out


def test_table_of_levers_is_whole_where_no_terminal_cuts_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levers"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {lever.name for lever in LEVERS} <= {words[0] for words in lines if words}
    assert main(["levers", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["levers"]) == len(LEVERS)


def test_env(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env"]) == 0
    text = capsys.readouterr().out
    assert "devices    cpu" in text
    assert main(["env", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["packages"]["torch"]
    assert found["devices"][0] == "cpu"
    assert found["memory"]["total"] >= found["memory"]["available"] > 0
    assert found["disk"]["free"] > 0
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(found["extras"]) == set(project["project"]["optional-dependencies"]) - {"all"}


def test_env_says_how_to_install_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "find_spec", lambda module: None)
    assert set(env.extras().values()) == {None}
    lines = env.lines(env.environment())
    assert "extra      datasets: not installed; pip install 'leverl[datasets]'" in lines


def test_report_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "a")
    assert main(["report", str(folder)]) == 0
    out = capsys.readouterr().out
    assert f"report: {folder / 'report.html'}\n" in out
    assert (folder / "report.html").is_file()
    assert main(["report", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["record"]["outcome"]) == ("run", "finished")


def test_report_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "holds neither a run nor a study" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "no")]) == 2
    assert "does not exist" in capsys.readouterr().err
