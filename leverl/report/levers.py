"""Levers on paper: one row each for the table, everything known for the card."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leverl.config import tree
from leverl.config.schema import Config
from leverl.report.numbers import exact
from leverl.vocabulary.lever import Lever, SearchRange

if TYPE_CHECKING:
    from rich.console import RenderableType

EFFECTS = {
    "learning": "changes what is learnt",
    "cost": "changes speed and memory only; results stay identical",
    "logging": "changes what is written only",
}


def facts(lever: Lever) -> dict[str, Any]:
    """A lever with the schema's default and hard bounds, as plain data."""
    return {
        **asdict(lever),
        "default": tree.get(Config(), lever.path),
        "allowed": tree.allowed(lever.path),
    }


def search_range(search: SearchRange | None) -> str:
    """Where a search looks: `0.0001 … 0.1 (log), or 0`."""
    if search is None:
        return "not searched by default"
    if search.values:
        return ", ".join(typed(value) for value in search.values)
    beside = "" if search.other is None else f", or {typed(search.other)}"
    return f"{typed(search.low)} … {typed(search.high)} ({search.scale}){beside}"


def table(levers: tuple[Lever, ...]) -> "RenderableType":
    """All levers, a line each, in the order of the configuration."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    grid.add_column(
        "setting", no_wrap=True, style="cyan", min_width=2 + max(len(lever.name) for lever in levers)
    )
    grid.add_column("default", no_wrap=True, min_width=10, max_width=14)
    grid.add_column("effect", no_wrap=True, min_width=8)
    grid.add_column("meaning", ratio=1, no_wrap=True, overflow="ellipsis")
    section = ""
    for lever in levers:
        here = lever.path.rpartition(".")[0]
        if here != section:
            grid.add_row(Text(here or "run", style="bold"))
            section = here
        default = typed(tree.get(Config(), lever.path))
        grid.add_row(f"  {lever.name}", Text(default), lever.effect, Text(lever.text))
    return grid


def card(lever: Lever) -> "RenderableType":
    """Everything known about one lever."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_header=False, pad_edge=False, title_justify="left", expand=False)
    grid.title = Text.assemble((lever.name, "bold cyan"), "  ", (lever.zh, "cyan"), "  ", (lever.path, "dim"))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(ratio=1)
    for label, text in _rows(lever):
        if text:
            grid.add_row(label, Text(text))
    return grid


def _rows(lever: Lever) -> list[tuple[str, str]]:
    return [
        ("meaning", lever.text),
        ("effect", f"{lever.effect}: {EFFECTS[lever.effect]}"),
        ("default", typed(tree.get(Config(), lever.path))),
        ("allowed", tree.allowed(lever.path)),
        ("search", search_range(lever.search)),
        ("too low", lever.too_low),
        ("too high", lever.too_high),
        ("advice", lever.advice),
        ("also called", ", ".join(lever.aliases)),
        ("in verl", ", ".join(lever.verl) or "no such key"),
        ("in TRL", ", ".join(lever.trl) or "no such key"),
    ]


def typed(value: Any) -> str:
    """A value as one types it after `name=`."""
    if value is None:
        return "null"
    return exact(value) if isinstance(value, bool | int | float | str) else str(value)
