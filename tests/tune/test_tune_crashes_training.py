"""SIGKILL to a tuner and its real training runs: the study ends as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest
import yaml

from leverl.executors.handles import read_handle
from leverl.executors.protocol import Handle
from leverl.record.layout import RunFolder
from leverl.record.metrics import read_lines
from leverl.record.run_record import Outcome
from leverl.tune.view import read_study

STEPS = 12
TARGET = {
    "leverl": "grpo",
    "set": {
        "task": "echo",
        "steps": STEPS,
        "eval_every": 4,
        "batch_size": 32,
        "embedded_hidden_size": 16,
        "embedded_layers": 1,
        "embedded_heads": 2,
        "data.eval_size": 16,
        "model.device": "cpu",
    },
}
KILLS = ("run", "tuner", "tuner and run", "run", "tuner")


def tuner(place: Path, *arguments: str) -> subprocess.Popen[str]:
    """A tuner; all processes that come of it have `place` in their environment."""
    argv = [sys.executable, "-m", "leverl", "tune", *arguments, "--progress", "none"]
    env = {**os.environ, "LEVERL_TEST": str(place)}
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def processes_of(place: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("LEVERL_TEST") == str(place)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def finish(process: subprocess.Popen[str]) -> None:
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 0, text[-4000:]


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def living(folder: Path) -> list[Handle]:
    runs = sorted((folder / "trials").glob("[!.]*"))
    return [found for run in runs if (found := read_handle(run.name, run)) is not None]


def steps_done(folder: Path, run: Handle) -> int:
    metrics = RunFolder(folder / "trials" / run.run_id).metrics
    return max((step for step, _ in read_lines(metrics)), default=0) if metrics.exists() else 0


def moment(
    folder: Path,
    process: subprocess.Popen[str],
    hurt: Counter[str],
    steps: int,
    wait_until: Callable[..., None],
) -> Handle:
    """A run that has not been killed before and has done so many steps, found while the tuner lives."""
    found: list[Handle] = []

    def reached() -> bool:
        assert process.poll() is None, process.communicate()[0][-4000:]
        found[:] = [
            run for run in living(folder) if not hurt[run.run_id] and steps_done(folder, run) >= steps
        ]
        return bool(found)

    wait_until(reached, 200)
    return found[0]


def results(folder: Path) -> dict[str, Any]:
    view = read_study(folder)
    assert view.winner is not None
    runs = {
        state.run.id: (state.run.phase, dict(state.run.params), state.outcome, state.score, state.evaluations)
        for state in view.history.runs
    }
    return {**runs, "winner": view.winner.config_id, "verdict": view.winner.verdict}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_kills_change_nothing_that_is_found(tmp_path: Path, tools: ModuleType) -> None:
    chance, hurt, kills = random.Random(0), Counter[str](), Counter[str]()
    content = tools.study(
        target=TARGET, space={"actor_learning_rate": {"min": 1e-4, "max": 1e-2, "log": True}}
    )
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump(content))
    finish(tuner(tmp_path, str(study), "--out", str(tmp_path / "peace")))

    folder = tmp_path / "war" / content["name"]
    process = tuner(tmp_path, str(study), "--out", str(folder.parent))
    for kind in KILLS:
        run = moment(folder, process, hurt, chance.randrange(STEPS), tools.wait_until)
        if "tuner" in kind:
            kill(process)
            kills["tuner"] += 1
        if "run" in kind:
            os.kill(run.pid, signal.SIGKILL)
            hurt[run.run_id] += 1
            kills["run"] += 1
        if "tuner" in kind:
            process = tuner(tmp_path, "--resume", str(folder))
    finish(process)

    assert sum(kills.values()) >= 5
    found = results(folder)
    assert found == results(tmp_path / "peace" / content["name"])
    states = read_study(folder).history.runs
    assert {state.outcome for state in states} == {Outcome.FINISHED}
    assert sorted(state.run.id for state in states) == sorted(
        p.name for p in (folder / "trials").glob("[!.]*")
    )
    for state in states:
        assert [step for step, _ in read_lines(RunFolder(state.folder).metrics)] == [*range(STEPS + 1)]
    assert not living(folder)
    tools.wait_until(lambda: not processes_of(tmp_path))
