"""What a command says: people read lines, programs read one JSON object on stdout."""

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

Progress = Literal["auto", "rich", "plain", "none"]


@dataclass(frozen=True)
class Output:
    """Where a command's words go. With `json`, stdout is kept for the one object of `finish`."""

    json: bool = False
    quiet: bool = False

    @property
    def stream(self) -> TextIO:
        """Where lines and live views for people go."""
        return sys.stderr if self.json else sys.stdout

    def say(self, text: str) -> None:
        """A line for people; not said with --quiet."""
        if not self.quiet:
            typer.echo(text, file=self.stream)

    def show(self, table: "RenderableType", width: int | None = None) -> None:
        """A table or card for people; `width` where no terminal says how wide it may be."""
        if not self.json and not self.quiet:
            from rich.console import Console

            terminal = self.stream.isatty()
            Console(file=self.stream, highlight=False, width=None if terminal else width).print(table)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """With `json`, whatever prints meanwhile (a reward function, a library) goes to stderr."""
        if not self.json:
            yield
            return
        with contextlib.redirect_stdout(sys.stderr):
            yield

    def finish(self, content: Mapping[str, Any], text: str = "", following: str = "") -> None:
        """The result: `content` as the JSON object, or `text`; then the next command, which --quiet keeps."""
        if text:
            self.say(text)
        if self.json:
            whole = {**content, "next": following} if following else content
            typer.echo(json.dumps(as_json(whole), ensure_ascii=False, allow_nan=False))
        elif following:
            typer.echo(f"next: {following}")


def as_json(value: Any) -> Any:
    """`value` in JSON's types; non-finite numbers as text, paths as text, dataclasses as objects."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
