"""What a run's folder says of the run: score, curves, KL, cost."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from leverl.plugins import load
from leverl.record.layout import RunFolder
from leverl.record.run_record import Outcome, Score
from leverl.record.series import RunSeries, Series, mean_of_last, score_of, steps_to_share_of_gain
from leverl.tune.model import Cost, RunState
from leverl.tune.stopping.guards import SIGNALS
from leverl.tune.store.storage import Entry

Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class Measure:
    """What a study reads from its runs: with which reader, and which metrics."""

    reader: str
    objective: str
    last_k: int
    bounded: tuple[str, ...] = ()  # metrics that the study's constraints bound


def read_state(entry: Entry, measure: Measure) -> RunState:
    """The run so far. Only a run that finished has a score; one that was stopped early gets a prediction later,
    for that takes the scale of the other runs' scores.
    """
    state = RunState(entry.run, entry.folder, entry.outcome, message=entry.message)
    series = read_series(entry.folder, measure.reader)
    if series is None:
        return state
    evaluations = series.get(measure.objective)
    return RunState(
        run=entry.run,
        folder=entry.folder,
        outcome=entry.outcome,
        score=_score(series, measure) if entry.outcome is Outcome.FINISHED else None,
        evaluations=evaluations,
        evaluation_errors=series.get(f"{measure.objective}_se"),
        signals={name: series.get(name) for name in SIGNALS},
        kl=_finite(mean_of_last(series.get("kl_divergence"))),
        length=_finite(mean_of_last(series.get("response_length/mean"))),
        steps_to_90=steps_to_share_of_gain(evaluations),
        bounded=_latest(series, measure.bounded),
        cost=_cost(series),
        message=entry.message,
    )


def read_series(folder: Path, reader: str) -> RunSeries | None:
    """The run in `folder`; None where none has begun. Read again only when its files have changed."""
    paths = RunFolder(folder)
    if not paths.exists():
        return None
    return _read(folder, reader, (*_stamp(paths.metrics), *_stamp(paths.record)))


@lru_cache(maxsize=512)
def _read(folder: Path, reader: str, stamp: Stamp) -> RunSeries:  # noqa: ARG001 - the stamp is the cache's key
    return _reader(reader)(folder)


@cache
def _reader(name: str) -> Callable[[Path], RunSeries]:
    read: Callable[[Path], RunSeries] = load("leverl.record.readers", name, "reader").read
    return read


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _score(series: RunSeries, measure: Measure) -> Score | None:
    if measure.objective == "eval/score" and series.record is not None and series.record.score is not None:
        return series.record.score
    errors = series.get(f"{measure.objective}_se")
    return score_of(series.get(measure.objective), errors, measure.last_k)


def _latest(series: RunSeries, names: tuple[str, ...]) -> dict[str, float]:
    found = {name: _finite(mean_of_last(series.get(name))) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _cost(series: RunSeries) -> Cost:
    record = series.record
    lengths = series.get("response_length/mean")
    steps = max(record.step if record else 0, lengths.steps[-1] if lengths.steps else 0)
    responses = _last(series.get("train/responses"))
    tokens = _last(series.get("train/tokens"))
    seconds = record.seconds if record else 0.0
    seconds = seconds or _sum(series.get("timing_s/step"))
    return Cost(steps, responses, tokens, seconds, seconds * (record.gpus if record else 0))


def _last(series: Series) -> int:
    return round(series.values[-1]) if series.values and math.isfinite(series.values[-1]) else 0


def _sum(series: Series) -> float:
    return math.fsum(value for value in series.values if math.isfinite(value))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
