"""SIGKILL to tuners, runs and fork servers at random moments: nothing is lost, doubled or left running.

Tuners are forked from a warm process, so that their moments of death spread over their work and not over their
imports. No check depends on timing: whatever the moment, the study goes on when it is resumed, and in the end it
has exactly the runs and results of one that was left in peace.
"""

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

import psutil
import pytest

from leverl.executors.forking import ForkServer
from leverl.executors.handles import issue_ticket, read_handle
from leverl.executors.protocol import Handle
from leverl.record.layout import RunFolder
from leverl.record.metrics import read_lines
from leverl.record.process import Exit
from leverl.record.run_record import Outcome
from leverl.tune.store.decisions import read_decisions
from leverl.tune.view import read_study

PRELOAD = (
    "leverl.tune.run_study",
    "leverl.tune.surrogate.model",
    "leverl.tune.samplers.random",
    "leverl.record.readers.leverl",
    "optuna.storages",
    "optuna.study",
    "alembic.migration",
    "sqlalchemy.dialects.sqlite",
)
PACE = 0.05
NEVER = threading.Event()


@pytest.fixture(scope="module")
def memory_folder() -> Iterator[Path]:
    """In memory where there is such a place: a database waits for the disk, and no kill reaches the disk."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="leverl-crashes-", dir=place))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def nursery(memory_folder: Path, tools: ModuleType) -> Iterator["Nursery"]:
    found = Nursery(memory_folder, tools)
    yield found
    found.close()


class Nursery:
    """A process that has imported all that a tuner needs, and forks tuners."""

    def __init__(self, folder: Path, tools: ModuleType) -> None:
        self.folder = folder
        self.tools = tools
        self._server = ForkServer(PRELOAD, os.environ)
        assert self._server.ready()
        self._born = 0

    def start(self, out: Path, what: str, fake: dict[str, Any]) -> Handle:
        """A tuner of the study; `what` is the study as JSON, or its folder."""
        self._born += 1
        place, token = out / "tuners" / str(self._born), f"tuner-{os.getpid()}-{self._born}"
        place.mkdir(parents=True)
        issue_ticket(place, token)
        argv = [sys.executable, str(self.tools.TUNER), str(out), what, json.dumps(fake)]
        env = {**os.environ, "OUT": str(out)}
        started = self._server.start(
            {
                "argv": argv,
                "env": env,
                "cwd": os.getcwd(),
                "folder": str(place),
                "log": str(place / "log"),
                "token": token,
            }
        )
        assert started is not None
        return Handle(str(place / "log"), *started, token)

    def exit_of(self, tuner: Handle) -> Exit | None:
        return self._server.exit_of(tuner.pid)

    def wait(self, tuner: Handle, seconds: float) -> Exit | None:
        """How the tuner ended, or None after that time."""
        end = monotonic() + seconds
        while (found := self.exit_of(tuner)) is None and monotonic() < end:
            NEVER.wait(0.005)
        return found

    def end(self, tuner: Handle) -> None:
        """Let the tuner do all its work."""
        found = self.wait(tuner, 120)
        assert found is not None, "the tuner does not come to an end"
        assert found.code == 0, Path(tuner.run_id).read_text()[-4000:]

    def close(self) -> None:
        self._server.close()


@dataclass
class Victim:
    """A study whose processes are killed."""

    nursery: Nursery
    out: Path
    study: dict[str, Any]
    random: random.Random
    patience: float = 1.0  # seconds, roughly what a tuner needs for a quarter of the study
    kills: Counter[str] = field(default_factory=Counter)
    killed_runs: Counter[str] = field(default_factory=Counter)
    tuner: Handle | None = None

    @property
    def folder(self) -> Path:
        return self.out / self.study["name"]

    @property
    def fake(self) -> dict[str, Any]:
        return {"log": str(self.out / "starts"), "pace": PACE, "clings": 0.5}

    def torment(self, kills: int) -> None:
        """Kill up to so many processes, as long as the study is not over."""
        while sum(self.kills.values()) < kills:
            if self.tuner is None:
                self._start(suicidal=self.random.random() < 0.4)
            kind = self.random.choices(("tuner", "run", "server", "tuner and run"), (2, 5, 1, 2))[0]
            if not self._moment(wait_for_a_run=kind != "tuner"):
                if self.tuner is None:
                    return
                self.tuner = None
                continue
            if kind in ("tuner", "tuner and run"):
                self._kill_the_tuner()
            if kind in ("run", "tuner and run"):
                self._kill_a_run()
            if kind == "server":
                self._kill_a_server()

    def _moment(self, *, wait_for_a_run: bool) -> bool:
        """Wait for a random moment; False if the tuner ended before, and there is none if the study is over."""
        assert self.tuner is not None
        found = None
        while wait_for_a_run and found is None and not self._unhurt():
            found = self.nursery.wait(self.tuner, 0.03)
        longest = 4 * PACE if wait_for_a_run else self.patience
        found = found or self.nursery.wait(self.tuner, self.random.uniform(0.0, longest))
        if found is None:
            return True
        if found.signal == signal.SIGKILL:
            self.kills["tuner, before a change"] += 1
        else:
            assert found.code == 0, Path(self.tuner.run_id).read_text()[-4000:]
            self.tuner = None
        return False

    def finish(self) -> None:
        """Go on until the study is over."""
        if self.tuner is not None and self.nursery.exit_of(self.tuner) is None:
            self._kill_the_tuner()
        self._start(suicidal=False)
        assert self.tuner is not None
        self.nursery.end(self.tuner)

    def _start(self, *, suicidal: bool) -> None:
        begun = (self.folder / "study.yaml").exists()
        fake = {**self.fake, **({"die": int(2 ** self.random.uniform(0, 8))} if suicidal else {})}
        if not begun and self.folder.exists():
            shutil.rmtree(self.folder)  # died before there was a study
        self.tuner = self.nursery.start(self.out, str(self.folder) if begun else json.dumps(self.study), fake)

    def _living(self) -> list[Handle]:
        runs = (self.folder / "trials").glob("[!.]*")
        return [found for run in sorted(runs) if (found := read_handle(run.name, run)) is not None]

    def _unhurt(self) -> list[Handle]:
        """A second time a killed run counts as lost, and the study would end with another result."""
        return [run for run in self._living() if not self.killed_runs[run.run_id]]

    def _kill_the_tuner(self) -> None:
        assert self.tuner is not None
        os.kill(self.tuner.pid, signal.SIGKILL)
        assert self.nursery.wait(self.tuner, 60) is not None
        self.tuner = None
        self.kills["tuner"] += 1

    def _kill_a_run(self) -> None:
        unhurt = self._unhurt()
        if unhurt:
            run = self.random.choice(unhurt)
            os.kill(run.pid, signal.SIGKILL)
            self.killed_runs[run.run_id] += 1
            self.kills["run"] += 1

    def _kill_a_server(self) -> None:
        for run in self._living():
            try:
                parent = psutil.Process(run.pid).parent()
                if parent is not None and "leverl.executors.fork_server" in parent.cmdline():
                    parent.kill()
                    self.kills["server"] += 1
                    return
            except psutil.NoSuchProcess:
                continue


def results(folder: Path) -> dict[str, Any]:
    """What a study has found, without times and processes."""
    view = read_study(folder)
    found: dict[str, Any] = {
        state.run.id: (
            state.run.config_id,
            dict(state.run.params),
            state.run.seed,
            state.run.phase,
            state.outcome,
            state.score,
            state.cost.steps,
        )
        for state in view.history.runs
    }
    assert len(found) == len(view.history.runs)
    winner = view.winner
    assert winner is not None
    return {**found, "winner": (winner.config_id, dict(winner.params), winner.verdict)}


def check_whole(victim: Victim) -> None:
    """Every run exactly once: in the history, in Optuna's trials, on the disk, in its metrics."""
    folder = victim.folder
    states = read_study(folder).history.runs
    ids = sorted(state.run.id for state in states)
    assert len({(state.run.config_id, state.run.seed, state.run.phase) for state in states}) == len(ids)
    assert {state.outcome for state in states} == {Outcome.FINISHED}
    assert sorted(path.name for path in (folder / "trials").glob("[!.]*")) == ids
    assert sorted(one.run.id for one in read_decisions(folder)) == ids
    assert trial_ids(folder) == ids
    for run_id in ids:
        metrics = RunFolder(folder / "trials" / run_id).metrics
        assert [step for step, _ in read_lines(metrics)] == [1, 2, 3, 4], run_id
    starts = Counter((victim.out / "starts").read_text().split())
    for run_id in ids:
        assert 1 <= starts[run_id] <= 1 + victim.killed_runs[run_id], run_id


def trial_ids(folder: Path) -> list[str]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")
    study = optuna.load_study(study_name=folder.name, storage=storage)
    found = sorted(trial.user_attrs["run_id"] for trial in study.get_trials())
    storage.remove_session()
    storage.engine.dispose()
    return found


def processes_of(out: Path) -> list[psutil.Process]:
    """Everything that still runs for the studies in `out`: servers and runs have the path in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            names_it = str(out) in " ".join([*process.environ().values(), *process.cmdline()])
            if names_it and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def torment_studies(nursery: Nursery, kills: int, seed: int) -> Counter[str]:
    """As many studies as it takes."""
    total: Counter[str] = Counter()
    while sum(total.values()) < kills:
        seed += 1
        study = nursery.tools.study(budget={"trials": 14}, seed=seed)
        peace = Victim(nursery, nursery.folder / f"peace-{seed}", study, random.Random(seed))
        begun = monotonic()
        peace.finish()
        patience = (monotonic() - begun) / 4
        victim = Victim(nursery, nursery.folder / f"victim-{seed}", study, random.Random(seed), patience)
        victim.torment(min(kills - sum(total.values()), 20))
        victim.finish()
        check_whole(victim)
        assert results(victim.folder) == results(peace.folder)
        nursery.tools.wait_until(lambda victim=victim: not processes_of(victim.out))
        total += victim.kills
    return total


@pytest.mark.timeout(900)
def test_kills_at_random_moments(nursery: Nursery) -> None:
    total = torment_studies(nursery, 25, seed=0)
    assert sum(total.values()) >= 25
    print(dict(total))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_kills_at_random_moments(nursery: Nursery) -> None:
    total = torment_studies(nursery, 100, seed=100)
    assert sum(total.values()) >= 100
    print(dict(total))
