"""`leverl report A B`: studies on one page and in one table, as the articles compare a grid with a search."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leverl.report import numbers
from leverl.report.blocks import Block, Cell, Column, Note, Section, Table, setting_cell
from leverl.report.compare_data import Study, warnings
from leverl.report.page import Fact, Headline, write_page
from leverl.report.scales import range_words
from leverl.report.sections import compare_charts

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Row = tuple[str, str, tuple[str, ...]]
"""Title, hint and a text for each study."""


def write_comparison(studies: Sequence[Study], folder: Path | None = None) -> Path:
    """Write the page beside the first study, or into `folder`.

    Returns:
        Its path, `A-vs-B.html`.
    """
    place = folder if folder is not None else studies[0].data.view.folder.resolve().parent
    name = "-vs-".join(study.data.view.folder.resolve().name for study in studies)
    title = " and ".join(study.label for study in studies)
    sections = (_result(studies), _course(studies), _levers(studies))
    return write_page(place / f"{name}.html", f"{title} – leverl studies", _headline(studies), sections)


def facts(studies: Sequence[Study]) -> list[dict[str, Any]]:
    """The comparison as data, a mapping for each study."""
    found = []
    for study in studies:
        balance, view = study.data.balance, study.data.view
        found.append(
            {
                "name": view.name,
                "folder": view.folder,
                "strategy": view.strategy,
                "sampler": view.sampler,
                "objective": view.objective,
                "phase": view.phase,
                "runs": balance.runs,
                "spent": balance.spent,
                "saved": balance.saved,
                "seconds": view.seconds,
                "quality": study.quality,
                "difference": study.against_first,
                "gain": study.gain,
                "levers": study.settings,
                "course": study.data.analysis.course if study.data.analysis else (),
            }
        )
    return found


def terminal_table(studies: Sequence[Study]) -> "RichTable":
    """The comparison for a terminal."""
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for study in studies:
        table.add_column(Text(study.label), justify="right")
    for title, _, texts in (*_rows(studies), *_lever_rows(studies)):
        table.add_row(title, *map(Text, texts))
    return table


def in_a_sentence(studies: Sequence[Study]) -> str:
    """How the second study did against the first; of more, how many there are."""
    first, other = studies[0], studies[1]
    if len(studies) > 2:
        return f"{len(studies)} studies, compared with {first.label}."
    ours, theirs = first.data.balance, other.data.balance
    parts = [f"{other.label} used {_share(theirs.runs, ours.runs)} of the runs"]
    if ours.spent.responses and theirs.spent.responses:
        parts.append(f"{_share(theirs.spent.responses, ours.spent.responses)} of the responses")
    text = f"{' and '.join(parts)} of {first.label}"
    if (found := other.against_first) is None:
        return f"{text}."
    ended = f"95 % CI {numbers.interval(*found.interval)}" if found.interval else "no interval"
    return f"{text}; what it recommends differs by {numbers.signed_within(found.value, found.interval)} ({ended})."


def _share(part: float, whole: float) -> str:
    return numbers.percent(part / whole) if whole else numbers.UNKNOWN


def _headline(studies: Sequence[Study]) -> Headline:
    facts_ = [
        Fact(f"{study.label}: {study.quality.config_id}", _quality(study), study.quality.source)
        for study in studies
        if study.quality is not None
    ]
    facts_ += [Fact(f"{study.label}: runs", str(study.data.balance.runs)) for study in studies]
    objective = studies[0].data.view.objective
    return Headline(
        kicker=f"Studies {', '.join(study.label for study in studies)} · {objective}",
        text=in_a_sentence(studies),
        detail="Differences count positive where a study found something better than the first one.",
        tone="open" if any(study.data.view.winner is None for study in studies) else "done",
        facts=tuple(facts_),
    )


def _result(studies: Sequence[Study]) -> Section:
    columns = (Column(""), *(Column(study.label, numeric=True) for study in studies))
    rows = tuple((Cell(title, title=hint), *map(Cell, texts)) for title, hint, texts in _rows(studies))
    blocks: list[Block] = [Note(text, "warn") for text in warnings(studies)]
    blocks.append(Table("comparison", columns, rows, csv="comparison.csv"))
    if chart := compare_charts.scores(studies):
        blocks.append(chart)
    lead = "What each study cost, and what its recommendation is worth."
    return Section("result", "Result", lead, tuple(blocks))


def _rows(studies: Sequence[Study]) -> list[Row]:
    views = [study.data.view for study in studies]
    balances = [study.data.balance for study in studies]
    rows: list[Row] = [
        ("strategy", "", tuple(f"{view.strategy} ({view.sampler})" for view in views)),
        ("runs", "started", tuple(str(found.runs) for found in balances)),
        ("configurations", "", tuple(str(len(study.data.configurations)) for study in studies)),
    ]
    amounts: tuple[tuple[str, str, Callable[[int], float], Callable[[float], str]], ...] = (
        ("steps", "optimiser iterations over all runs", lambda n: balances[n].spent.steps, numbers.amount),
        ("responses", "generated over all runs", lambda n: balances[n].spent.responses, numbers.amount),
        ("tokens", "generated over all runs", lambda n: balances[n].spent.tokens, numbers.amount),
        ("time of runs", "summed over runs", lambda n: balances[n].spent.seconds, numbers.duration),
        ("wall time", "over all sittings", lambda n: views[n].seconds, numbers.duration),
        ("GPU-hours", "", lambda n: balances[n].spent.gpu_seconds / 3600, numbers.short),
    )
    for title, hint, of, text in amounts:
        values = [of(n) for n in range(len(studies))]
        if any(values):
            rows.append(
                (title, hint, tuple(_against(value, values[0], text, n) for n, value in enumerate(values)))
            )
    rows += [
        ("saved by stopping", "share of the steps", tuple(numbers.percent(found.saved_share) for found in balances)),
        ("recommends", "", tuple(study.quality.config_id if study.quality else numbers.UNKNOWN for study in studies)),
        (views[0].objective, "95 % interval in brackets", tuple(map(_quality, studies))),
        ("from", "", tuple(study.quality.source if study.quality else numbers.UNKNOWN for study in studies)),
        ("difference to the first", "95 % interval in brackets", tuple(map(_difference, studies))),
        ("gain over its base", "95 % interval in brackets", tuple(map(_gain, studies))),
    ]  # fmt: skip
    return rows


def _against(value: float, first: float, text: Callable[[float], str], place: int) -> str:
    """The amount, and which share of the first study's it is."""
    return text(value) if place == 0 or not first else f"{text(value)} ({numbers.percent(value / first)})"


def _quality(study: Study) -> str:
    found = study.quality
    if found is None:
        return numbers.UNKNOWN
    if found.interval is None:
        return numbers.short(found.mean)
    mean, low, high = (numbers.within(value, found.interval) for value in (found.mean, *found.interval))
    return f"{mean} [{low} … {high}]"


def _difference(study: Study) -> str:
    found = study.against_first
    if found is None:
        return numbers.UNKNOWN
    ended = f" [{numbers.interval(*found.interval)}]" if found.interval else ""
    return f"{numbers.signed_within(found.value, found.interval)}{ended}{', paired by seed' if found.paired else ''}"


def _gain(study: Study) -> str:
    found = study.gain
    if found is None:
        return numbers.UNKNOWN
    ended = f" [{numbers.interval(*found.interval)}]" if found.interval else ""
    return f"{numbers.signed_within(found.difference, found.interval)}{ended}"


def _course(studies: Sequence[Study]) -> Section:
    chart = compare_charts.course(studies)
    blocks: tuple[Block, ...] = (chart,) if chart else (Note("No study has a score yet."),)
    lead = "What each study would have recommended after so much cost, and what it believed of it."
    return Section("course", "Trajectory", lead, blocks)


def _levers(studies: Sequence[Study]) -> Section:
    names = _names(studies)
    columns = (
        Column("lever"),
        *(Column(study.label, numeric=True) for study in studies),
        *(Column(f"searched by {study.label}") for study in studies),
    )
    rows = []
    for name in names:
        axes = [{axis.name: axis for axis in study.data.view.axes}.get(name) for study in studies]
        values = [
            setting_cell(study.settings.get(name)) if axis else Cell("not searched")
            for study, axis in zip(studies, axes, strict=True)
        ]
        ranges = [Cell(range_words(axis) if axis else numbers.UNKNOWN) for axis in axes]
        rows.append((Cell(name), *values, *ranges))
    table = Table("levers", columns, tuple(rows), csv="levers.csv")
    return Section("levers", "Levers", "What each study recommends, side by side.", (table,))


def _lever_rows(studies: Sequence[Study]) -> list[Row]:
    def text(study: Study, name: str) -> str:
        settings: Mapping[str, Any] = study.settings
        searched = any(axis.name == name for axis in study.data.view.axes)
        return numbers.setting(settings.get(name)) if searched else "not searched"

    return [(name, "", tuple(text(study, name) for study in studies)) for name in _names(studies)]


def _names(studies: Sequence[Study]) -> list[str]:
    return list(dict.fromkeys(axis.name for study in studies for axis in study.data.view.axes))
