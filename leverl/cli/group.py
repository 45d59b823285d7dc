"""Commands found by file name and loaded when used; their help; hints for mistyped words.

typer keeps the classes of contexts and commands private, hence `Any` for them.
"""

from collections.abc import Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from leverl import plugins
from leverl.errors import ConfigError

COMMANDS: Final = "leverl.cli.commands"
_EXAMPLES: Final = (
    "leverl train demo                        # watch a small policy learn, on a laptop, in a minute",
    "leverl tune demo                         # find settings that beat the defaults, and prove it",
    "leverl levers kl_coef                    # what a setting does and when to move it",
)


class LeverlCommand(TyperCommand):
    """A command whose help starts with examples and whose mistyped flags are answered with what was meant."""

    examples: Sequence[str] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            raise _explained(error, given, self.params, ctx) from error

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        _write_examples(formatter, self.examples)
        super().format_usage(ctx, formatter)


class LazyGroup(TyperGroup):
    """The commands are the modules of `leverl/cli/commands/` and entry points; each loads when named."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        return plugins.names(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> LeverlCommand:  # noqa: ARG002
        return build(cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            raise _explained(error, given, self.params, ctx) from error

    def resolve_command(
        self,
        ctx: Any,  # noqa: ARG002
        args: list[str],
    ) -> tuple[str, LeverlCommand, list[str]]:
        return args[0], build(args[0]), args[1:]

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        _write_examples(formatter, _EXAMPLES)
        super().format_usage(ctx, formatter)


def build(name: str) -> LeverlCommand:
    """The command `name` from its module's `run` (flags are its parameters) and `EXAMPLES`.

    Raises:
        ConfigError: no such command; names the nearest.
    """
    module = plugins.load(COMMANDS, name, "command")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=LeverlCommand)(module.run)
    command = typer.main.get_command(app)
    if not isinstance(command, LeverlCommand):
        raise TypeError(f"command {name!r} was built as {type(command).__name__}, not as a LeverlCommand")
    command.examples = getattr(module, "EXAMPLES", ())
    return command


def _write_examples(formatter: Any, examples: Sequence[str]) -> None:
    if examples:
        formatter.write("Examples:\n" + "".join(f"  {line}\n" for line in examples) + "\n")


def _explained(
    error: typer.TyperException, args: Sequence[str], params: Sequence[Any], ctx: Any
) -> ConfigError:
    """What typer found wrong with `args`, with the flag or setting that was probably meant."""
    problem = error.format_message()
    unknown = getattr(error, "option_name", None)
    if unknown is not None and hasattr(error, "possibilities"):  # no such option
        flags = [flag for param in params for flag in param.opts if flag.startswith("-")]
        problem = f"unknown flag {unknown}.{_as_lever(unknown, args) or plugins.nearest(unknown, flags)}"
    return ConfigError(f"{problem}\nSee: {ctx.command_path} -h")


def _as_lever(flag: str, args: Sequence[str]) -> str:
    """For `--learning_rate 1e-6` the hint to write `actor_learning_rate=1e-6`; empty if it is no lever."""
    from leverl.vocabulary import catalog

    word = flag.lstrip("-").replace("-", "_")
    if not catalog.is_lever(word):
        return ""
    return f" Settings have no dashes: write {catalog.by_name(word).name}={_value_of(flag, args)}"


def _value_of(flag: str, args: Sequence[str]) -> str:
    for position, argument in enumerate(args):
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
        if argument == flag and position + 1 < len(args) and not args[position + 1].startswith("--"):
            return args[position + 1]
    return "VALUE"
