"""A study's report: `report.html`, one page that needs nothing else, and `summary.md`."""

from pathlib import Path

from leverl.record.layout import write_atomically
from leverl.report.page import write_page
from leverl.report.sections import cost, curves, levers, proof, runs, search, trust, verdict
from leverl.report.study_data import StudyData
from leverl.report.summary import summary
from leverl.tune.analysis.result import Analysis
from leverl.tune.model import StudyView


def report_study(folder: str | Path) -> Path:
    """Read the study in `folder`, analyse it and write its report.

    Returns:
        The path of `report.html`.

    Raises:
        ConfigError: the folder holds no study.
    """
    data = analysed(folder)
    return write_study_report(data.view, data.analysis)


def analysed(folder: str | Path) -> StudyData:
    """The study in `folder` with its analysis, which takes seconds.

    Raises:
        ConfigError: the folder holds no study.
    """
    from leverl.tune.analysis.analyse import analyse_study
    from leverl.tune.view import read_plan, read_study

    view = read_study(folder)
    return StudyData(view, analyse_study(read_plan(folder), view.history))


def write_study_report(view: StudyView, analysis: Analysis | None = None) -> Path:
    """Write both files into the study's folder; a study that is not over is reported as it stands.

    Without an analysis the sections that rest on it say so.

    Returns:
        The path of `report.html`.
    """
    data = StudyData(view, analysis)
    headline = verdict.headline(data)
    sections = (
        verdict.build(data),
        proof.build(data),
        curves.build(data),
        search.build(data),
        levers.build(data),
        runs.build(data),
        cost.build(data),
        trust.build(data),
    )
    write_atomically(view.folder / "summary.md", summary(data, headline))
    return write_page(view.folder / "report.html", f"{view.name} – leverl study", headline, sections)
