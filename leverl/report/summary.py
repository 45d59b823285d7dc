"""A study's result as Markdown: short enough for a comment on a pull request (< 60 kB)."""

from typing import Final

from leverl.report import numbers
from leverl.report.blocks import Cell, Table
from leverl.report.page import Headline
from leverl.report.redact import redact
from leverl.report.sections.runs import configurations
from leverl.report.study_data import StudyData
from leverl.report.terminal import repeat_command

LIMIT: Final = 60_000
_CELL = 120
_ROWS = 100


def summary(data: StudyData, headline: Headline) -> str:
    """Verdict, figures, the table of configurations and the command, cut to fit."""
    table = configurations(data)
    for rows in (_ROWS, 50, 20, 10, 5, 1):
        text = redact(_text(data, headline, table, rows), written=plain)
        if len(text.encode()) < LIMIT:
            return text
    return redact(_text(data, headline, table, 0), written=plain)[: LIMIT // 4]


def _text(data: StudyData, headline: Headline, table: Table, rows: int) -> str:
    parts = [
        f"# {plain(data.view.name)}",
        f"**{plain(headline.text)}**",
        plain(headline.detail),
        "\n".join(f"- {plain(fact.label)}: {plain(fact.value)}" for fact in headline.facts),
        _settings(data),
        f"## Configurations\n\n{_table(table, rows)}",
    ]
    if len(table.rows) > rows:
        parts.append(f"{len(table.rows) - rows} more in report.html.")
    parts.append("Scores: mean of finished runs ± standard error over seeds (none with one seed).")
    parts.append(f"Repeat:\n\n```\n{_fenced(repeat_command(data.view))}\n```")
    parts.append(f"Next:\n\n```\n{_fenced(headline.next)}\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def _settings(data: StudyData) -> str:
    candidate = data.candidate
    if candidate is None:
        return ""
    lines = [f"| lever | base | {plain(candidate.id)} |", "|---|---|---|"]
    for axis, value in zip(data.view.axes, candidate.values, strict=True):
        cells = (axis.name, numbers.exact(axis.base), numbers.exact(value))
        lines.append("| " + " | ".join(plain(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _table(table: Table, rows: int) -> str:
    titles = [plain(column.title) for column in table.columns]
    marks = ["--:" if column.numeric else "---" for column in table.columns]
    lines = ["| " + " | ".join(titles) + " |", "|" + "|".join(marks) + "|"]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.rows[:rows]]
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    text = f"{cell.text} ({cell.tag})" if cell.tag else cell.text
    return plain(text if len(text) <= _CELL else f"{text[: _CELL - 1]}…")


def plain(text: str) -> str:
    """`text` without meaning for Markdown or HTML, on one line."""
    one_line = " ".join(text.split())
    escaped = one_line.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "|`*_[]#~!":
        escaped = escaped.replace(sign, f"\\{sign}")
    return escaped.replace("@", "&#64;")


def _fenced(text: str) -> str:
    return text.replace("```", "'''").replace("\n", " ")
