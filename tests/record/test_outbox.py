"""Work for trackers: in order, in another thread, and never to the harm of the caller."""

import threading

import pytest

from leverl.record.outbox import Outbox


def fail() -> None:
    raise OSError("no route to host")


def test_jobs_are_done_in_order_and_elsewhere() -> None:
    outbox, done = Outbox("x"), []
    for number in range(50):
        outbox.put(lambda number=number: done.append((number, threading.current_thread().name)))  # type: ignore[misc]
    assert outbox.close(10)
    assert done == [(number, "leverl-x") for number in range(50)]
    assert outbox.troubles() == []


def test_the_caller_does_not_wait() -> None:
    outbox, gate = Outbox("x"), threading.Event()
    outbox.put(lambda: gate.wait() and None)
    assert not outbox.close(0)
    gate.set()
    assert outbox.close(10)


def test_trouble_is_said_once_and_work_goes_on() -> None:
    outbox, done = Outbox("x"), []
    outbox.put(fail)
    outbox.put(lambda: done.append(1))
    outbox.put(fail)
    assert outbox.close(10)
    assert done == [1]
    assert (outbox.failed, outbox.off) == (2, False)
    assert outbox.troubles() == [
        "tracking with x failed (OSError: no route to host); nothing else is affected"
    ]
    assert outbox.troubles() == []


def test_failures_in_a_row_end_it() -> None:
    outbox, done = Outbox("x", give_up=2), []
    for job in (fail, fail, lambda: done.append(1)):
        outbox.put(job)
    assert outbox.close(10)
    assert done == []
    assert outbox.troubles()[1:] == ["tracking with x is off: it failed 2 times in a row"]


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "abcdef0123456789")

    def refuse() -> None:
        raise PermissionError("key abcdef0123456789 is not valid")

    outbox = Outbox("x")
    outbox.put(refuse)
    outbox.close(10)
    assert "key ••• is not valid" in outbox.troubles()[0]
