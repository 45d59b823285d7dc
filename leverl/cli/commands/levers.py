"""`leverl levers`: what can be set, and what it does."""

from typing import Annotated

import typer

from leverl.cli import options
from leverl.cli.output import Output

EXAMPLES = (
    "leverl levers                       # every setting, a line each",
    "leverl levers kl_coef               # meaning, range, symptoms of too low and too high",
    "leverl levers algorithm.kl_coef     # the same by its path; verl's and TRL's names are told too",
)

_PIPED = 240  # columns of the table where no terminal cuts it: whole sentences for grep


def run(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Short name, alias or path of one setting.", show_default=False
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Explain the settings: all in a table, or one in full."""
    from leverl.report import levers
    from leverl.vocabulary import catalog

    output = Output(json=json)
    if name is not None:
        lever = catalog.by_name(name)
        output.show(levers.card(lever))
        default = levers.typed(levers.facts(lever)["default"])
        output.finish(levers.facts(lever), following=f"leverl train grpo {lever.name}={default}")
        return 0
    output.show(levers.table(catalog.LEVERS), width=_PIPED)
    content = {"levers": [levers.facts(lever) for lever in catalog.LEVERS]}
    output.finish(content, following="leverl levers NAME")
    return 0
