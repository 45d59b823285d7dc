"""Limits on runs: memory, time, silence, and a machine that runs out of memory."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from leverl.executors import machine
from leverl.executors.local import LocalExecutor
from leverl.executors.machine import Memory, machine_memory
from leverl.executors.protocol import Handle
from leverl.record.layout import RunFolder
from leverl.record.run_record import Outcome
from leverl.tune import study
from leverl.tune.model import Cost, History
from leverl.tune.running.watchdog import Breach, Limits, Watchdog, limits_of

GB = 1 << 30
PLENTY = Memory(16 * GB, 8 * GB)


class Sized(LocalExecutor):
    """An executor whose runs hold what it is told."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self.sizes = dict(sizes)
        self.asked = 0

    def memory(self, handle: Handle) -> int:
        self.asked += 1
        return self.sizes[handle.run_id]


class Scene:
    """Runs `a` and `b`, begun ten seconds ago, with their folders."""

    def __init__(self, tools: ModuleType, folder: Path, limits: Limits, sizes: Mapping[str, int]) -> None:
        self.executor = Sized(sizes)
        self.memory = PLENTY
        self.watchdog = Watchdog(limits, self.executor, machine=lambda: self.memory)
        begun = time.time() - 10
        self.handles = {name: Handle(name, 1 + i, begun, f"token-{name}") for i, name in enumerate(sizes)}
        states = [tools.state(f"c{name}", {}, outcome=None) for name in sizes]
        self.states = [
            replace(s, run=replace(s.run, id=name), folder=folder / name, cost=Cost())
            for s, name in zip(states, sizes, strict=True)
        ]
        for name in sizes:
            (folder / name).mkdir()

    def check(self, now: float) -> list[Breach]:
        return self.watchdog.check(self.handles, History(tuple(self.states)), now)

    def step(self, name: str, steps: int, seconds: float) -> None:
        """The run has written its next step."""
        number = list(self.handles).index(name)
        self.states[number] = replace(self.states[number], cost=Cost(steps=steps, seconds=seconds))
        with RunFolder(self.states[number].folder).metrics.open("a") as file:
            file.write("{}\n")


def test_a_run_over_its_memory_is_ended(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(memory_bytes=5 * GB), {"a": round(6.2 * GB), "b": 5 * GB})
    assert scene.check(0.0) == [Breach("a", Outcome.OUT_OF_MEMORY, "held 6.2 GB resident, limit 5.0 GB")]
    small = Scene(tools, tmp_path, Limits(memory_bytes=5 << 20), {"c": 6 << 20})
    assert small.check(0.0)[0].reason == "held 6 MB resident, limit 5 MB"


def test_a_run_over_its_time_is_ended(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(run_seconds=60.0), {"a": 1, "b": 1})
    scene.handles["b"] = replace(scene.handles["b"], created=time.time() - 5)
    assert scene.check(100.0) == []  # ten seconds and five
    assert scene.check(149.0) == []
    (breach,) = scene.check(151.0)
    assert breach == Breach("a", Outcome.TIMED_OUT, "not over after 1:01, limit 1:00")
    again = replace(scene.handles["a"], pid=9, created=time.time())  # another attempt begins anew
    scene.handles["a"] = again
    assert {breach.run_id for breach in scene.check(157.0)} == {"b"}


def test_a_clock_that_is_set_ends_no_run(
    tools: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tools, tmp_path, Limits(run_seconds=60.0), {"a": 1})
    assert scene.check(0.0) == []
    monkeypatch.setattr(time, "time", lambda: 1e10)
    assert scene.check(5.0) == []


def test_no_limits_no_breach_and_not_more_often_than_once_a_second(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(), {"a": 999 * GB})
    for tenth in range(25):
        assert scene.check(tenth / 10) == []
    assert scene.executor.asked == 3


def test_the_default_limit_is_a_fair_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leverl.tune.running.watchdog.machine_memory", lambda: Memory(20 * GB, GB))
    assert limits_of(study.Limits(), parallel=2) == Limits(9 * GB, None)
    assert limits_of(study.Limits(memory_gb=7, run_hours=2), parallel=2) == Limits(7 * 2**30, 7200.0)


# --- a machine that runs out of memory --------------------------------------------------------------------------


def test_the_largest_run_is_ended_before_the_kernel_kills_the_tuner(
    tools: ModuleType, tmp_path: Path
) -> None:
    scene = Scene(tools, tmp_path, Limits(), {"a": 5 * GB, "b": 9 * GB})
    scene.memory = Memory(16 * GB, GB)
    assert scene.check(0.0) == []
    scene.memory = Memory(16 * GB, GB // 2)  # less than a twentieth
    reason = "the machine had 512 MB of 16.0 GB memory left, and this run held 9.0 GB"
    assert scene.check(1.0) == [Breach("b", Outcome.OUT_OF_MEMORY, reason)]
    assert scene.check(2.0) == []  # what it held comes free
    assert [breach.run_id for breach in scene.check(7.0)] == ["b"]
    scene.memory = Memory(2 * GB, 400 << 20)  # a fifth, but less than half a gigabyte
    assert [breach.run_id for breach in scene.check(14.0)] == ["b"]


def test_a_small_run_is_not_blamed_for_other_programs(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(), {"a": GB, "b": 2 * GB})
    scene.memory = Memory(16 * GB, 0)
    (breach,) = scene.check(0.0)
    assert (breach.run_id, breach.outcome) == ("b", Outcome.LOST)
    assert breach.reason.endswith("this run held 2.0 GB: other programs hold the rest")


def test_no_run_no_victim(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(), {})
    scene.memory = Memory(16 * GB, 0)
    assert scene.check(0.0) == []


# --- silence ----------------------------------------------------------------------------------------------------


def test_silence_is_told_once_each_time(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(), {"a": 1})
    scene.step("a", 1, 20.0)
    assert scene.check(0.0) == []
    scene.step("a", 2, 40.0)
    assert scene.check(20.0) == []
    assert scene.check(79.0) == []
    assert scene.check(81.0) == [Breach("a", None, "no progress for 1:01 (usual 0:20)")]
    assert scene.check(90.0) == []
    scene.step("a", 3, 60.0)
    assert scene.check(100.0) == []
    assert scene.check(350.0) == [Breach("a", None, "no progress for 4:10 (usual 0:20)")]


def test_slow_steps_may_take_three_times_as_long(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(), {"a": 1})
    scene.check(0.0)
    scene.step("a", 1, 2000.0)
    assert scene.check(10.0) == []
    assert scene.check(6009.0) == []
    assert scene.check(6011.0) == [Breach("a", None, "no progress for 1:40:01 (usual 33:20)")]


def test_a_run_that_never_gets_going_is_told_of(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(), {"a": 1})
    assert scene.check(0.0) == []
    assert scene.check(289.0) == []  # begun ten seconds before
    assert scene.check(291.0) == [Breach("a", None, "no step yet after 5:01")]


def test_an_adopted_run_has_been_silent_before(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(), {"a": 1})
    scene.handles["a"] = replace(scene.handles["a"], created=time.time() - 1000)
    scene.step("a", 5, 10.0)
    written = time.time() - 300
    os.utime(RunFolder(scene.states[0].folder).metrics, (written, written))
    assert scene.check(0.0) == [Breach("a", None, "no progress for 5:00 (usual 0:02)")]


def test_who_is_ended_is_not_called_silent_too(tools: ModuleType, tmp_path: Path) -> None:
    scene = Scene(tools, tmp_path, Limits(run_seconds=500.0), {"a": 1})
    scene.check(0.0)
    assert [breach.outcome for breach in scene.check(600.0)] == [Outcome.TIMED_OUT]


# --- the machine's memory ---------------------------------------------------------------------------------------


def test_memory_without_containers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "_OWN", tmp_path / "none")
    found = machine_memory()
    assert 0 < found.available <= found.total


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_with_less_memory_than_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int
) -> None:
    own, root = tmp_path / "cgroup", tmp_path / "fs"
    own.write_text("9:cpu:/x\n4:cpuset,memory:/pod/box\n" if version == 1 else "0::/pod/box\n")
    limit, used, cache = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        if version == 1
        else ("memory.max", "memory.current", "inactive_file")
    )
    pod = (root / "memory" if version == 1 else root) / "pod"
    (pod / "box").mkdir(parents=True)
    (pod / limit).write_text(f"{64 << 20}\n")
    (pod / used).write_text(f"{60 << 20}\n")
    (pod / "memory.stat").write_text(f"anon 5\n{cache} {1 << 20}\n")
    (pod / "box" / limit).write_text(f"{1 << 62}\n" if version == 1 else "max\n")
    (pod / "box" / used).write_text("123\n")
    monkeypatch.setattr(machine, "_OWN", own)
    monkeypatch.setattr(machine, "_CGROUPS", root)
    assert machine_memory() == Memory(64 << 20, 5 << 20)
    (pod / used).write_text(f"{80 << 20}\n")
    assert machine_memory().available == 0
