"""Whole studies with a trainer that takes milliseconds."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leverl.config import loader
from leverl.errors import ConfigError, EnvironmentProblem, TrainingFailed
from leverl.executors.local import LocalExecutor
from leverl.executors.machine import Memory
from leverl.record.layout import RunFolder
from leverl.record.process import Command
from leverl.record.run_record import Outcome, load_record
from leverl.tune.ledger import ledger, total
from leverl.tune.model import CONFIRM, RACE, SEARCH, Cost, StudyView
from leverl.tune.running.scheduler import Scheduler
from leverl.tune.store import disk, storage
from leverl.tune.store.lock import locked
from leverl.tune.store.storage import Store
from leverl.tune.view import read_study


def starts(log: Path) -> Counter[str]:
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def trials(folder: Path) -> list[Any]:
    """What Optuna itself finds in the database."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    base = optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")
    found = optuna.load_study(study_name="s", storage=base).get_trials()
    base.remove_session()
    base.engine.dispose()
    optuna.logging.set_verbosity(before)
    return found


def check_whole(folder: Path, runs: int) -> StudyView:
    """Nothing lost, nothing doubled: database, folders and view agree."""
    view = read_study(folder)
    ids = [state.run.id for state in view.history.runs]
    assert len(ids) == len(set(ids)) == runs
    assert all(state.outcome is not None for state in view.history.runs)
    assert sorted(ids) == sorted(path.name for path in (folder / "trials").iterdir() if path.name[0] != ".")
    assert sorted(trial.user_attrs["run_id"] for trial in trials(folder)) == sorted(ids)
    return view


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tools: ModuleType) -> Path:
    """The folder of a study with a winner, to be copied or read."""
    out = tmp_path_factory.mktemp("finished")
    tools.tune(out, tools.study(seed=4), {"oom_above": 5e-2, "nan_above": 8e-3, "log": str(out / "log")})
    return out / "s"


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """The same study, to be changed."""
    shutil.copytree(finished, tmp_path / "s")
    return tmp_path / "s"


def test_a_study_from_base_to_winner(finished: Path) -> None:
    view = check_whole(finished, 10)
    runs = view.history.runs
    assert (runs[0].run.config_id, dict(runs[0].run.params)) == ("c000", {})
    assert Counter(state.run.phase for state in runs) == {SEARCH: 4, RACE: 2, CONFIRM: 4} == view.planned
    seeds = {phase: {s.run.seed for s in runs if s.run.phase == phase} for phase in (SEARCH, RACE, CONFIRM)}
    assert seeds == {SEARCH: {41000}, RACE: {42000}, CONFIRM: {43000, 43001}}
    assert all(count == 1 for count in starts(finished.parent / "log").values())
    assert (view.phase, view.sampler, view.steps) == ("done", "random search", 4)
    assert view.winner is not None
    assert view.winner.config_id == "c002"
    assert view.winner.comparison is not None
    assert view.winner.comparison.gain


def test_failures_are_facts_and_never_scores(finished: Path) -> None:
    states = {state.run.id: state for state in read_study(finished).history.runs}
    assert states["001-s41000"].outcome is Outcome.OUT_OF_MEMORY
    assert states["003-s41000"].outcome is Outcome.NON_FINITE
    by_id = {trial.user_attrs["run_id"]: trial for trial in trials(finished)}
    for name in ("001-s41000", "003-s41000"):
        assert states[name].score is None
        assert states[name].message == f"fake {states[name].outcome}"
        assert by_id[name].value is None
        assert by_id[name].state.name == "FAIL"
        assert by_id[name].user_attrs["outcome"] == states[name].outcome
    assert by_id["002-s41000"].params == dict(states["002-s41000"].run.params)


def test_the_ledger_adds_up(finished: Path) -> None:
    history = read_study(finished).history
    entries = {(entry.phase, entry.outcome): entry for entry in ledger(history)}
    assert {place: entry.runs for place, entry in entries.items()} == {
        (SEARCH, "finished"): 2,
        (SEARCH, "out_of_memory"): 1,
        (SEARCH, "non_finite"): 1,
        (RACE, "finished"): 2,
        (CONFIRM, "finished"): 4,
    }
    assert entries[RACE, "finished"].cost == Cost(steps=8, responses=2048, tokens=8192, seconds=2.0)
    assert total(history).responses == 10 * 1024


def test_best_yaml_trains_what_won(finished: Path) -> None:
    winner = read_study(finished).winner
    text = winner.best_yaml.read_text()
    assert text.startswith("# Configuration c002 of study s.\n# eval/score ")
    assert "(standard error), 2 seeds." in text
    config = loader.load(winner.best_yaml).config
    assert config.actor.learning_rate == winner.params["actor_learning_rate"]
    assert config.algorithm.ppo_epochs == winner.params["ppo_epochs"]
    assert (config.train.steps, config.train.save_every) == (4, 50)  # the tuner's own settings stay out


def test_checkpoints_of_all_but_the_winner_are_given_back(finished: Path) -> None:
    kept = {path.parent.name for path in (finished / "trials").glob("*/checkpoints")}
    assert kept == {"002-s43000", "002-s43001"}


def test_a_study_that_is_over_is_only_read_again(copied: Path, tools: ModuleType, tmp_path: Path) -> None:
    log, first = tmp_path / "log", read_study(copied).winner
    assert tools.tune(tmp_path, copied, {"log": str(log)}, resume=True) == first
    assert not log.exists()


def test_a_resumed_study_keeps_what_makes_its_runs_comparable(copied: Path, tools: ModuleType) -> None:
    with pytest.raises(ConfigError, match="'steps' cannot change in a study that has begun"):
        tools.tune(copied.parent, copied, {}, resume=True, overrides=["steps=9"])
    tools.tune(copied.parent, copied, {}, resume=True, overrides=["budget.hours=2", "budget.trials=20"])
    assert read_study(copied).budget_seconds == 7200


def test_no_gain_is_a_valid_ending_and_observers_see_all(tmp_path: Path, tools: ModuleType) -> None:
    recorder = tools.Recorder()
    winner = tools.tune(tmp_path, tools.study(), {"flat": True}, observer=recorder)
    assert (winner.config_id, dict(winner.params)) == ("c000", {})
    assert winner.verdict.startswith("No gain shown over the base")
    assert loader.load(winner.best_yaml).config.actor.learning_rate == 1e-3  # the base's
    assert recorder.last.winner == winner
    assert any("000-s1000 finished: eval/score 0.5" in text for text in recorder.events)
    running = [sum(s.outcome is None for s in view.history.runs) for view in recorder.views]
    assert max(running) == 2


def test_hours_end_a_study_early(tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(scheduler: Scheduler) -> float:
        return 7200.0 if len(scheduler.history.runs) >= 3 else 0.0

    monkeypatch.setattr(Scheduler, "seconds", property(seconds))
    winner = tools.tune(tmp_path, tools.study(budget={"hours": 1}), {})
    assert winner.verdict.startswith("Ended by budget.hours = 1 before confirmation was over: c001 leads")
    assert (winner.config_id, winner.comparison) == ("c001", None)
    assert len(read_study(tmp_path / "s").history.runs) <= 4


def test_a_killed_process_is_infrastructure_once(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leverl.tune.running.scheduler.machine_memory", lambda: Memory(1 << 20, 1 << 40))
    recorder = tools.Recorder()
    fake = {"kill": {"001-s1000": 1, "002-s1000": 2}}
    tools.tune(tmp_path, tools.study(limits={"memory_gb": 64.0}), fake, observer=recorder)
    view = check_whole(tmp_path / "s", 10)
    outcomes = {state.run.id: state.outcome for state in view.history.runs}
    assert outcomes["001-s1000"] is Outcome.FINISHED
    assert outcomes["002-s1000"] is Outcome.OUT_OF_MEMORY  # twice, and it was larger than half the machine
    assert "001-s1000: killed by SIGKILL: not its fault, one more attempt" in recorder.events
    assert (tmp_path / "s" / "trials" / ".earlier" / "001-s1000-1").is_dir()


def test_a_study_where_everything_crashes_gives_up(tmp_path: Path, tools: ModuleType) -> None:
    with pytest.raises(
        TrainingFailed, match=r"all of the first 4 runs crashed.*the reward function is broken"
    ):
        tools.tune(tmp_path, tools.study(), {"crash_all": True})
    log = tmp_path / "log"
    winner = tools.tune(tmp_path, tmp_path / "s", {"log": str(log)}, resume=True, retry_failed=True)
    assert winner.comparison is not None
    view = read_study(tmp_path / "s")
    assert len(view.history.runs) == 10
    assert all(state.outcome is Outcome.FINISHED for state in view.history.runs)


def test_a_grid_side_by_side_goes_through_every_cell_once(tmp_path: Path, tools: ModuleType) -> None:
    space = {"ppo_epochs": [1, 2], "actor_learning_rate": [1e-3, 3e-3]}
    winner = tools.tune(tmp_path, tools.study(strategy="grid", space=space, budget={}, parallel=4), {})
    view = check_whole(tmp_path / "s", 4 + 2 + 4)  # the base is one of the cells
    assert view.sampler == "cell by cell"
    assert dict(winner.params) == {"ppo_epochs": 2, "actor_learning_rate": 3e-3}


# --- dying and going on -----------------------------------------------------------------------------------------


class Tuner:
    """A tuner in a process of its own."""

    def __init__(self, tools: ModuleType, out: Path, what: Any, fake: dict[str, Any]) -> None:
        content = json.dumps(what) if isinstance(what, dict) else str(what)
        self.process = subprocess.Popen(
            [sys.executable, str(tools.TUNER), str(out), content, json.dumps(fake)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self) -> str:
        text, _ = self.process.communicate(timeout=60)
        return text


def half_way(folder: Path) -> bool:
    metrics = RunFolder(folder).metrics
    return metrics.exists() and len(metrics.read_text().splitlines()) == 2


def test_a_killed_tuner_loses_and_doubles_nothing(tmp_path: Path, tools: ModuleType) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    os.mkfifo(gate)
    fake = {"log": str(log), "gate": str(gate), "gate_from": "002", "noise": 0.0}
    tuner = Tuner(tools, tmp_path, tools.study(), fake)
    runs = tmp_path / "s" / "trials"
    tools.wait_until(lambda: half_way(runs / "002-s1000") and half_way(runs / "003-s1000"))
    tuner.process.kill()
    tuner.end()
    lives, dies = (load_record(RunFolder(runs / name).record) for name in ("002-s1000", "003-s1000"))
    assert lives.alive
    assert dies.alive
    os.kill(dies.pid, signal.SIGKILL)
    tools.wait_until(lambda: not dies.alive)

    class OpensTheGate(tools.Recorder):
        def event(self, text: str) -> None:
            super().event(text)
            if "adopted" in text:
                tools.open_gate(gate)

    recorder = OpensTheGate()
    winner = tools.tune(tmp_path, tmp_path / "s", fake, resume=True, observer=recorder)
    assert f"002-s1000 is still running (process {lives.pid}): adopted" in recorder.events
    check_whole(tmp_path / "s", 10)
    assert starts(log)["002-s1000"] == 1  # lived on
    assert starts(log)["003-s1000"] == 2  # lost, and started again with the same seed
    assert sum(starts(log).values()) == 11
    assert winner.config_id == "c001"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_runs_at_a_checkpoint(
    tmp_path: Path, tools: ModuleType, number: signal.Signals, code: int
) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    os.mkfifo(gate)
    fake = {"log": str(log), "gate": str(gate), "gate_from": "001"}
    tuner = Tuner(tools, tmp_path, tools.study(), fake)
    run = tmp_path / "s" / "trials" / "001-s1000"
    tools.wait_until(lambda: half_way(run))
    tuner.process.send_signal(number)
    assert "go on with: leverl tune --resume" in tuner.end()
    assert tuner.process.returncode == code
    assert load_record(RunFolder(run).record).outcome is Outcome.INTERRUPTED
    assert read_study(tmp_path / "s").history.runs[1].outcome is None
    if number == signal.SIGINT:
        return
    tools.open_gate(gate)
    tools.tune(tmp_path, tmp_path / "s", fake, resume=True)
    assert starts(log)["001-s1000 resume"] == 1
    view = check_whole(tmp_path / "s", 10)
    assert view.history.runs[1].evaluations.steps == (1, 2, 3, 4)


def test_a_decision_without_a_process_is_carried_out_on_resume(tmp_path: Path, tools: ModuleType) -> None:
    """The tuner died between the database and the process: the run exists, its folder does not."""

    class Dies(LocalExecutor):
        def start(self, command: Command, *, run_id: str, folder: Path, token: str) -> Any:
            if run_id == "002-s1000":
                raise SystemExit
            return super().start(command, run_id=run_id, folder=folder, token=token)

    with pytest.raises(SystemExit):
        tools.tune(tmp_path, tools.study(), {}, executor=Dies())
    log = tmp_path / "log"
    tools.tune(tmp_path, tmp_path / "s", {"log": str(log)}, resume=True)
    assert starts(log)["002-s1000"] == 1
    check_whole(tmp_path / "s", 10)


# --- guards -----------------------------------------------------------------------------------------------------


def test_two_tuners_on_one_study(copied: Path, tools: ModuleType) -> None:
    holder = f"is being tuned by process {os.getpid()} on "
    with locked(copied), pytest.raises(ConfigError, match=holder) as caught:
        tools.tune(copied.parent, copied, {}, resume=True)
    assert caught.value.exit_code == 2


def test_a_taken_name_stops_until_it_is_cleaned(copied: Path, tools: ModuleType) -> None:
    with pytest.raises(ConfigError, match=r"--resume .*\n.*--name s-2.*\n.*--clean"):
        tools.tune(copied.parent, tools.study(), {})
    assert len(read_study(copied).history.runs) == 10
    with pytest.raises(TrainingFailed, match="runs crashed"):
        tools.tune(copied.parent, tools.study(), {"crash_all": True}, clean=True)
    assert len(read_study(copied).history.runs) < 10


def test_clean_deletes_studies_only(tmp_path: Path, tools: ModuleType) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="is no study"):
        tools.tune(tmp_path, tools.study(), {}, clean=True)
    assert (tmp_path / "s" / "thesis.tex").exists()


def test_a_full_disk_stops_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="GiB are free") as caught:
        disk.check_space(tmp_path / "not" / "there", 1 << 60)
    assert caught.value.exit_code == 4


def test_sqlite_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mount:
        def __init__(self, mountpoint: str, fstype: str) -> None:
            self.mountpoint, self.fstype = mountpoint, fstype

    monkeypatch.setattr(
        storage.psutil, "disk_partitions", lambda all: [Mount("/", "ext4"), Mount(str(tmp_path), "nfs4")]
    )
    with pytest.raises(EnvironmentProblem, match=r"network file system \(nfs4\).*--out"):
        Store(tmp_path / "s", "s", maximize=True)
    storage.refuse_network(Path("/"))


def test_watching_needs_a_study(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no study"):
        read_study(tmp_path)
