"""`leverl report`: one page about a run or a study."""

from pathlib import Path
from typing import Annotated

import typer

from leverl.cli import options
from leverl.cli.output import Output
from leverl.errors import ConfigError

EXAMPLES = (
    "leverl report runs/try1                     # curves, ratios and samples of a run",
    "leverl report studies/lr                    # verdict, proof, search and levers of a study",
    "leverl report studies/lr --json             # where the page is, for programs",
)


def run(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a run or a study.")],
    json: options.Json = False,
) -> int:
    """Write a run's or a study's report, a page that needs nothing else."""
    from leverl.record.layout import RunFolder

    output = Output(json=json)
    if (folder / "study.yaml").is_file():
        _study(folder, output)
    elif RunFolder(folder).exists():
        _run(folder, output)
    else:
        there = "holds neither a run nor a study" if folder.is_dir() else "does not exist"
        raise ConfigError(f"{folder} {there}. Runs are in runs/NAME, studies in studies/NAME.")
    return 0


def _study(folder: Path, output: Output) -> None:
    from leverl.report.study_page import write_study_report
    from leverl.report.terminal import study_next, study_table
    from leverl.tune.view import read_study

    view = read_study(folder)
    page = write_study_report(view)
    output.show(study_table(view))
    verdict = view.winner.verdict if view.winner else f"not over yet: {view.phase}"
    content = {"kind": "study", "report": page, "phase": view.phase, "winner": view.winner}
    output.finish(content, f"{verdict}\nreport: {page}", study_next(view))


def _run(folder: Path, output: Output) -> None:
    from leverl.record.layout import RunFolder
    from leverl.record.run_record import load_record
    from leverl.report.run_page import write_run_report
    from leverl.report.terminal import run_line, run_next

    page = write_run_report(folder)
    record = load_record(RunFolder(folder).record)
    content = {"kind": "run", "report": page, "record": record}
    line = run_line(record) if record else "this run left no record"
    output.finish(content, f"{line}\nreport: {page}", run_next(record, folder) if record else "")
