"""Processes started, watched, stopped and found again."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pytest

from leverl.executors.forking import can_fork
from leverl.executors.local import LocalExecutor, read_handle, stop_process
from leverl.executors.protocol import Handle
from leverl.record.process import TOKEN_VARIABLE, Command, Exit

PRELOAD = ("leverl.record.layout",)

SAY = "import os, sys; print('said', sys.argv[1:], os.environ.get('COLOUR'), os.getsid(0) == os.getpid()); "
WAIT = "import signal, sys; print('ready', flush=True); signal.pause()"


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    found = LocalExecutor()
    yield found
    found.close()


@pytest.fixture(params=["forked", "plain"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Command]:
    """Makes the command that runs a program, through the fork server or without it."""

    def make(program: str, *arguments: str, token: str = "t") -> Command:
        script = tmp_path / "program.py"
        script.write_text(program)
        env = {TOKEN_VARIABLE: token, "COLOUR": "red"}
        preload = PRELOAD if request.param == "forked" else ()
        return Command((sys.executable, str(script), *arguments), env, preload)

    return make


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    never, deadline = threading.Event(), monotonic() + seconds
    while not (found := condition()):
        assert monotonic() < deadline, "the condition did not come true in time"
        never.wait(0.01)
    return found


def finish(executor: LocalExecutor, handle: Handle) -> Exit:
    """Wait the way the scheduler does."""
    deadline = monotonic() + 60
    while (found := executor.poll(handle)) is None:
        assert monotonic() < deadline
        executor.wait([handle], 1.0)
    return found


def start(executor: LocalExecutor, command: Command, folder: Path, token: str = "t") -> Handle:
    return executor.start(command, run_id=folder.name, folder=folder, token=token)


def test_what_a_process_gets_and_says(
    executor: LocalExecutor, command: Callable[..., Command], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    handle = start(executor, command(SAY + "print('bad', file=sys.stderr); sys.exit(3)", "a", "b c"), folder)
    found = finish(executor, handle)
    assert (found.code, found.signal) == (3, None)
    log = (folder / "log.txt").read_text()
    assert "said ['a', 'b c'] red True" in log
    assert "bad" in log
    start_again = start(executor, command(SAY), folder)
    assert finish(executor, start_again).code == 0
    assert (folder / "log.txt").read_text().count("said") == 2  # appended


def test_a_traceback_ends_in_the_log(
    executor: LocalExecutor, command: Callable[..., Command], tmp_path: Path
) -> None:
    handle = start(executor, command("raise ValueError('no such prompt')"), tmp_path / "run")
    assert finish(executor, handle).code == 1
    assert "ValueError: no such prompt" in (tmp_path / "run" / "log.txt").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_stopping_reaches_children_too(
    executor: LocalExecutor, command: Callable[..., Command], tmp_path: Path, number: signal.Signals
) -> None:
    program = "import os, signal\npid = os.fork()\nprint(pid, flush=True) if pid else None\nsignal.pause()\n"
    handle = start(executor, command(program), tmp_path / "run")
    log = tmp_path / "run" / "log.txt"
    child = int(wait_until(lambda: log.read_text() if log.exists() else ""))
    executor.stop(handle, kill=number == signal.SIGKILL)
    assert finish(executor, handle).signal == number
    wait_until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


def test_a_process_outlives_its_executor_and_is_adopted(
    command: Callable[..., Command], tmp_path: Path
) -> None:
    folder, first = tmp_path / "run", LocalExecutor()
    handle = start(first, command(WAIT, token="mine"), folder, "mine")
    log = folder / "log.txt"
    wait_until(lambda: log.exists() and "ready" in log.read_text())
    first.close()
    second = LocalExecutor()
    assert second.adopt("run", folder, "another token") is None
    found = second.adopt("run", folder, "mine")
    assert found == handle
    assert second.poll(found) is None
    second.stop(found)
    ended = finish(second, found)
    assert (ended.code, ended.signal) == (None, None)  # only its parent is told
    assert ended.peak_memory is not None
    assert second.adopt("run", folder, "mine") is None
    second.close()


def test_adoption_without_a_handle_file_finds_the_token(executor: LocalExecutor, tmp_path: Path) -> None:
    """The tuner died between starting a plain process and writing its handle."""
    script, folder = tmp_path / "program.py", tmp_path / "run"
    script.write_text(WAIT)
    token = f"token-{os.getpid()}"
    handle = start(executor, Command((sys.executable, str(script)), {TOKEN_VARIABLE: token}), folder, token)
    (folder / "process.json").unlink()
    other = LocalExecutor()
    assert other.adopt("run", folder, token) == handle
    other.close()
    executor.stop(handle, kill=True)
    finish(executor, handle)


def test_a_recycled_pid_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "process.json").write_text(json.dumps({"pid": os.getpid(), "created": 1.0, "token": "t"}))
    assert read_handle("run", tmp_path) is None
    stop_process(Handle("run", os.getpid(), 1.0, "t"), kill=True)  # must not hit this process


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "created": 1, "token": "t"}'])
def test_a_broken_handle_file_is_no_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "process.json").write_text(text)
    assert read_handle("run", tmp_path) is None


def test_many_children_of_one_server(executor: LocalExecutor, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import sys; sys.exit(int(sys.argv[1]))")
    handles = {
        code: start(
            executor,
            Command((sys.executable, str(script), str(code)), {TOKEN_VARIABLE: f"many-{code}"}, PRELOAD),
            tmp_path / f"run{code}",
            f"many-{code}",
        )
        for code in range(12)
    }
    assert {code: finish(executor, handle).code for code, handle in handles.items()} == {
        n: n for n in range(12)
    }
    assert len(executor._servers) == 1


def test_modules_are_run_like_python_m(executor: LocalExecutor, tmp_path: Path) -> None:
    command = Command((sys.executable, "-m", "json.tool", "--help"), {}, PRELOAD)
    assert finish(executor, start(executor, command, tmp_path / "run")).code == 0
    assert "usage" in (tmp_path / "run" / "log.txt").read_text()


def test_a_preload_that_cannot_be_imported_falls_back(executor: LocalExecutor, tmp_path: Path) -> None:
    command = Command((sys.executable, "-c", "print('plain')"), {}, ("leverl.no_such_module",))
    assert finish(executor, start(executor, command, tmp_path / "a")).code == 0
    script = tmp_path / "program.py"
    script.write_text("print('plain')")
    command = Command((sys.executable, str(script)), {}, ("leverl.no_such_module",))
    assert finish(executor, start(executor, command, tmp_path / "b")).code == 0
    assert (tmp_path / "b" / "log.txt").read_text() == "plain\n"


def test_what_can_be_forked() -> None:
    assert can_fork((sys.executable, "-m", "leverl")) == (sys.platform == "linux")
    assert not can_fork((sys.executable, "-c", "pass"))
    assert not can_fork(("ls",))


def test_a_server_with_threads_is_not_forked(executor: LocalExecutor, tmp_path: Path) -> None:
    """A fork copies one thread only; locks held by the others would never be released."""
    script = tmp_path / "program.py"
    script.write_text("import os; print('parent', os.getppid())")
    (tmp_path / "starts_a_thread.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    env = {"PYTHONPATH": str(tmp_path)}
    command = Command((sys.executable, str(script)), env, ("starts_a_thread",))
    assert finish(executor, start(executor, command, tmp_path / "run")).code == 0
    assert (tmp_path / "run" / "log.txt").read_text() == f"parent {os.getpid()}\n"
