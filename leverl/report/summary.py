"""A study's result as Markdown: short enough for a comment on a pull request (< 60 kB)."""

from pathlib import Path
from typing import Final

from leverl.record.layout import write_atomically
from leverl.report import numbers
from leverl.report.blocks import Cell, Table
from leverl.report.page import Headline
from leverl.report.redact import redact
from leverl.report.sections import verdict
from leverl.report.sections.runs import configurations
from leverl.report.study_data import Configuration, StudyData
from leverl.report.terminal import repeat_command
from leverl.tune.ledger import total
from leverl.tune.model import BASE, CONFIRM, Comparison, StudyView
from leverl.tune.statistics import mean, mean_or_none

SUMMARY: Final = "summary.md"
LIMIT: Final = 60_000
_CELL = 120
_ROWS = 100


def write_summary(view: StudyView, gate: str = "") -> Path:
    """Write `summary.md` into the study's folder; `gate` is what became of the pipeline's condition."""
    data = StudyData(view)
    path = view.folder / SUMMARY
    write_atomically(path, summary(data, verdict.headline(data), gate))
    return path


def summary(data: StudyData, headline: Headline, gate: str = "") -> str:
    """Verdict, winner against base, levers, cost, and the table of configurations, cut to fit."""
    table = configurations(data)
    for rows in (_ROWS, 50, 20, 10, 5, 1):
        text = redact(_text(data, headline, gate, table, rows), written=plain)
        if len(text.encode()) < LIMIT:
            return text
    return redact(_text(data, headline, gate, table, 0), written=plain)[: LIMIT // 4]


def _text(data: StudyData, headline: Headline, gate: str, table: Table, rows: int) -> str:
    parts = [
        f"# {plain(data.view.name)}",
        f"**{plain(headline.text)}**",
        f"**Gate** {plain(gate)}" if gate else "",
        plain(headline.detail),
        _against_base(data),
        _levers(data),
        f"Cost: {plain(_cost(data))}.",
        _folded(f"All {numbers.plural(len(table.rows), 'configuration')}", _all(table, rows)),
        _folded("Commands", _commands(data, headline)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _against_base(data: StudyData) -> str:
    """The candidate beside the base, on the fresh seeds where there are some."""
    candidate, base, found = data.candidate, data.base, data.comparison
    if candidate is None:
        return ""
    phase = CONFIRM if data.phase_runs(candidate, CONFIRM) else None
    both = (candidate, base)
    rows = [(f"{data.view.objective}, {_seeds(data)}", *_scores(data, candidate, base))]
    if found is not None:
        rows.append(("difference [95 % interval]", _difference(found), ""))
    for title, name in (
        ("KL to the reference", "kl"),
        ("response length", "length"),
        ("steps to 90 % of its gain", "steps_to_90"),
    ):
        ours, theirs = (_mean_of(data, configuration, phase, name) for configuration in both)
        rows += [(title, ours, theirs)] if {ours, theirs} != {numbers.UNKNOWN} else []
    lines = [f"| | {plain(candidate.id)} | base |", "|---|--:|--:|"]
    lines += ["| " + " | ".join(plain(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _difference(found: Comparison) -> str:
    """With three digits at both ends, as in the verdict: an end near 0 must not look like 0."""
    if found.interval is None:
        return numbers.signed(found.difference)
    low, high = map(numbers.signed, found.interval)
    return f"{numbers.signed(found.difference)} [{low} … {high}]"


def _seeds(data: StudyData) -> str:
    found = data.comparison
    return numbers.plural(len(found.seeds), "fresh seed") if found is not None else "all seeds so far"


def _scores(data: StudyData, candidate: Configuration, base: Configuration | None) -> tuple[str, str]:
    found = data.comparison
    if found is not None:
        return numbers.short(mean(found.winner)), numbers.short(mean(found.base))
    return candidate.score_text, base.score_text if base is not None else numbers.UNKNOWN


def _mean_of(data: StudyData, configuration: Configuration | None, phase: str | None, name: str) -> str:
    """Mean of a figure over a configuration's finished runs, of one phase or of all."""
    if configuration is None:
        return numbers.UNKNOWN
    runs = data.phase_runs(configuration, phase) if phase else configuration.runs
    found = [float(value) for state in runs if state.scored and (value := getattr(state, name)) is not None]
    return numbers.short(mean_or_none(found))


def _levers(data: StudyData) -> str:
    """What the candidate changes; what it leaves as in the base is only named."""
    candidate = data.candidate
    if candidate is None:
        return ""
    both = list(zip(data.view.axes, candidate.values, strict=True))
    changed = [(axis, value) for axis, value in both if value != axis.base]
    same = [axis.name for axis, value in both if value == axis.base]
    lines = [f"| lever | base | {plain(candidate.id)} |", "|---|--:|--:|"]
    for axis, value in changed:
        cells = (axis.name, numbers.setting(axis.base), numbers.setting(value))
        lines.append("| " + " | ".join(plain(cell) for cell in cells) + " |")
    table = "\n".join(lines) if changed else ""
    rest = f"As in the base: {plain(', '.join(same))}." if same and candidate.id != BASE else ""
    return "\n\n".join(part for part in (table, rest) if part)


def _cost(data: StudyData) -> str:
    spent, runs = total(data.view.history), data.view.history.runs
    words = [
        numbers.plural(len(runs), "run"),
        f"{numbers.duration(data.view.seconds)} of wall time",
        f"{numbers.amount(spent.steps)} steps",
        f"{numbers.amount(spent.responses)} responses" if spent.responses else "",
        f"{numbers.duration(spent.gpu_seconds)} of GPU time" if spent.gpu_seconds else "",
        f"{numbers.percent(data.saved_share)} of the steps saved by stopping runs early"
        if data.saved_share
        else "",
    ]
    return ", ".join(word for word in words if word)


def _all(table: Table, rows: int) -> str:
    more = f"{len(table.rows) - rows} more in report.html. " if len(table.rows) > rows else ""
    return (
        f"{_table(table, rows)}\n\n{more}Scores: mean of finished runs ± standard error over seeds "
        "(none with one seed)."
    )


def _commands(data: StudyData, headline: Headline) -> str:
    again, following = _fenced(repeat_command(data.view)), _fenced(headline.next)
    return f"Repeat:\n\n```\n{again}\n```\n\nNext:\n\n```\n{following}\n```"


def _folded(title: str, content: str) -> str:
    """What GitHub shows at a click; blank lines keep it Markdown inside."""
    return f"<details><summary>{plain(title)}</summary>\n\n{content}\n\n</details>"


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
