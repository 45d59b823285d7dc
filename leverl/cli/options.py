"""Flags that several commands share.

A flag changes how a call runs or prints; `key=value` changes what is run, and is recorded.
"""

from typing import Annotated

import typer

from leverl.cli.output import Progress
from leverl.errors import ConfigError

Settings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE", help="Settings to change; `leverl levers` lists them.", show_default=False
    ),
]
Name = Annotated[str | None, typer.Option("--name", help="Name of the folder.", show_default=False)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the folder given.")]
Clean = Annotated[bool, typer.Option("--clean", help="Delete what has that name first (asks).")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask: before --clean deletes, before a large grid.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be run, and run nothing.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; everything else on stderr.")]
Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        metavar="NAME",
        help="Publish to wandb, mlflow or tensorboard too; can be given several times.",
        show_default=False,
    ),
]
ShowProgress = Annotated[Progress, typer.Option("--progress", help="How to show what is going on.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only the result.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more; show where an error came from.")]


def check_first_word(word: str, verb: str, example: str) -> None:
    """Refuse a setting where recipe, file or folder is expected.

    Raises:
        ConfigError: says what to write first.
    """
    if "=" in word:
        raise ConfigError(
            f"'{word}' stands where {verb} expects {example}. Write: leverl {verb} {example} {word}"
        )
