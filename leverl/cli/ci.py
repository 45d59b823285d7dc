"""What a pipeline gets from `leverl tune --ci`: a summary, outputs for later steps, and lines for the log.

The names and formats are those of GitHub Actions; elsewhere the files are not set, and only the log lines appear.
"""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TextIO

from leverl.errors import LeverlError
from leverl.record.secrets import mask_text

if TYPE_CHECKING:
    from leverl.tune.gate import GateResult
    from leverl.tune.model import StudyView

SUMMARY_VARIABLE: Final = "GITHUB_STEP_SUMMARY"
OUTPUT_VARIABLE: Final = "GITHUB_OUTPUT"
SUMMARY_LIMIT: Final = 1 << 20
"""Bytes of a step's summary above which GitHub drops it whole."""

GATE_NOT_MET: Final = 1
"""The exit code: findings at or above what was asked for."""

Level = Literal["notice", "warning", "error"]


def publish(
    view: "StudyView",
    result: "GateResult | None",
    stream: TextIO,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Tell the pipeline how a study ended, and return the exit code: 1 where the gate is not met.

    Args:
        result: of the gate; None when none was asked for.
        stream: for log lines; stderr, so that stdout stays the result's.
    """
    from leverl.report.summary import write_summary

    found = os.environ if environment is None else environment
    summary = write_summary(view, gate=result.text if result else "")
    append_summary(summary, found)
    write_outputs(outputs(view, result, summary), found)
    verdict = view.winner.verdict if view.winner else "The study is not over."
    annotate("notice", f"leverl tune {view.name}", verdict, stream)
    if result is None:
        return 0
    annotate("notice" if result.passed else "error", "leverl gate", result.text, stream)
    return 0 if result.passed else GATE_NOT_MET


def outputs(view: "StudyView", result: "GateResult | None", summary: Path) -> dict[str, str]:
    """What later steps can read as `steps.ID.outputs.NAME`. `gain` is empty where nothing was compared."""
    winner = view.winner
    comparison = winner.comparison if winner else None
    return {
        "winner": winner.config_id if winner else "",
        "gain": f"{comparison.difference:.6g}" if comparison else "",
        "passed": "" if result is None else str(result.passed).lower(),
        "report": str(view.folder / "report.html"),
        "summary": str(summary),
        "best": str(winner.best_yaml) if winner else "",
    }


def append_summary(summary: Path, environment: Mapping[str, str]) -> None:
    """Append `summary` to the step's summary, where there is one; too much for it is left out whole."""
    target = environment.get(SUMMARY_VARIABLE)
    if not target:
        return
    text = summary.read_text(encoding="utf-8")
    path = Path(target)
    there = path.stat().st_size if path.is_file() else 0
    if there + len(text.encode()) + 2 > SUMMARY_LIMIT:
        text = (
            f"The summary of this study is too long to be added here; see {summary.name} beside the report.\n"
        )
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n" if there else f"{text}\n")


def write_outputs(values: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Append outputs to the step's file, where there is one. A value cannot pose as another output."""
    target = environment.get(OUTPUT_VARIABLE)
    if not target:
        return
    lines = []
    for name, value in values.items():
        end = f"leverl-{secrets.token_hex(8)}"
        lines.append(f"{name}<<{end}\n{value}\n{end}\n")
    with Path(target).open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def annotate(
    level: Level, title: str, text: str, stream: TextIO, environment: Mapping[str, str] | None = None
) -> None:
    """One line that GitHub shows beside the run, and that reads well in any other log."""
    text = mask_text(text, environment)
    stream.write(f"::{level} title={_property(title)}::{_message(text)}\n")
    stream.flush()


@contextmanager
def announced(stream: TextIO) -> Iterator[None]:
    """Errors inside become a line for the pipeline too; they go on to whoever reports them."""
    try:
        yield
    except LeverlError as error:
        annotate("error", "leverl tune", str(error), stream)
        raise


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
