"""`leverl import`: begin a study with what another tool has found."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leverl.cli import options
from leverl.cli.output import Output

if TYPE_CHECKING:
    from leverl.tune.store.imported import Imported

EXAMPLES = (
    "leverl import optuna sqlite:///old.db --study s --into studies/lr   # then: leverl tune --resume",
    "leverl import optuna old.db --into studies/lr --dry-run             # what fits, and what does not",
    "leverl import optuna old.log --into studies/lr budget.trials=20     # another budget",
)


def run(
    kind: Annotated[Literal["optuna"], typer.Argument(metavar="KIND", help="Where it comes from: optuna.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="Database (URL or SQLite file), or the file of an Optuna journal."
        ),
    ],
    settings: options.Settings = None,
    study: Annotated[
        str | None, typer.Option("--study", help="Its name, if there are several.", show_default=False)
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--into", help="Folder of the new study.", show_default=False)
    ] = None,
    target: Annotated[
        str, typer.Option("--target", help="Recipe or configuration file that the new runs train.")
    ] = "grpo",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be imported, and write nothing.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,  # noqa: ARG001 - read where errors are told
) -> int:
    """Begin a study with the trials of another: an Optuna study."""
    from leverl.record.naming import slug
    from leverl.tune.importing.optuna import read_optuna
    from leverl.tune.importing.skeleton import begin, draft

    output = Output(json=json, quiet=quiet)
    imported = read_optuna(source, study, target=target)
    folder = into or Path("studies") / slug(imported.study)
    plan = draft(imported, folder, target, tuple(settings or ()))
    again = ["leverl", "import", kind, source, *(["--study", study] if study else []), "--into", str(folder)]
    following = shlex.join([*again, *(settings or ())])
    if not dry_run:
        begin(plan.study, folder, imported)
        following = shlex.join(["leverl", "tune", "--resume", str(folder)])
    content = {"folder": folder, "written": not dry_run, **_facts(imported)}
    output.finish(content, _text(imported, folder, written=not dry_run), following)
    return 0


def _facts(imported: "Imported") -> dict[str, Any]:
    failed = sum(trial.value is None for trial in imported.trials)
    return {
        "source": imported.source,
        "study": imported.study,
        "goal": "maximize" if imported.maximize else "minimize",
        "trials": len(imported.trials),
        "failed": failed,
        "names": imported.names,
        "space": imported.space,
        "fixed": imported.fixed,
        "left_out": imported.left_out,
    }


def _text(imported: "Imported", folder: Path, *, written: bool) -> str:
    facts = _facts(imported)
    lines = [
        (
            "imported",
            f"{facts['trials']} trials of study {imported.study}, {facts['failed']} of them failures",
        ),
        ("levers", ", ".join(_renamed(word, lever) for word, lever in imported.names.items())),
        *(("fixed", f"{lever} = {value}") for lever, value in imported.fixed.items()),
        *(("left out", reason) for reason in imported.left_out),
        ("study", f"{folder}/study.yaml: check target, objective and budget" if written else "not written"),
    ]
    return "\n".join(f"{label:<12} {text}" for label, text in lines)


def _renamed(word: str, lever: str) -> str:
    return lever if word == lever else f"{word} → {lever}"
