"""More budget for a study that is over."""

import json
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from leverl.errors import ConfigError
from leverl.record.layout import RunFolder
from leverl.tune.model import CONFIRM, RACE, SEARCH, StudyView
from leverl.tune.running.interruption import StudyInterrupted
from leverl.tune.running.scheduler import Scheduler
from leverl.tune.view import read_study


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, tools: ModuleType) -> Path:
    out = tmp_path_factory.mktemp("first")
    tools.tune(out, tools.study(seed=4))
    return out / "s"


@pytest.fixture
def folder(first: Path, tmp_path: Path) -> Path:
    shutil.copytree(first, tmp_path / "s")
    return tmp_path / "s"


def seeds(view: StudyView, phase: str) -> set[int]:
    return {state.run.seed for state in view.history.in_phase(phase)}


def test_the_search_goes_on_and_race_and_proof_take_fresh_seeds(folder: Path, tools: ModuleType) -> None:
    before = read_study(folder)
    recorder = tools.Recorder()
    winner = tools.tune(folder.parent, folder, resume=True, overrides=["budget.trials=20"], observer=recorder)
    after = read_study(folder)
    assert after.history.runs[:10] == tuple(
        state for state in after.history.runs if state.run.id in {s.run.id for s in before.history.runs}
    )
    assert Counter(state.run.phase for state in after.history.runs) == {SEARCH: 14, RACE: 2, CONFIRM: 4}
    assert after.planned == {SEARCH: 14, RACE: 2, CONFIRM: 4}
    used = {state.run.seed for state in before.history.runs}
    for phase in (RACE, CONFIRM):
        assert seeds(after, phase).isdisjoint(used)
    assert seeds(after, RACE).isdisjoint(seeds(after, CONFIRM))
    assert winner.comparison is not None
    assert set(winner.comparison.seeds) == seeds(after, CONFIRM)
    assert recorder.events[0].startswith("round 2: the search goes on with all 10 runs so far")


def test_what_the_first_round_came_to_is_kept(folder: Path, tools: ModuleType) -> None:
    best = (folder / "best.yaml").read_text()
    kept = {path for path in folder.rglob("checkpoints/*") if RunFolder(path.parent.parent).exists()}
    assert kept
    tools.tune(folder.parent, folder, resume=True, overrides=["budget.trials=20"])
    assert (folder / "best-1.yaml").read_text() == best
    earlier = json.loads((folder / "winner-1.json").read_text())
    assert (earlier["best_yaml"], earlier["report"]) == ("best-1.yaml", "report-1.html")
    assert all(path.exists() for path in kept)


def test_a_third_round_and_a_new_database(folder: Path, tools: ModuleType) -> None:
    for trials in (20, 30):
        tools.tune(folder.parent, folder, resume=True, overrides=[f"budget.trials={trials}"])
    before = read_study(folder)
    assert seeds(before, CONFIRM) == {43008, 43009}
    (folder / "study.db").unlink()
    tools.tune(folder.parent, folder, resume=True)
    assert read_study(folder).history == before.history


def test_more_runs_do_not_prolong_a_proof_that_has_begun(tmp_path: Path, tools: ModuleType) -> None:
    def interrupt(view: StudyView) -> None:
        if view.phase == CONFIRM:
            os.kill(os.getpid(), signal.SIGINT)

    recorder = tools.Recorder()
    recorder.refreshed = interrupt
    with pytest.raises(StudyInterrupted):
        tools.tune(tmp_path, tools.study(), observer=recorder)
    with pytest.raises(ConfigError, match="is confirming its winner: more runs now"):
        tools.tune(tmp_path, tmp_path / "s", resume=True, overrides=["budget.trials=20"])
    tools.tune(tmp_path, tmp_path / "s", resume=True)
    assert len(read_study(tmp_path / "s").history.in_phase(CONFIRM)) == 4


@pytest.mark.parametrize("trials", [11, 16])
def test_too_little_for_another_round_changes_nothing(folder: Path, tools: ModuleType, trials: int) -> None:
    before = {path: path.read_bytes() for path in folder.glob("*.*") if path.name != "study.db"}
    with pytest.raises(ConfigError, match=r"Another round takes at least 7: .*\(budget.trials=17 or more\)"):
        tools.tune(folder.parent, folder, resume=True, overrides=[f"budget.trials={trials}"])
    assert {path: path.read_bytes() for path in before} == before


def test_a_study_that_was_cut_short_goes_on_where_it_was(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(scheduler: Scheduler) -> float:
        return 7200.0 if len(scheduler.history.runs) >= 3 else 0.0

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "seconds", property(seconds))
        tools.tune(tmp_path, tools.study(budget={"trials": 10, "hours": 1}))
    assert len(read_study(tmp_path / "s").history.runs) <= 4
    tools.tune(tmp_path, tmp_path / "s", resume=True, overrides=["budget.hours=100"])
    view = read_study(tmp_path / "s")
    assert Counter(state.run.phase for state in view.history.runs) == {SEARCH: 4, RACE: 2, CONFIRM: 4}
    assert not (tmp_path / "s" / "rounds.json").exists()
