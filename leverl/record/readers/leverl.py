"""Reads the folder of a leverl run."""

from pathlib import Path
from typing import Any

from leverl.errors import ConfigError
from leverl.record.layout import RunFolder
from leverl.record.metrics import read_lines
from leverl.record.run_record import load_record
from leverl.record.series import RunSeries, Series


def read(path: Path) -> RunSeries:
    """Everything in the run folder `path`.

    Raises:
        ConfigError: the folder holds no run.
    """
    folder = RunFolder(path)
    if not folder.exists():
        raise ConfigError(f"{path} holds no run (no config.yaml, no run.json).")
    points: dict[str, list[tuple[int, float]]] = {}
    histograms: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for step, data in read_lines(folder.metrics):
        for name, value in data.items():
            if isinstance(value, list):
                histograms.setdefault(name, []).append((step, tuple(value)))
            else:
                points.setdefault(name, []).append((step, float(value)))
    metrics = {
        name: Series(tuple(step for step, _ in pairs), tuple(value for _, value in pairs))
        for name, pairs in points.items()
    }
    return RunSeries(
        name=path.name,
        metrics=metrics,
        histograms={name: tuple(rows) for name, rows in histograms.items()},
        record=load_record(folder.record),
        config=_config(folder),
    )


def _config(folder: RunFolder) -> dict[str, Any]:
    if not folder.config.is_file():
        return {}
    from leverl.config.loader import read_yaml

    return read_yaml(folder.config)
