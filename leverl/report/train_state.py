"""What a view of a training run remembers between steps: recent series, pace, silence."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

from leverl.record.metrics import MetricValue
from leverl.record.observer import Sample
from leverl.record.run_record import RunRecord

_KEPT: Final = 2000
_RECENT: Final = 30
_SILENT_AFTER: Final = 3  # usual steps
_SHORTEST_SILENCE: Final = 10.0  # seconds: nobody worries sooner
_STAGES: Final = (
    ("generate", ("gen",)),
    ("train", ("update_actor", "update_critic")),
    ("evaluate", ("eval",)),
    ("sync", ("sync",)),
)


class TrainState:
    """Filled by the training loop, read by the thread that draws; every field is replaced whole."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = self._last = clock()
        self._first_step = 0
        self._seconds: deque[float] = deque(maxlen=_RECENT)
        self._series: dict[str, deque[float]] = {}
        self._latest: dict[str, float] = {}
        self._step: Mapping[str, MetricValue] = {}
        self._batch = 0
        self.name = ""
        self.step = 0
        self.until = 0
        self.doing = ""
        self.checkpoint: int | None = None
        self.sample: Sample | None = None
        self.best: tuple[int, float] = (0, -math.inf)
        self.over = False

    def start(self, name: str, config: Mapping[str, Any], record: RunRecord) -> None:
        self.name, self.step, self.until = name, record.step, record.until
        self._first_step = record.step
        self._began = self._last = self._clock()
        rollout = config.get("rollout")
        size = rollout.get("batch_size") if isinstance(rollout, Mapping) else None
        self._batch = size if isinstance(size, int) else 0

    def add(self, step: int, metrics: Mapping[str, MetricValue], samples: Sequence[Sample]) -> None:
        now = self._clock()
        if step > self.step:
            self._seconds.append((now - self._last) / (step - self.step))
        self._last, self.step, self._step = now, step, metrics
        for name, value in metrics.items():
            if isinstance(value, int | float):
                self._latest[name] = float(value)
                self._series.setdefault(name, deque(maxlen=_KEPT)).append(float(value))
        score = metrics.get("eval/score")
        if isinstance(score, int | float):
            if score > self.best[1]:
                self.best = (step, float(score))
            self.sample = samples[0] if samples else self.sample
        elif self.sample is None and samples:
            self.sample = samples[0]

    def end(self, record: RunRecord) -> None:
        self.over, self.step, self.doing = True, record.step, ""

    def series(self, metric: str) -> list[float]:
        return list(self._series.get(metric, ()))

    def last(self, metric: str) -> float | None:
        return self._latest.get(metric)

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.until) if self.until else 0.0

    @property
    def elapsed(self) -> float:
        return (self._last if self.over else self._clock()) - self._began

    @property
    def usual(self) -> float | None:
        """Seconds of a usual step; None before the first."""
        steps = list(self._seconds)
        return median(steps) if steps else None

    @property
    def remaining(self) -> float | None:
        """Seconds to the end at the mean pace of recent steps (evaluations included)."""
        steps = list(self._seconds)
        return fmean(steps) * max(0, self.until - self.step) if steps else None

    @property
    def silence(self) -> str | None:
        """`no progress for 4:10 (usual 0:20)` after three usual steps without one."""
        from leverl.report.numbers import clock

        usual = self.usual
        if usual is None or self.over:
            return None
        waited = self._clock() - self._last
        if waited < max(_SILENT_AFTER * usual, _SHORTEST_SILENCE):
            return None
        return f"no progress for {clock(waited)} (usual {clock(usual) if usual >= 1 else f'{usual:.1f} s'})"

    @property
    def reward_error(self) -> float | None:
        """Standard error of the mean reward over the batch; None where spread or size is unknown."""
        spread = self.last("critic/score/std")
        return spread / math.sqrt(self._batch) if spread is not None and self._batch > 1 else None

    @property
    def time_shares(self) -> list[tuple[str, float]]:
        """Where the last step's time went, in order of the stages."""
        whole = self._seconds_of("step")
        if not whole or not math.isfinite(whole):
            return []
        found = [(name, sum(map(self._seconds_of, parts))) for name, parts in _STAGES]
        return [(name, seconds / whole) for name, seconds in found if seconds / whole >= 0.005]

    def _seconds_of(self, part: str) -> float:
        value = self._step.get(f"timing_s/{part}", 0.0)
        return float(value) if isinstance(value, int | float) else 0.0
