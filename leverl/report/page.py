"""One self-contained page: template, style, script and the plotting library in a single file, no requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from leverl.record.layout import write_atomically
from leverl.report.blocks import Section
from leverl.report.redact import redact

BUNDLE: Final = "plotly-cartesian.min.js"
_LIBRARY_PLACE: Final = "<!--leverl:library-->"


@dataclass(frozen=True)
class Fact:
    """A number in the headline, with its label."""

    label: str
    value: str
    title: str = ""


@dataclass(frozen=True)
class Headline:
    """The first thing on a page. Tone: "win", "even" (nothing beats the base), "open" (not over),
    "done" (a run that finished), "bad"."""

    kicker: str
    text: str
    detail: str
    tone: str
    facts: tuple[Fact, ...]
    next: str = ""


def write_page(path: Path, title: str, headline: Headline, sections: Sequence[Section]) -> Path:
    """Render the page and put it at `path` in one go."""
    text = render("page.html.j2", {"title": title, "headline": headline, "sections": sections})
    # Text from runs is escaped, so none of it can contain the marker; secrets are masked before the library
    # is in, which must stay as it is.
    write_atomically(path, redact(text).replace(_LIBRARY_PLACE, _library()))
    return path


def render(template: str, content: Mapping[str, Any]) -> str:
    """The template `template` of this package; HTML is escaped."""
    style, script = asset("page.css"), asset("page.js")
    return (
        _environment()
        .get_template(template)
        .render(**content, style=style, script=script, library=_LIBRARY_PLACE)
    )


def asset(name: str) -> str:
    """The text of a file in `leverl/report/assets`."""
    return files("leverl.report").joinpath("assets", name).read_text(encoding="utf-8")


def _library() -> str:
    notice = asset("plotly-LICENSE.txt").strip()
    return f"<script>/*\n{notice}\n*/\n{asset(BUNDLE)}</script>"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("leverl.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
