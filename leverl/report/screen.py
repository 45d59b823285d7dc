"""Lines redrawn in place with rich; nothing else here knows how."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live
    from rich.text import Text

_PER_SECOND = 4


def drawable(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether lines can be redrawn in place on `stream`: a terminal that is not dumb."""
    try:
        terminal = stream.isatty()
    except ValueError:
        return False  # closed
    return terminal and environment.get("TERM") not in ("dumb", "unknown")


class Screen:
    """Calls `lines` a few times a second while open and draws what it returns."""

    def __init__(self, stream: TextIO, lines: Callable[[], list["Text"]], *, forced: bool = False) -> None:
        from rich.console import Console

        self._console: Console = Console(
            file=stream, force_terminal=True if forced else None, highlight=False
        )
        self._lines = lines
        self._live: Live | None = None

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        yield from self._lines()

    def open(self) -> None:
        from rich.live import Live

        if self._live is None:
            # Training code may print: rich would redirect stdout, which programs parse. Leave it alone.
            self._live = Live(
                self,
                console=self._console,
                refresh_per_second=_PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()

    def refresh(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def say(self, line: str) -> None:
        """A line above the redrawn ones, which stays."""
        from rich.text import Text

        self._console.print(Text(line), soft_wrap=True)

    def close(self, line: str = "") -> None:
        """Leave the last picture standing and end with `line`."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if line:
            self.say(line)
