"""What a page is made of: sections of charts, tables, facts and code, as data. Templates draw them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from markupsafe import Markup

from leverl.report import numbers
from leverl.tune.model import ParamValue

_NOTHING: Final = Markup("")


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what people read, and the exact value for sorting, CSV and hover."""

    text: str
    value: float | int | str | None = None
    title: str = ""
    tag: str = ""  # a word in a coloured label before the text, such as "winner"


@dataclass(frozen=True)
class Column:
    title: str
    numeric: bool = False
    hint: str = ""
    wide: bool = False  # holds sentences


@dataclass(frozen=True)
class Table:
    """A table; with `csv` it can be sorted, copied and saved under that name."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    csv: str = ""
    folded: str = ""  # the words to click on; empty: shown at once
    kind: str = "table"


@dataclass(frozen=True)
class Chart:
    """A chart: `finding` says in words what it shows, `static` draws it where scripts are blocked."""

    name: str
    finding: str
    caption: str
    plot: Markup
    data: Table | None = None
    static: Markup = _NOTHING
    title: str = ""
    kind: str = "chart"


@dataclass(frozen=True)
class Facts:
    """Label and value pairs."""

    rows: tuple[tuple[str, str], ...]
    kind: str = "facts"


@dataclass(frozen=True)
class Code:
    """Text to copy."""

    label: str
    text: str
    folded: bool = False
    kind: str = "code"


@dataclass(frozen=True)
class Note:
    """A sentence; tone is "plain", "good" or "warn"."""

    text: str
    tone: str = "plain"
    kind: str = "note"


Block: TypeAlias = Table | Chart | Facts | Code | Note


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading."""

    id: str
    title: str
    lead: str
    blocks: tuple[Block, ...]
    columns: int = 1  # charts side by side where the window is wide enough


def number_cell(value: float | int | None, text: str | None = None) -> Cell:
    """A measured number; its exact value is kept for sorting and CSV."""
    if value is None:
        return Cell(numbers.UNKNOWN)
    shown = text if text is not None else numbers.short(value)
    return Cell(shown, value, numbers.exact(value))


def setting_cell(value: ParamValue | None) -> Cell:
    """A lever's value."""
    if value is None:
        return Cell(numbers.UNKNOWN, None, "does not apply here")
    sortable = (
        value if isinstance(value, int | float) and not isinstance(value, bool) else numbers.exact(value)
    )
    return Cell(numbers.setting(value), sortable, numbers.exact(value))


def plain_table(name: str, titles: Sequence[str], rows: Sequence[Sequence[Cell]], folded: str = "") -> Table:
    """A table without CSV; a column that holds a number is set as numbers."""
    numeric = [any(isinstance(row[index].value, int | float) for row in rows) for index in range(len(titles))]
    columns = tuple(Column(title, numeric=found) for title, found in zip(titles, numeric, strict=True))
    return Table(name, columns, tuple(tuple(row) for row in rows), folded=folded)
