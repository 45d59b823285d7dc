"""`leverl report`: one page about a run or a study, or about several studies side by side."""

from pathlib import Path
from typing import Annotated

import typer

from leverl.cli import options
from leverl.cli.output import Output
from leverl.errors import ConfigError

EXAMPLES = (
    "leverl report runs/try1                     # curves, ratios and samples of a run",
    "leverl report studies/lr                    # verdict, proof, search and levers of a study",
    "leverl report studies/grid studies/bayes    # two studies: cost, quality, trajectory, levers",
)


def run(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER…", help="Folder of a run or a study; of several studies to compare them."
        ),
    ],
    json: options.Json = False,
) -> int:
    """Write a run's or a study's report, a page that needs nothing else; of several studies, compare them."""
    from leverl.record.layout import RunFolder

    output = Output(json=json)
    for folder in folders:
        if not (folder / "study.yaml").is_file() and not RunFolder(folder).exists():
            there = "holds neither a run nor a study" if folder.is_dir() else "does not exist"
            raise ConfigError(f"{folder} {there}. Runs are in runs/NAME, studies in studies/NAME.")
    if len(folders) > 1:
        _compare(folders, output)
    elif (folders[0] / "study.yaml").is_file():
        _study(folders[0], output)
    else:
        _run(folders[0], output)
    return 0


def _study(folder: Path, output: Output) -> None:
    from leverl.report.study_page import analysed, write_study_report
    from leverl.report.terminal import study_next, study_table

    data = analysed(folder)
    view = data.view
    page = write_study_report(view, data.analysis)
    output.show(study_table(view))
    verdict = view.winner.verdict if view.winner else f"not over yet: {view.phase}"
    content = {
        "kind": "study",
        "report": page,
        "phase": view.phase,
        "winner": view.winner,
        "recommendation": view.recommendation,
        "cost": data.balance,
    }
    output.finish(content, f"{verdict}\nreport: {page}", study_next(view))


def _compare(folders: list[Path], output: Output) -> None:
    from leverl.report.compare_data import read_studies, warnings
    from leverl.report.compare_page import facts, in_a_sentence, terminal_table, write_comparison

    for folder in folders:
        if not (folder / "study.yaml").is_file():
            raise ConfigError(f"{folder} is a run. Only studies can be compared: leverl report STUDY STUDY.")
    studies = read_studies(folders)
    page = write_comparison(studies)
    output.show(terminal_table(studies))
    notes = warnings(studies)
    content = {"kind": "comparison", "report": page, "studies": facts(studies), "warnings": notes}
    lines = [*(f"! {note}" for note in notes), in_a_sentence(studies), f"report: {page}"]
    output.finish(content, "\n".join(lines))


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
