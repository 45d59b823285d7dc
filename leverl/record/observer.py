"""What a training run tells whoever watches it; the loop calls, views implement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leverl.record.metrics import MetricValue
from leverl.record.run_record import RunRecord


@dataclass(frozen=True)
class Sample:
    """One response, as shown to people and written to `samples/`."""

    prompt: str
    response: str
    score: float | None
    ground_truth: str
    truncated: bool


class Observer(Protocol):
    """Called from the training loop; must be quick and must not raise."""

    def started(self, name: str, config: Mapping[str, Any], record: RunRecord) -> None:
        """The run begins (or goes on) at `record.step`, up to `record.until`."""

    def note(self, text: str) -> None:
        """Something a person should know; also kept in `run.json`."""

    def phase(self, name: str) -> None:
        """What happens now: "generating", "scoring", "training", "evaluating", "saving" …"""

    def stepped(self, step: int, metrics: Mapping[str, MetricValue], samples: Sequence[Sample]) -> None:
        """A step is complete; `metrics` holds `eval/…` where this step was evaluated."""

    def saved(self, step: int, path: str) -> None:
        """A checkpoint was written."""

    def ended(self, record: RunRecord) -> None:
        """The run is over; `record.outcome` says how."""


class Silent:
    """Watches nothing."""

    def started(self, name: str, config: Mapping[str, Any], record: RunRecord) -> None: ...
    def note(self, text: str) -> None: ...
    def phase(self, name: str) -> None: ...
    def stepped(self, step: int, metrics: Mapping[str, MetricValue], samples: Sequence[Sample]) -> None: ...
    def saved(self, step: int, path: str) -> None: ...
    def ended(self, record: RunRecord) -> None: ...
