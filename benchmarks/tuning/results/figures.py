"""Regret against runs, one figure for each family: all methods, with 95 % bootstrap intervals."""

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from methods.catalogue import GRID, GRID_3, LEVERL, PEERS
from methods.method import READ_AT, TOLD

from .shards import Shard
from .statistics import Entry, Estimate, Regrets, bootstrap, mean_over, samples_of

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

_PIXELS, _DPI = 1200, 150
_LEAST = 1e-4
"""What is drawn lower on the logarithmic scale would be zero: always the best configuration."""

_COLOURS = {
    LEVERL: "#0072b2",  # Okabe and Ito: to be told apart with any colour vision
    "random": "#999999",
    "Optuna TPE": "#e69f00",
    "Optuna GP": "#d55e00",
    "Ax": "#009e73",
    "SMAC": "#cc79a7",
    "SMAC 1 seed": "#7a5195",
    GRID: "#000000",
    GRID_3: "#000000",
}
_MARKERS = {
    LEVERL: "o", "random": "v", "Optuna TPE": "s", "Optuna GP": "D", "Ax": "^", "SMAC": "P", "SMAC 1 seed": "X",
}  # fmt: skip


def draw_all(shards: Sequence[Shard], folder: Path) -> list[Path]:
    """Write a PNG of 1200 pixels for each family; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    regrets = Regrets(shards)
    return [_draw(regrets, family, folder / f"tuning-regret-{family}.png") for family in regrets.families]


def _draw(regrets: Regrets, family: str, path: Path) -> Path:
    figure, axes = plt.subplots(
        figsize=(_PIXELS / _DPI, 0.6 * _PIXELS / _DPI), dpi=_DPI, layout="constrained"
    )
    methods = [method for method in (*PEERS, LEVERL) if method in regrets.methods]
    for place, method in enumerate(methods):
        shift = 1 + 0.012 * (place - (len(methods) - 1) / 2)  # so that intervals stay apart
        _path(axes, regrets, family, method, shift)
    for grid, style in ((GRID, "--"), (GRID_3, ":")):
        _level(axes, regrets, family, grid, style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(READ_AT, [str(runs) for runs in READ_AT])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda height, _: f"{height:g}"))
    axes.set_xlabel("runs")
    axes.set_ylabel("regret of the recommended configuration")
    names = ", ".join(name for _, name in regrets.tasks_of(family))
    axes.set_title(f"{family} ({names}): mean and 95 % interval", fontsize=10)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    figure.savefig(path, facecolor="white")
    plt.close(figure)
    return path


def _path(axes: Axes, regrets: Regrets, family: str, method: str, shift: float) -> None:
    """A method that plans with its budget has no points in between: its line joins separate studies."""
    found = [
        (budget, estimate)
        for budget in (TOLD if method == LEVERL else READ_AT)
        if (estimate := _estimate(regrets, family, Entry(method, budget))) is not None
    ]
    if not found:
        return
    means = [max(estimate.mean, _LEAST) for _, estimate in found]
    lows = [max(e.low, _LEAST) if math.isfinite(e.low) else m for m, (_, e) in zip(means, found, strict=True)]
    highs = [max(e.high, m) if math.isfinite(e.high) else m for m, (_, e) in zip(means, found, strict=True)]
    axes.errorbar(
        [budget * shift for budget, _ in found],
        means,
        yerr=np.abs([np.subtract(means, lows), np.subtract(highs, means)]),
        label=method,
        color=_COLOURS[method],
        marker=_MARKERS[method],
        markersize=7 if method == LEVERL else 5,
        linewidth=2.2 if method == LEVERL else 1.1,
        elinewidth=1.0,
        capsize=2,
    )


def _level(axes: Axes, regrets: Regrets, family: str, grid: str, style: str) -> None:
    """Grids are one size: a line across."""
    estimate = _estimate(regrets, family, Entry(grid))
    runs = mean_over(regrets, Entry(grid), regrets.tasks_of(family), "runs")
    if estimate is not None and runs is not None and not math.isnan(runs):
        axes.axhline(
            max(estimate.mean, _LEAST),
            color=_COLOURS[grid],
            linestyle=style,
            linewidth=1.2,
            label=f"{grid} ({runs:.0f} runs)",
        )


def _estimate(regrets: Regrets, family: str, entry: Entry) -> Estimate | None:
    samples = samples_of(regrets, entry, regrets.tasks_of(family))
    return bootstrap(samples) if samples else None
