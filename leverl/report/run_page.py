"""A run's report: `report.html` in the run's folder, one page that needs nothing else."""

from pathlib import Path
from typing import Any

from leverl.record.layout import RunFolder
from leverl.record.readers.leverl import read
from leverl.record.run_record import Outcome, RunRecord
from leverl.record.series import RunSeries
from leverl.report import numbers
from leverl.report.blocks import Block, Code, Facts, Note, Section
from leverl.report.page import Fact, Headline, write_page
from leverl.report.redact import redact_settings
from leverl.report.sections import run_ratio, run_samples
from leverl.report.sections.run_curves import PANELS, evaluation_chart, panel_chart
from leverl.report.terminal import run_next

_BAD = (Outcome.NON_FINITE, Outcome.CRASHED, Outcome.OUT_OF_MEMORY, Outcome.TIMED_OUT, Outcome.LOST)


def write_run_report(folder: Path) -> Path:
    """Write the report of the run in `folder`, finished or not, and return its path.

    Raises:
        ConfigError: the folder holds no run.
    """
    run = read(folder)
    sections = [_evaluation(run), _training(run), _ratio(run), _samples(folder), _configuration(run)]
    page = [section for section in sections if section is not None]
    return write_page(folder / "report.html", f"{run.name} – leverl run", _headline(run, folder), page)


def _headline(run: RunSeries, folder: Path) -> Headline:
    record = run.record
    return Headline(
        kicker=f"Run {run.name}" + (f" · from {record.source} · seed {record.seed}" if record else ""),
        text=_sentence(run),
        detail=record.message if record else "The run left no record (run.json).",
        tone=_tone(record),
        facts=tuple(_facts(run)),
        next=run_next(record, folder) if record else "",
    )


def _sentence(run: RunSeries) -> str:
    record = run.record
    if record is None:
        return "A run without a record"
    if record.outcome is None:
        return f"Not over: step {record.step} of {record.until}"
    words = {Outcome.OUT_OF_MEMORY: "Out of memory", Outcome.NON_FINITE: "Non-finite numbers"}
    state = words.get(record.outcome, record.outcome.value.replace("_", " ").capitalize())
    if record.score is not None:
        score = numbers.with_error(record.score.mean, record.score.standard_error)
        return f"{state} with a held-out score of {score}"
    return f"{state} at step {record.step} of {record.until}: no score"


def _tone(record: RunRecord | None) -> str:
    if record is None or record.outcome in _BAD:
        return "bad"
    return "done" if record.outcome is Outcome.FINISHED and record.score else "open"


def _facts(run: RunSeries) -> list[Fact]:
    record = run.record
    found: list[Fact] = []
    if record is not None and record.score is not None:
        score = numbers.with_error(record.score.mean, record.score.standard_error)
        count = numbers.plural(record.score.evaluations, "evaluation")
        found.append(Fact(f"Score ± SE, last {count}", score, "standard error over prompts"))
    evaluations = run.get("eval/score")
    if len(evaluations) > 1:
        found.append(Fact("First evaluation", numbers.short(evaluations.values[0])))
    if record is not None:
        found.append(Fact("Steps", f"{record.step} of {record.until}"))
        found.append(Fact("Training time", numbers.duration(record.seconds)))
    if (kl := run.get("kl_divergence").last) is not None:
        found.append(Fact("KL to the reference, last step", numbers.short(kl, 2), "nats per token"))
    if (responses := run.get("train/responses").last) is not None:
        found.append(Fact("Responses", numbers.amount(responses)))
    return found


def _evaluation(run: RunSeries) -> Section:
    chart = evaluation_chart(run)
    blocks: tuple[Block, ...] = (chart,) if chart else (Note("This run has not been evaluated."),)
    return Section("evaluation", "Held-out score", "", blocks)


def _training(run: RunSeries) -> Section:
    charts = [chart for panel in PANELS if (chart := panel_chart(run, panel)) is not None]
    blocks: tuple[Block, ...] = tuple(charts) or (Note("No step has been logged."),)
    lead = "Faint lines are the raw values, strong lines their running mean." if charts else ""
    return Section("training", "Training", lead, blocks, columns=2 if charts else 1)


def _ratio(run: RunSeries) -> Section | None:
    chart = run_ratio.chart(run)
    return Section("ratio", "Probability ratio", "", (chart,)) if chart else None


def _samples(folder: Path) -> Section | None:
    table = run_samples.table(RunFolder(folder))
    lead = "From evaluations at the start, on the way and at the end, exactly as generated."
    return Section("samples", "Samples", lead, (table,)) if table else None


def _configuration(run: RunSeries) -> Section:
    rows = _record_rows(run.record) if run.record else []
    blocks: list[Block] = [Facts(tuple(rows))] if rows else []
    if run.config:
        blocks.append(Code("config.yaml", _yaml(redact_settings(run.config)), folded=True))
    return Section("configuration", "Configuration", "", tuple(blocks))


def _record_rows(record: RunRecord) -> list[tuple[str, str]]:
    rows = [("Source", record.source), ("Seed", str(record.seed)), ("Started", record.started)]
    if record.ended:
        rows.append(("Ended", record.ended))
    if record.parent:
        rows.append(("Parent", record.parent))
    if record.changed:
        changes = [
            f"{path}: {_plain(pair[0])} → {_plain(pair[-1])}" for path, pair in record.changed.items() if pair
        ]
        rows.append(("Changed against it", "\n".join(changes)))
    if record.versions:
        rows.append(("Versions", ", ".join(f"{name} {version}" for name, version in record.versions.items())))
    return rows


def _plain(value: Any) -> str:
    return (
        numbers.exact(value) if isinstance(value, bool | int | float | str) or value is None else str(value)
    )


def _yaml(settings: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
