"""Samples of a run: what the policy was asked, what it said, and what that scored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leverl.record.layout import RunFolder
from leverl.report import numbers
from leverl.report.blocks import Cell, Column, Table, number_cell

_STEPS = 6
_PER_STEP = 8
_LONGEST = 1500


def table(folder: RunFolder) -> Table | None:
    """Samples of up to six steps from first to last; None when there are none."""
    files = sorted(path for path in folder.samples.glob("*.jsonl") if path.stem.isdigit())
    rows = [row for path in _spread(files) for row in _rows(path)]
    if not rows:
        return None
    columns = (
        Column("step", numeric=True),
        Column("prompt", wide=True),
        Column("response", wide=True),
        Column("score", numeric=True),
        Column("ground truth"),
        Column("truncated"),
    )
    return Table("samples", columns, tuple(rows), csv="samples.csv")


def _spread(files: list[Path]) -> list[Path]:
    if len(files) <= _STEPS:
        return files
    return [files[round(index * (len(files) - 1) / (_STEPS - 1))] for index in range(_STEPS)]


def _rows(path: Path) -> Iterator[tuple[Cell, ...]]:
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines()):
        if number >= _PER_STEP:
            return
        try:
            sample = json.loads(line)
        except ValueError:
            continue  # cut off by a crash
        if isinstance(sample, dict):
            yield _row(int(path.stem), sample)


def _row(step: int, sample: dict[str, Any]) -> tuple[Cell, ...]:
    score = sample.get("score")
    known = isinstance(score, int | float)
    return (
        number_cell(step),
        Cell(_cut(sample.get("prompt", ""))),
        Cell(_cut(sample.get("response", ""))),
        number_cell(score) if known else Cell("not scored"),
        Cell(_cut(sample.get("ground_truth", ""))),
        Cell("cut off", tag="cut") if sample.get("truncated") else Cell("no"),
    )


def _cut(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    rest = len(text) - _LONGEST
    return text if rest <= 0 else f"{text[:_LONGEST]}… ({numbers.plural(rest, 'more character')})"
