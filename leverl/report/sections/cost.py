"""7 COST: what was spent, what stopping saved, what failures lost, and what quality costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from leverl.record.run_record import Outcome
from leverl.report import numbers
from leverl.report.blocks import Block, Cell, Chart, Column, Note, Section, Table, number_cell
from leverl.report.figures import axis, faded, label, layout, plot
from leverl.report.marks import BLUE, GREY, ORANGE, OUTCOMES, PURPLE, RED, RUNNING, SKY
from leverl.report.sections import trade_off
from leverl.report.study_data import StudyData
from leverl.tune.ledger import Balance, ledger, saved, total_of
from leverl.tune.model import Cost, RunState
from leverl.tune.ranking import failed

_ROW = 46


@dataclass(frozen=True)
class Measure:
    """How cost is counted on a chart."""

    words: str
    of: Callable[[Cost], float]
    text: Callable[[float], str]


def build(data: StudyData) -> Section:
    """Ledger, and the charts of cost against quality."""
    if not data.view.history.runs:
        return Section("cost", "Cost", "What the study has spent.", (Note("No run has started yet."),))
    blocks: list[Block] = [_chart(data), *trade_off.build(data), _table(data)]
    return Section("cost", "Cost", in_words(data), tuple(blocks), columns=2)


def measure_of(data: StudyData) -> Measure:
    """GPU time where it was measured, else the time of the runs, else their steps."""
    spent = data.balance.spent
    if spent.gpu_seconds:
        return Measure("GPU-hours", lambda cost: cost.gpu_seconds / 3600, numbers.short)
    if spent.seconds:
        return Measure("hours of runs", lambda cost: cost.seconds / 3600, numbers.short)
    return Measure("training steps", lambda cost: float(cost.steps), numbers.amount)


def in_words(data: StudyData) -> str:
    """`62 runs, 0.96 h of runs, 2.9M responses; stopping 2 of them early saved 4 %; 6 runs (4 %) were lost …`."""
    found = data.balance
    parts = [f"{numbers.plural(found.runs, 'run')}, {_amounts(found.spent)}"]
    if found.stopped:
        parts.append(
            f"stopping {numbers.plural(found.stopped, 'run')} early saved {numbers.percent(found.saved_share)} of the "
            f"steps that would have been taken (about {_time(found.saved)} at their own pace)"
        )
    if found.lost_runs:
        causes = ", ".join(f"{count} {cause}" for cause, count in found.lost_runs.items())
        parts.append(
            f"{numbers.percent(found.lost_share)} of the steps went to runs that taught nothing ({causes})"
        )
    return "; ".join(parts) + "."


def _amounts(cost: Cost) -> str:
    words = [f"{numbers.amount(cost.steps)} steps"]
    words += [f"{numbers.amount(cost.responses)} responses"] if cost.responses else []
    words += [f"{numbers.amount(cost.tokens)} tokens"] if cost.tokens else []
    words += [f"{numbers.duration(cost.seconds)} of runs"] if cost.seconds else []
    words += [f"{numbers.short(cost.gpu_seconds / 3600)} GPU-hours"] if cost.gpu_seconds else []
    return ", ".join(words)


def _time(cost: Cost) -> str:
    return numbers.duration(cost.seconds) if cost.seconds else f"{numbers.amount(cost.steps)} steps"


_PARTS: Final[tuple[tuple[str, str, Callable[[RunState], bool]], ...]] = (
    ("finished", BLUE, lambda s: s.scored),
    ("stopped early", SKY, lambda s: s.outcome is Outcome.STOPPED),
    ("running", GREY, lambda s: s.outcome is None),
    ("failed", RED, lambda s: failed(s) or (s.outcome is Outcome.FINISHED and not s.scored)),
    ("lost or interrupted", ORANGE, lambda s: s.outcome in (Outcome.LOST, Outcome.INTERRUPTED)),
)
"""The parts of a bar: name, colour and members."""


def _chart(data: StudyData) -> Chart:
    measure = measure_of(data)
    found = data.balance
    shares = ", ".join(
        f"{phase} {measure.text(measure.of(cost))} {measure.words}" for phase, cost in found.phases.items()
    )
    return Chart(
        name="cost-chart",
        title="Where the cost went",
        finding=f"{shares}. {in_words(data)}",
        caption=(
            f"{measure.words.capitalize()} by phase and by how runs ended. Hatched: what runs that were stopped early "
            "would have cost beyond that; it was not spent. The ledger below has every cause."
        ),
        plot=_bars(data, measure),
    )


def _bars(data: StudyData, measure: Measure) -> Markup:
    phases = list(data.balance.phases)[::-1]
    runs = {phase: data.view.history.in_phase(phase) for phase in phases}
    traces = []
    for name, color, member in _PARTS:
        values = [measure.of(total_of(s.cost for s in runs[phase] if member(s))) for phase in phases]
        if any(values):
            traces.append(_bar(name, phases, values, {"color": color}, measure))
    rest = [measure.of(total_of(saved(s) for s in runs[phase])) for phase in phases]
    if any(rest):
        hatched = {
            "color": faded(GREY, 0.08), "line": {"color": PURPLE, "width": 1},
            "pattern": {"shape": "/", "fgcolor": PURPLE, "size": 6, "solidity": 0.25},
        }  # fmt: skip
        traces.append(_bar("saved by stopping", phases, rest, hatched, measure))
    axes = {"xaxis": axis(measure.words, rangemode="tozero"), "yaxis": axis(showgrid=False, ticks="")}
    style = layout(150 + _ROW * len(phases), axes, barmode="stack", bargap=0.35)
    return plot("cost-chart", traces, style)


def _bar(
    name: str, phases: Sequence[str], values: Sequence[float], marker: Mapping[str, object], measure: Measure
) -> dict[str, object]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": label(name),
        "x": [float(f"{value:.6g}") for value in values],
        "y": [label(phase) for phase in phases],
        "marker": marker,
        "text": [f"{label(name)}: {measure.text(value)} {measure.words}" for value in values],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }


def _table(data: StudyData) -> Table:
    """A row for each phase and end, then the sums."""
    gpu = bool(data.balance.spent.gpu_seconds)
    columns = (
        Column("phase"),
        Column("ended"),
        *(Column(title, numeric=True) for title in ("runs", "steps", "responses", "tokens", "hours")),
        *([Column("GPU-hours", numeric=True)] if gpu else []),
        Column("saved steps", numeric=True, hint="left out by stopping runs early"),
        Column("saved hours", numeric=True, hint="the same at their own pace"),
    )
    rows = []
    for entry in ledger(data.view.history):
        members = [
            s for s in data.view.history.in_phase(entry.phase) if str(s.outcome or "running") == entry.outcome
        ]
        kept = total_of(map(saved, members))
        rows.append(_row(entry.phase, _word(entry.outcome), entry.runs, entry.cost, kept, gpu))
    rows.append(_sum(data.balance, gpu))
    return Table(
        "ledger",
        columns,
        tuple(rows),
        caption="The ledger; a run that was started again counts as it ended last",
        csv=f"{data.view.name}-ledger.csv",
    )


def _word(outcome: str) -> str:
    return RUNNING.word if outcome == RUNNING.word else OUTCOMES[Outcome(outcome)].word


def _sum(found: Balance, gpu: bool) -> tuple[Cell, ...]:
    return _row("all", "", found.runs, found.spent, found.saved, gpu)


def _row(phase: str, ended: str, runs: int, cost: Cost, kept: Cost, gpu: bool) -> tuple[Cell, ...]:
    hours = [cost.seconds / 3600, *([cost.gpu_seconds / 3600] if gpu else [])]
    return (
        Cell(phase),
        Cell(ended),
        number_cell(runs),
        number_cell(cost.steps),
        number_cell(cost.responses),
        number_cell(cost.tokens),
        *(number_cell(value, numbers.short(value)) for value in hours),
        number_cell(kept.steps),
        number_cell(kept.seconds / 3600, numbers.short(kept.seconds / 3600)),
    )
