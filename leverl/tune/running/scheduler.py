"""Carries out what the strategy decides: starts runs, watches them, writes down how they end."""

import secrets
import signal
from dataclasses import replace
from time import monotonic
from typing import Final

from leverl.backends.protocol import Job
from leverl.errors import TrainingFailed
from leverl.executors.machine import machine_memory
from leverl.executors.protocol import Executor, Handle
from leverl.record.layout import RunFolder
from leverl.record.process import Exit
from leverl.record.run_record import Outcome
from leverl.tune.budget import Account
from leverl.tune.model import Continue, History, Run, RunState, StudyObserver, StudyView
from leverl.tune.plan import Plan
from leverl.tune.running.endings import describe, message_of, move_aside, tell
from leverl.tune.running.interruption import StopSignals, StudyInterrupted
from leverl.tune.running.reconcile import Found, look_at
from leverl.tune.running.watchdog import Watchdog, limits_of
from leverl.tune.store.disk import check_room, has_checkpoint
from leverl.tune.store.observe import observe
from leverl.tune.store.outputs import read_clock, write_clock
from leverl.tune.store.progress import read_state
from leverl.tune.store.retention import prune
from leverl.tune.store.storage import Entry, Store
from leverl.tune.store.trouble import full_disk
from leverl.tune.strategy import DONE
from leverl.tune.view import build_view

ATTEMPTS: Final = 2
"""Processes that a run gets when they vanish through no fault of its configuration."""

GRACE_SECONDS: Final = 120.0
"""How long a stopped run may take for its checkpoint before it is killed."""

_HOPELESS: Final = 4  # runs that crashed, with none that did not, before a study gives up


class Scheduler:
    """One sitting of a study: from start or resume to its end, or to a signal."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        executor: Executor,
        observer: StudyObserver,
        *,
        parallel: int,
        poll_seconds: float = 0.2,
        refresh_seconds: float = 1.0,
    ) -> None:
        self._plan = plan
        self._store = store
        self._executor = executor
        self._observer = observer
        self._parallel = parallel
        self._poll_seconds = poll_seconds
        self._refresh_seconds = refresh_seconds
        self._watchdog = Watchdog(limits_of(plan.study.limits, parallel), executor)
        self._handles: dict[str, Handle] = {}
        self._waiting: dict[str, bool] = {}  # runs that need a process again → whether it counts
        self._stopped: dict[str, str] = {}  # runs told to stop early → reason
        self._killed: dict[str, tuple[Outcome, str]] = {}  # runs ended by force → outcome and reason
        self._over: dict[str, RunState] = {}
        self._announced: set[str] = set()
        self._before, self._phase = read_clock(plan.folder)
        self._begun = monotonic()
        self._refreshed = -refresh_seconds
        self._signals = StopSignals()

    @property
    def history(self) -> History:
        """All runs; those that are not over with their curve so far."""
        return observe(
            self._store.entries, self._plan.measure, maximize=self._plan.study.maximize, over=self._over
        )

    @property
    def seconds(self) -> float:
        """Wall time over all sittings."""
        return self._before + monotonic() - self._begun

    def view(self) -> StudyView:
        """The study now."""
        return build_view(self._plan, self.history, phase=self._phase, seconds=self.seconds)

    def run(self) -> str:
        """Work until nothing is left to do; the limit that ended the study before its proof was over, else "".

        Raises:
            StudyInterrupted: SIGINT or SIGTERM came; the runs have been stopped and can be resumed.
            TrainingFailed: the first runs all crashed.
        """
        with self._signals:
            self._reconcile()
            changed = True
            while True:
                changed |= self._collect()
                if self._signals.count:
                    self._stop_everything()
                    self._refresh()
                    raise StudyInterrupted(self._plan.folder, self._signals.number)
                if changed:
                    self._give_up_if_hopeless()
                    ended = self._decide()
                    if ended is not None:
                        self._refresh()
                        return ended
                if changed or monotonic() - self._refreshed >= self._refresh_seconds:
                    self._guard()
                    self._refresh()
                changed = False
                self._executor.wait(self._handles.values(), self._poll_seconds)

    def retry(self, entry: Entry) -> None:
        """Have a run that is over run again, from the beginning."""
        self._store.add(entry.run, self._plan.space, secrets.token_hex(16))

    def _reconcile(self) -> None:
        """Join the database with what the run folders say, and adopt the processes that still live."""
        for entry in self._store.entries:
            run_id = entry.run.id
            if entry.outcome is not None:
                self._over[run_id] = read_state(entry, self._plan.measure)
                continue
            handle = self._executor.adopt(run_id, entry.folder, entry.token)
            if handle is not None:
                self._handles[run_id] = handle
                self._observer.event(f"{run_id} is still running (process {handle.pid}): adopted")
                continue
            found = look_at(entry)
            if found is Found.OVER or found is Found.LOST:
                self._settle(entry, Exit())
            else:
                self._waiting[run_id] = False

    def _decide(self) -> str | None:
        """Start what is due. When the study is over: the limit that cut it short, or "" for its proper end."""
        self._restart_waiting()
        free = self._parallel - len(self._handles)
        if free <= 0:
            return None
        history = self.history
        account = Account(self._plan.study.budget, history, self.seconds, self._parallel)
        step = self._plan.strategy.next(history, free, account)
        for phase, summary in step.finished:
            if phase not in self._announced:
                self._announced.add(phase)
                self._observer.event(f"{phase}: {summary}")
        self._phase = step.phase
        for decision in step.decisions:
            if isinstance(decision, Continue):
                self._continue(decision.run_id)
            else:
                self._start(decision.run)
        if step.phase == DONE and not self._handles and not self._waiting:
            return (account.exhausted or "a budget with less than one run left") if step.out_of_budget else ""
        return None

    def _guard(self) -> None:
        """End runs that hold too much memory or take too long, and runs that are out of the race."""
        history = self.history
        for breach in self._watchdog.check(self._handles, history, monotonic()):
            if breach.outcome is None:
                self._observer.event(f"{breach.run_id}: {breach.reason}")
                continue
            self._killed[breach.run_id] = (breach.outcome, breach.reason)
            self._executor.stop(self._handles[breach.run_id], kill=True)
        continued = {entry.run.id for entry in self._store.entries if entry.continued}
        for stop in self._plan.strategy.stops(history):
            handle = self._handles.get(stop.run_id)
            if handle is not None and stop.run_id not in self._stopped and stop.run_id not in continued:
                self._stopped[stop.run_id] = stop.reason
                self._executor.stop(handle)

    def _start(self, run: Run) -> None:
        check_room(self._plan.folder)
        entry = self._store.add(run, self._plan.space, secrets.token_hex(16))
        self._launch(entry, resume=False)

    def _continue(self, run_id: str) -> None:
        """Have a run that was stopped early do the rest of its steps."""
        check_room(self._plan.folder)
        before = self._store.entry(run_id)
        resume = has_checkpoint(before.folder)
        entry = self._store.add(before.run, self._plan.space, before.token, continued=True)
        self._over.pop(run_id, None)
        self._stopped.pop(run_id, None)
        self._launch(entry, resume=resume)
        self._observer.event(f"{run_id} is wanted after all: it goes on")

    def _restart_waiting(self) -> None:
        while self._waiting and len(self._handles) < self._parallel:
            check_room(self._plan.folder)
            run_id, counts = next(iter(self._waiting.items()))
            del self._waiting[run_id]
            entry = self._store.entry(run_id)
            resume = has_checkpoint(entry.folder) and look_at(entry) is not Found.NOT_STARTED
            token = entry.token if resume else secrets.token_hex(16)
            entry = self._store.again(run_id, token, entry.attempts + counts)
            self._launch(entry, resume=resume)
            self._observer.event(f"{run_id} {'goes on from its checkpoint' if resume else 'starts again'}")

    def _launch(self, entry: Entry, *, resume: bool) -> None:
        run, folder = entry.run, entry.folder.resolve()
        if not resume:
            move_aside(folder)
        config = self._plan.backend.resolve(run.params, self._plan.settings(run)).config
        launch = self._plan.folder.resolve() / "launch" / run.id
        command = self._plan.backend.command(config, Job(run.id, folder, launch, entry.token, resume))
        self._handles[run.id] = self._executor.start(command, run_id=run.id, folder=folder, token=entry.token)

    def _collect(self) -> bool:
        """Settle the runs whose process has ended."""
        ended = [(run_id, exit) for run_id, h in self._handles.items() if (exit := self._executor.poll(h))]
        for run_id, exit in ended:
            del self._handles[run_id]
            self._settle(self._store.entry(run_id), exit)
        return bool(ended)

    def _settle(self, entry: Entry, exit: Exit) -> None:
        """A process is gone: give the run another one, or write down how it ended."""
        run_id = entry.run.id
        outcome, reason = self._outcome(entry, exit)
        if outcome in (Outcome.LOST, Outcome.INTERRUPTED):
            if self._signals.count or entry.attempts < ATTEMPTS:
                self._waiting[run_id] = not self._signals.count
                if not self._signals.count:
                    self._observer.event(f"{run_id}: {describe(exit)}: not its fault, one more attempt")
                return
            outcome = Outcome.OUT_OF_MEMORY if self._memory_was_short(exit) else Outcome.LOST
        message = reason or message_of(entry.folder, outcome, exit)
        state = read_state(replace(entry, outcome=outcome, message=message), self._plan.measure)
        value = state.score.mean if state.score else None
        self._store.finish(run_id, outcome, value, message, state.evaluations)
        self._over[run_id] = state
        prune(self.history, self._plan.study.race.finalists, spared=self._store.earlier)
        self._observer.event(tell(state, self._plan.measure.objective))

    def _outcome(self, entry: Entry, exit: Exit) -> tuple[Outcome, str]:
        """How the run ended, with the reason where it was the tuner that ended it."""
        run_id = entry.run.id
        outcome = self._plan.backend.outcome(entry.folder, exit)
        killed = self._killed.pop(run_id, None)
        if killed is not None and outcome is not Outcome.FINISHED:  # it may have been quicker
            return killed
        if outcome is Outcome.CRASHED and full_disk(message_of(entry.folder, outcome, exit)):
            return Outcome.LOST, ""
        if outcome is Outcome.INTERRUPTED and run_id in self._stopped:
            return Outcome.STOPPED, self._stopped[run_id]
        return outcome, ""

    def _memory_was_short(self, exit: Exit) -> bool:
        """Whether a killed process held more than half of its share of the machine's memory."""
        if exit.signal != signal.SIGKILL or exit.peak_memory is None:
            return False
        return exit.peak_memory > 0.5 * machine_memory().total / self._parallel

    def _give_up_if_hopeless(self) -> None:
        over = list(self._over.values())
        if len(over) >= max(_HOPELESS, 2 * self._parallel) and all(
            s.outcome is Outcome.CRASHED for s in over
        ):
            first = over[0]
            self._stop_everything()
            raise TrainingFailed(
                f"all of the first {len(over)} runs crashed, so the study was stopped. {first.run.id}: "
                f"{first.message} (see {RunFolder(first.folder).log}). When it is mended: "
                f"leverl tune --resume {self._plan.folder} --retry failed"
            )

    def _stop_everything(self) -> None:
        """Stop all runs at a checkpoint; kill those that take too long, or at a second signal."""
        seen, deadline = self._signals.count, monotonic() + GRACE_SECONDS
        for handle in self._handles.values():
            self._executor.stop(handle)
        if self._handles:
            self._observer.event(
                f"stopping {len(self._handles)} runs at a checkpoint (Ctrl-C again kills them)"
            )
        self._signals.count = max(seen, 1)
        while self._handles:
            if self._signals.count > max(seen, 1) or monotonic() > deadline:
                for handle in self._handles.values():
                    self._executor.stop(handle, kill=True)
            self._executor.wait(self._handles.values(), self._poll_seconds)
            self._collect()

    def _refresh(self) -> None:
        self._refreshed = monotonic()
        write_clock(self._plan.folder, self.seconds, self._phase)
        self._observer.refreshed(self.view())


class Unwatched:
    """Observer of a study that nobody watches."""

    def refreshed(self, view: StudyView) -> None: ...
    def event(self, text: str) -> None: ...
    def ended(self, view: StudyView) -> None: ...
