"""What a run starts ends with it: children, grandchildren that left its group, helpers that outlive it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pytest

from leverl.executors import ending
from leverl.executors.ending import end_family, end_run, stop_process
from leverl.executors.handles import (
    issue_ticket,
    read_handle,
    take_ticket,
    withdraw_ticket,
    write_handle,
    written_handle,
)
from leverl.executors.local import LocalExecutor, pinned_threads
from leverl.executors.processes import Families, alive_at, resident, token_of
from leverl.executors.protocol import Handle
from leverl.record.process import TOKEN_VARIABLE, Command, Exit

PRELOAD = ("leverl.record.layout",)

DAEMON = """
import os, subprocess, sys, time

def daemonize(how):
    ready, tell = os.pipe()
    code = f"import os, time; print('daemon', os.getpid(), flush=True); os.close({tell}); time.sleep(600)"
    if os.fork() == 0:
        os.setsid()
        if how == "exec":  # another program, in an environment with nothing but the token
            env = {"LEVERL_RUN_TOKEN": os.environ["LEVERL_RUN_TOKEN"]}
            subprocess.Popen([sys.executable, "-c", code], env=env, pass_fds=[tell])
        elif os.fork() == 0:
            exec(code)
        os._exit(0)
    os.close(tell)
    os.read(ready, 1)  # until the daemon has said who it is

daemonize(sys.argv[1])
if sys.argv[2] == "wait":
    time.sleep(600)
"""


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    found = LocalExecutor()
    yield found
    found.close()


@pytest.fixture(params=["forked", "plain"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Command]:
    def make(program: str, *arguments: str) -> Command:
        script = tmp_path / "program.py"
        script.write_text(program)
        preload = PRELOAD if request.param == "forked" else ()
        return Command((sys.executable, str(script), *arguments), {TOKEN_VARIABLE: token(tmp_path)}, preload)

    return make


def token(folder: Path) -> str:
    """Of this test alone, for processes are found by it."""
    return f"{os.getpid()}-{folder.name}"[:64]


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    never, deadline = threading.Event(), monotonic() + seconds
    while not (found := condition()):
        assert monotonic() < deadline, "the condition did not come true in time"
        never.wait(0.01)
    return found


def finish(executor: LocalExecutor, handle: Handle) -> Exit:
    deadline = monotonic() + 60
    while (found := executor.poll(handle)) is None:
        assert monotonic() < deadline
        executor.wait([handle], 1.0)
    return found


def start(executor: LocalExecutor, command: Command, folder: Path) -> Handle:
    return executor.start(command, run_id="run", folder=folder / "run", token=token(folder))


def daemon_of(folder: Path) -> int:
    """The pid that the daemon has printed."""
    return int(wait_until(lambda: said(folder / "run").removeprefix("daemon ").strip()))


def said(folder: Path) -> str:
    """What the run's processes have printed so far."""
    log = folder / "log.txt"
    return log.read_text() if log.exists() else ""


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("how", ["fork", "exec"])
def test_a_daemon_is_killed_with_its_run(
    executor: LocalExecutor, command: Callable[..., Command], tmp_path: Path, how: str
) -> None:
    handle = start(executor, command(DAEMON, how, "wait"), tmp_path)
    daemon = daemon_of(tmp_path)
    assert os.getsid(daemon) != handle.pid
    assert token_of(daemon) == token_of(handle.pid) == handle.token
    executor.stop(handle, kill=True)
    wait_until(lambda: gone(daemon))
    assert finish(executor, handle).signal == signal.SIGKILL


@pytest.mark.parametrize("how", ["fork", "exec"])
def test_a_daemon_does_not_outlive_its_run(
    executor: LocalExecutor, command: Callable[..., Command], tmp_path: Path, how: str
) -> None:
    handle = start(executor, command(DAEMON, how, "end"), tmp_path)
    assert finish(executor, handle).code == 0
    assert gone(daemon_of(tmp_path))


def test_the_daemon_of_a_run_that_died_unseen_is_not_adopted_but_ended(
    command: Callable[..., Command], tmp_path: Path
) -> None:
    first = LocalExecutor()
    handle = start(first, command(DAEMON, "fork", "wait"), tmp_path)
    daemon = daemon_of(tmp_path)
    first.close()
    os.kill(handle.pid, signal.SIGKILL)
    wait_until(lambda: gone(handle.pid))
    assert not gone(daemon)
    second = LocalExecutor()
    assert second.adopt("run", tmp_path / "run", handle.token) is None
    assert gone(daemon)
    second.close()


@pytest.mark.parametrize("main_lives", [True, False])
def test_a_folder_is_cleared_of_its_processes(
    command: Callable[..., Command], tmp_path: Path, main_lives: bool
) -> None:
    first = LocalExecutor()
    handle = start(first, command(DAEMON, "fork", "wait"), tmp_path)
    daemon = daemon_of(tmp_path)
    first.close()
    if not main_lives:
        os.kill(handle.pid, signal.SIGKILL)
        wait_until(lambda: gone(handle.pid))
    issue_ticket(tmp_path / "run", "late")
    end_run("run", tmp_path / "run")
    wait_until(lambda: gone(daemon) and gone(handle.pid))
    assert not take_ticket(tmp_path / "run", 1, 2.0, "late")
    end_run("none", tmp_path / "none")


def test_other_runs_live_on(executor: LocalExecutor, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import time; time.sleep(600)")

    def begin(name: str) -> Handle:
        mine = f"{token(tmp_path)}-{name}"
        command = Command((sys.executable, str(script)), {TOKEN_VARIABLE: mine}, PRELOAD)
        return executor.start(command, run_id=name, folder=tmp_path / name, token=mine)

    a, b = begin("a"), begin("b")
    executor.stop(a, kill=True)
    assert finish(executor, a).signal == signal.SIGKILL
    assert executor.poll(b) is None
    executor.stop(b, kill=True)
    finish(executor, b)


def test_helpers_may_clean_up_when_their_run_is_over(executor: LocalExecutor, tmp_path: Path) -> None:
    script, mark = tmp_path / "program.py", tmp_path / "cleaned"
    script.write_text(f"""
import os, signal, time
if os.fork() == 0:
    def clean(number, frame):
        open({str(mark)!r}, "w").close()
        os._exit(0)
    signal.signal(signal.SIGTERM, clean)
    os.write(1, b"ready")
    time.sleep(600)
time.sleep(0 if os.read(0, 1) else 600)
""")
    env = {TOKEN_VARIABLE: token(tmp_path)}
    handle = start(executor, Command((sys.executable, str(script)), env, PRELOAD), tmp_path)
    wait_until(lambda: "ready" in said(tmp_path / "run"))
    os.kill(handle.pid, signal.SIGKILL)
    assert finish(executor, handle).signal == signal.SIGKILL
    assert mark.exists()


def test_one_that_ignores_the_request_is_killed(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "GRACE_SECONDS", 0.05)
    script = tmp_path / "program.py"
    script.write_text("""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    print("daemon", os.getpid(), flush=True)
    os.write(tell, b"x")
    time.sleep(600)
    os._exit(0)
os.read(ready, 1)
""")
    env = {TOKEN_VARIABLE: token(tmp_path)}
    handle = start(executor, Command((sys.executable, str(script)), env, PRELOAD), tmp_path)
    assert finish(executor, handle).code == 0
    wait_until(lambda: gone(daemon_of(tmp_path)))


def test_a_child_without_the_token_is_known_from_before(tmp_path: Path) -> None:
    """It cleaned its environment and left the group, and its parents died after it had been seen."""
    code = (
        "import os, subprocess, sys, time;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], env={}, start_new_session=True);"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    mine = token(tmp_path)
    main = subprocess.Popen(
        [sys.executable, "-c", code], env={TOKEN_VARIABLE: mine}, stdout=subprocess.PIPE, text=True
    )
    assert main.stdout is not None
    child = int(main.stdout.readline())
    handle = Handle("run", main.pid, psutil.Process(main.pid).create_time(), mine)
    families = Families()
    families.look()
    assert {row.pid for row in families.members(handle)} == {main.pid, child}
    main.kill()
    main.wait()
    main.stdout.close()
    families.look()
    assert {row.pid for row in families.members(handle)} == {child}
    end_family(handle, families)
    wait_until(lambda: gone(child))
    families.forget(handle)
    families.look()
    assert families.members(handle) == []


def test_memory_is_that_of_the_family(executor: LocalExecutor, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("""
import os, time
if os.fork() == 0:
    os.setsid()
held = bytearray(64 << 20)
print("held", flush=True)
time.sleep(600)
""")
    env = {TOKEN_VARIABLE: token(tmp_path)}
    handle = start(executor, Command((sys.executable, str(script)), env), tmp_path)
    wait_until(lambda: said(tmp_path / "run").count("held") == 2)
    wait_until(lambda: executor.memory(handle) > 128 << 20)
    assert executor.memory(handle) < 256 << 20
    executor.stop(handle, kill=True)
    assert (finish(executor, handle).peak_memory or 0) > 128 << 20
    assert executor.memory(handle) == 0


def test_a_clock_that_was_set_does_not_hide_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = token(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        env={TOKEN_VARIABLE: mine},
        stdin=subprocess.PIPE,
    )
    created = psutil.Process(process.pid).create_time()
    write_handle(tmp_path, process.pid, created - 3600, mine)
    wait_until(lambda: token_of(process.pid) == mine)
    assert read_handle("run", tmp_path) == Handle("run", process.pid, created, mine)
    assert alive_at(process.pid, created - 3600, "another token") is None
    assert alive_at(process.pid, created - 3600, "") is None
    stop_process(Handle("run", process.pid, created - 3600, "another token"), kill=True)
    assert process.poll() is None
    process.communicate()
    assert read_handle("run", tmp_path) is None
    assert written_handle("run", tmp_path) == Handle("run", process.pid, created - 3600, mine)


def test_platforms_without_proc_see_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = token(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        env={TOKEN_VARIABLE: mine},
        stdin=subprocess.PIPE,
    )
    handle = Handle("run", process.pid, psutil.Process(process.pid).create_time(), mine)
    wait_until(lambda: token_of(process.pid) == mine)
    monkeypatch.setattr("leverl.executors.processes._PROC", tmp_path / "none")
    families = Families()
    families.look()
    (row,) = families.members(handle)
    assert (row.pid, row.parent, row.group) == (process.pid, os.getpid(), os.getpgid(0))
    assert [found.pid for found in families.carriers(mine)] == [process.pid]
    assert resident([row]) > 1 << 20
    process.communicate()


# --- tickets ----------------------------------------------------------------------------------------------------


def test_a_ticket_lets_one_process_begin(tmp_path: Path) -> None:
    issue_ticket(tmp_path, "a")
    assert not take_ticket(tmp_path, 1, 2.0, "b")
    assert take_ticket(tmp_path, 1, 2.0, "a")
    assert not take_ticket(tmp_path, 3, 4.0, "a")
    assert written_handle("run", tmp_path) == Handle("run", 1, 2.0, "a")
    issue_ticket(tmp_path, "a")
    withdraw_ticket(tmp_path)
    assert not take_ticket(tmp_path, 3, 4.0, "a")
    withdraw_ticket(tmp_path / "no such folder")


def test_a_child_born_after_its_tuner_was_replaced_does_nothing(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tuner died between asking for the process and its birth."""
    script, folder, mine = tmp_path / "program.py", tmp_path / "run", token(tmp_path)
    script.write_text("print('trained')")
    command = Command((sys.executable, str(script)), {TOKEN_VARIABLE: mine}, PRELOAD)
    second = LocalExecutor()

    def too_late(where: Path, what: str) -> None:
        issue_ticket(where, what)
        assert second.adopt("run", where, mine) is None

    monkeypatch.setattr("leverl.executors.local.issue_ticket", too_late)
    handle = start(executor, command, tmp_path)
    assert finish(executor, handle).code == 0
    assert (folder / "log.txt").read_text() == ""
    assert written_handle("run", folder) is None
    second.close()


# --- the fork server dies ---------------------------------------------------------------------------------------


def test_runs_survive_their_fork_server_and_a_new_one_is_started(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text("import os, signal; print('parent', os.getppid(), flush=True); signal.pause()")

    def begin(name: str) -> tuple[Handle, int]:
        mine = f"{token(tmp_path)}-{name}"
        command = Command((sys.executable, str(script)), {TOKEN_VARIABLE: mine}, PRELOAD)
        handle = executor.start(command, run_id=name, folder=tmp_path / name, token=mine)
        return handle, int(wait_until(lambda: said(tmp_path / name).removeprefix("parent ").strip()))

    a, server = begin("a")
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: gone(server))
    assert executor.poll(a) is None
    b, other = begin("b")
    assert other not in (server, os.getpid())
    executor.stop(a, kill=True)
    ended = finish(executor, a)
    assert (ended.code, ended.signal) == (None, None)  # nobody was there to be told
    executor.stop(b)
    assert finish(executor, b).signal == signal.SIGTERM


# --- threads ----------------------------------------------------------------------------------------------------

ASK = """
import os, torch
names = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "RAYON")
print(torch.get_num_threads(), *(os.environ[f"{name}_NUM_THREADS"] for name in names))
"""


@pytest.mark.slow  # imports torch
def test_forked_runs_keep_to_their_threads(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    script = tmp_path / "program.py"
    script.write_text(ASK)
    env = {TOKEN_VARIABLE: token(tmp_path), "OMP_NUM_THREADS": "1"}
    command = Command((sys.executable, str(script)), env, ("torch",))
    assert finish(executor, start(executor, command, tmp_path)).code == 0
    assert said(tmp_path / "run") == "1 1 1 1 1 1\n"
    assert pinned_threads({"COLOUR": "red"}) == {}  # a command that does not say is left alone
