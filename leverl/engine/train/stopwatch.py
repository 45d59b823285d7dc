"""Seconds spent in the parts of a step, and a word to the observer when one begins."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from leverl.record.observer import Observer

_WORDS = {
    "gen": "generating",
    "reward": "scoring",
    "old_log_prob": "log-probs",
    "ref": "reference",
    "values": "values",
    "update_actor": "training",
    "update_critic": "training the critic",
    "sync": "handing over weights",
    "eval": "evaluating",
    "save": "saving",
}


class Stopwatch:
    """`with clock("gen"): …` adds up into `timing_s/gen`."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        self._observer.phase(_WORDS[part])
        began = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[part] = self._seconds.get(part, 0.0) + time.perf_counter() - began

    def lap(self) -> dict[str, float]:
        """Timings since the last lap, the whole step included, and start anew."""
        now = time.perf_counter()
        timings = {f"timing_s/{part}": seconds for part, seconds in self._seconds.items()}
        timings["timing_s/step"] = now - self._began
        self._seconds, self._began = {}, now
        return timings
