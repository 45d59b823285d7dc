"""The metrics file: one JSON line a step, `{"step": N, "data": {"critic/score/mean": 0.5, …}}`.

Non-finite numbers travel as the strings "NaN", "Infinity", "-Infinity"; a metric that was not measured is
absent, never 0. Readers tolerate bare NaN and a half-written last line.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from leverl.record.layout import write_atomically

MetricValue = float | int | list[int]
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class MetricsWriter:
    """Appends steps to a metrics file; each line is flushed, so that a reader can follow it live."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, step: int, data: Mapping[str, MetricValue]) -> None:
        """Append one step."""
        line = {"step": step, "data": {key: _encode(value) for key, value in data.items()}}
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """`(step, data)` of each whole line of a metrics file; nothing where the file does not exist."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                content = json.loads(line)
                yield int(content["step"]), {key: _decode(value) for key, value in content["data"].items()}
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # a line that is still being written, or was cut by a crash


def drop_after(path: Path, step: int) -> int:
    """Remove the lines after `step` (a resumed run writes them again); returns how many went."""
    if not path.is_file():
        return 0
    lines = path.read_text(encoding="utf-8").splitlines()
    kept, dropped = [], 0
    for line in lines:
        try:
            keep = int(json.loads(line)["step"]) <= step
        except (ValueError, KeyError, TypeError):
            keep = False
        kept += [line] if keep else []
        dropped += not keep
    if dropped:
        write_atomically(path, "".join(f"{line}\n" for line in kept))
    return dropped


def _encode(value: MetricValue) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _decode(value: Any) -> Any:
    return _NON_FINITE.get(value, value) if isinstance(value, str) else value
