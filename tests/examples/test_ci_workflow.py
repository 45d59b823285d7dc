"""The workflow in examples/ci: well-formed, safe, and its steps do what they say when they are run."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from leverl.cli.group import build
from leverl.tune.gate import parse_gate
from leverl.tune.plan import check_space_can_run, prepare
from leverl.tune.store.outputs import read_winner
from leverl.tune.study_file import load_study

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKFLOW = EXAMPLES / "ci" / "leverl-tune.yml"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def steps(workflow: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = workflow["jobs"]["tune"]["steps"]
    return found


def test_it_may_do_no_more_than_it_does(workflow: Mapping[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert workflow["jobs"]["tune"]["timeout-minutes"] <= 60
    assert set(workflow[True]) == {"workflow_dispatch", "pull_request"}  # YAML 1.1 reads `on` as true


def test_steps_name_an_action_or_a_script_in_bash(steps: list[dict[str, Any]]) -> None:
    for step in steps:
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["shell"] == "bash"
        assert "uses" not in step or re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])


def test_no_text_of_a_pull_request_becomes_a_script(steps: list[dict[str, Any]]) -> None:
    assert not any(EXPRESSION.search(step.get("run", "")) for step in steps)


def test_study_flags_and_gate_exist(steps: list[dict[str, Any]], tmp_path: Path) -> None:
    (words,) = [step["run"].split() for step in steps if step.get("id") == "tune"]
    assert words[:2] == ["leverl", "tune"]
    flags = {flag for param in build("tune").params for flag in param.opts}
    assert {word for word in words if word.startswith("--")} <= flags
    assert parse_gate("gain > 0 at 95%").conditions[0].quantity == "gain"
    study = load_study(EXAMPLES.parent / words[2])
    plan = prepare(study, tmp_path / study.name)
    check_space_can_run(plan)
    assert (study.search_runs, study.race_runs, study.confirm_runs) == (4, 2, 6)


def test_the_report_is_kept_also_when_the_gate_is_not_met(steps: list[dict[str, Any]]) -> None:
    (kept,) = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert kept["if"] == "${{ !cancelled() }}"
    assert kept["with"]["path"].split() == [
        f"studies/*/{n}" for n in ("report.html", "summary.md", "best.yaml")
    ]


class Runner:
    """Runs the scripts of a workflow as GitHub does; what would leave this machine is replaced by a recorder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.outputs: dict[str, str] = {}
        self.summary = place / "step-summary.md"
        self._values = place / "outputs"
        self._bin = place / "bin"
        self._bin.mkdir()
        for name in ("pip", "gh"):
            self._record(name)
        shutil.copytree(EXAMPLES, place / "examples")

    def _record(self, name: str) -> None:
        script = self._bin / name
        script.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "$@" > "{self.place}/{name}.arguments"\n', encoding="utf-8"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def run(self, step: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        script = self.place / "script.sh"
        script.write_text(step["run"], encoding="utf-8")
        path = os.pathsep.join([str(self._bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        env = {name: self._filled(text) for name, text in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.place,
            env={
                **os.environ,
                **env,
                "PATH": path,
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "GITHUB_OUTPUT": str(self._values),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if self._values.exists():
            text = self._values.read_text(encoding="utf-8")
            rows = re.findall(r"^(\w+)<<(\S+)\n(.*?)\n\2$", text, re.MULTILINE | re.DOTALL)
            self.outputs |= {f"steps.{step.get('id')}.outputs.{name}": value for name, _, value in rows}
            self._values.unlink()
        return done

    def _filled(self, text: str) -> str:
        known = {"github.token": "a-token", "github.event.pull_request.number": "17", **self.outputs}
        return EXPRESSION.sub(lambda found: known[found[1]], text)

    def arguments(self, name: str) -> list[str]:
        return (self.place / f"{name}.arguments").read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_steps_run(steps: list[dict[str, Any]], tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    install, tune, comment = (step for step in steps if "run" in step)
    assert runner.run(install).returncode == 0
    assert runner.arguments("pip")[:2] == ["install", "leverl"]

    done = runner.run(tune)
    told = {name.rsplit(".", 1)[1]: value for name, value in runner.outputs.items()}
    winner = read_winner(tmp_path / "studies" / "ci")
    assert winner is not None, done.stderr
    assert told["winner"] == winner.config_id
    assert done.returncode == {"true": 0, "false": 1}[told["passed"]], done.stderr
    gained = winner.comparison is not None and winner.comparison.gain
    assert told["passed"] == str(gained).lower()
    assert ("::error title=leverl gate::" in done.stderr) != gained
    for name in ("report", "summary", "best"):
        assert (tmp_path / told[name]).is_file(), name
    summary = (tmp_path / told["summary"]).read_text(encoding="utf-8")
    assert summary.strip() == runner.summary.read_text(encoding="utf-8").strip()
    assert "**Gate** gain &gt; 0 at 95%" in summary

    assert runner.run(comment).returncode == 0
    assert runner.arguments("gh") == ["pr", "comment", "17", "--body-file", told["summary"]]
