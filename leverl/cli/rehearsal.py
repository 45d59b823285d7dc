"""How long a run will take, measured by a few steps of the base: asked before a grid of hundreds is started."""

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import typer

from leverl.errors import ConfigError

if TYPE_CHECKING:
    from leverl.tune.plan import Plan

MANY_RUNS: Final = 100
"""Runs of a grid that are started without asking."""

_STEPS: Final = 4


def ask_for_many(plan: "Plan", parallel: int, *, yes: bool) -> None:
    """Show what a large grid costs, and go on only if that is wanted.

    Raises:
        ConfigError: it is not, or there is no terminal to ask on.
    """
    from leverl.tune.model import SEARCH, History

    study = plan.study
    runs = plan.strategy.planned(History((), study.maximize))[SEARCH]
    if study.sampler != "grid" or runs <= MANY_RUNS or yes:
        return
    seeds = study.seeds.search
    size = (
        f"the grid has {runs // seeds} configurations × {seeds} seed{'s' if seeds > 1 else ''} = {runs} runs"
    )
    limit = "A smaller grid, budget.trials or strategy=bayes makes it shorter; --yes starts it as it is."
    if not sys.stdin.isatty():
        raise ConfigError(f"{size}, and there is no terminal to ask on. {limit}")
    seconds = seconds_of_a_run(plan)
    hours = runs * seconds / parallel / 3600
    typer.echo(
        f"{size} of about {seconds:.0f} s (measured over {_STEPS} steps), {parallel} side by side: "
        f"about {hours:.1f} h before race and confirmation.",
        err=True,
    )
    if not typer.confirm("Start it?", err=True):
        raise ConfigError(f"nothing was started. {limit}")


def seconds_of_a_run(plan: "Plan") -> float:
    """Seconds of a run of the base, from a few steps of it in a temporary folder; evaluations are left out."""
    from leverl import api
    from leverl.config import loader
    from leverl.record.layout import RunFolder
    from leverl.record.metrics import read_lines

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "base.yaml"
        source.write_text(loader.dump(plan.backend.base, "Rehearsal."), encoding="utf-8")
        short = {"train.steps": _STEPS, "evaluation.every": 0, "train.save_every": 0}
        result = api.train(source, short, name="rehearsal", out=folder)
        lines = list(read_lines(RunFolder(result.folder).metrics))
    steps = [data["timing_s/step"] for _, data in lines if "timing_s/step" in data]
    if not steps:
        raise ConfigError(f"the base could not be rehearsed: {result.record.message or result.outcome}")
    return median(float(str(seconds)) for seconds in steps[1:] or steps) * plan.steps
