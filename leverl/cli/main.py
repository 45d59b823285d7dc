"""The `leverl` command: parses, runs, and turns every error into one message and an exit code.

A command is a file in `leverl/cli/commands/`; this module knows none of them.
"""

import errno
import json
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import leverl
from leverl.cli.group import LazyGroup
from leverl.errors import EnvironmentProblem, LeverlError

UNEXPECTED = 3  # not Python's own 1, which is "findings at or above --fail-on"
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run `leverl` with `argv` (default: the process's arguments) and return its exit code.

    0 done · 1 findings at or above --fail-on · 2 wrong usage or configuration, nothing started · 3 training
    ended badly, or a bug in leverl · 4 environment · 130/143 interrupted by Ctrl-C/SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        code = typer.main.get_command(application())(arguments, prog_name="leverl", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except LeverlError as error:
        return _tell(error, arguments)
    except typer.Abort:
        return INTERRUPTED
    except OSError as error:
        problem = outside_problem(error)
        return _tell(problem, arguments) if problem else _tell_unexpected(error)
    except ImportError as error:
        problem = missing_package(error)
        return _tell(problem, arguments) if problem else _tell_unexpected(error)
    except Exception as error:  # noqa: BLE001 - the outermost frame: whatever is left is a bug, and is shown whole
        return _tell_unexpected(error)


def application() -> typer.Typer:
    """The command group; commands load when they are named."""
    app = typer.Typer(
        cls=LazyGroup,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help="RL post-training for language models that tunes itself.")(_options)
    return app


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=lambda value: _version(value))
    ] = False,
) -> None: ...


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leverl {leverl.__version__}")
        raise typer.Exit


def outside_problem(error: OSError) -> EnvironmentProblem | None:
    """What to say when disk or permissions are to blame; None when it may be a bug."""
    where = f" {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        problem = EnvironmentProblem(
            f"the disk is full ({error.strerror}{where and ':'}{where}). Free some space, or write elsewhere "
            "with --out FOLDER; then go on with --resume. save_every and keep limit what checkpoints take."
        )
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        problem = EnvironmentProblem(
            f"cannot access{where}: {error.strerror}. Change its permissions, or use --out FOLDER."
        )
    else:
        return None
    problem.__cause__ = error
    return problem


def missing_package(error: ImportError) -> EnvironmentProblem | None:
    """What to say when another package is missing or broken; None when it is leverl's own module."""
    package = (error.name or "").partition(".")[0]
    if package in ("", "leverl"):
        return None
    problem = EnvironmentProblem(
        f"Python package '{package}' cannot be imported ({error}). Install it in the environment that leverl runs in: "
        f"{sys.executable} -m pip install … (those that leverl needs come with leverl). -v shows who imports it."
    )
    problem.__cause__ = error
    return problem


def _tell(error: LeverlError, arguments: Sequence[str]) -> int:
    if {"-v", "--verbose"} & set(arguments):
        traceback.print_exception(error)
    typer.echo(f"error: {error}", err=True)
    if "--json" in arguments:
        about: dict[str, Any] = {"kind": type(error).__name__, "message": str(error), "exit": error.exit_code}
        typer.echo(json.dumps({"error": about}, ensure_ascii=False))
    return error.exit_code


def _tell_unexpected(error: Exception) -> int:
    traceback.print_exception(error)
    typer.echo(
        "This is a bug in leverl, not in what you did. Please report it to the project, with the lines above "
        "and the output of `leverl env`.",
        err=True,
    )
    return UNEXPECTED
