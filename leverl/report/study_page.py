"""A study's report: `report.html`, one page that needs nothing else, and `summary.md`."""

from pathlib import Path

from leverl.record.layout import write_atomically
from leverl.report.page import write_page
from leverl.report.sections import curves, proof, runs, search, trust, verdict
from leverl.report.study_data import StudyData
from leverl.report.summary import summary
from leverl.tune.model import StudyView


def write_study_report(view: StudyView) -> Path:
    """Write both files into the study's folder; a study that is not over is reported as it stands.

    Returns:
        The path of `report.html`.
    """
    data = StudyData(view)
    headline = verdict.headline(data)
    sections = (
        verdict.build(data),
        proof.build(data),
        curves.build(data),
        search.build(data),
        runs.build(data),
        trust.build(data),
    )
    write_atomically(view.folder / "summary.md", summary(data, headline))
    return write_page(view.folder / "report.html", f"{view.name} – leverl study", headline, sections)
