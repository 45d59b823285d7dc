"""3 CURVES: held-out score by step, with KL and response length below on the same axis."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from leverl.record.layout import RunFolder
from leverl.record.metrics import read_lines
from leverl.record.run_record import Outcome
from leverl.record.series import Series
from leverl.report import numbers, svg
from leverl.report.blocks import Block, Cell, Chart, Note, Section, Table, plain_table
from leverl.report.figures import axis, faded, label, layout, plot, scatter, thin
from leverl.report.marks import GREY, mark_of
from leverl.report.sections.roles import Role, roles
from leverl.report.study_data import StudyData
from leverl.report.svg import Curve
from leverl.tune.model import CONFIRM, RunState

KL, LENGTH = "kl_divergence", "response_length/mean"
_OTHERS = 60  # grey curves; more would hide what they are behind


def build(data: StudyData) -> Section:
    """Curves of candidate, base and finalists in colour, all others in grey."""
    lines = [(role, line) for role in roles(data) if (line := _line(role, _evaluations(_runs_of(role))))]
    blocks: tuple[Block, ...] = (Note("No run has been evaluated yet."),)
    if lines or _others(data):
        blocks = (_chart(data, lines),)
    return Section(
        "curves",
        "Curves",
        "How the score came about, and what it cost in distance from the reference.",
        blocks,
    )


def _runs_of(role: Role) -> list[RunState]:
    """The runs behind a role's curve: the confirmation's where there are any, else all that finished."""
    runs = role.configuration.runs
    for chosen in (
        [s for s in runs if s.run.phase == CONFIRM and s.outcome is Outcome.FINISHED],
        [s for s in runs if s.outcome is Outcome.FINISHED],
    ):
        if chosen:
            return chosen
    return [s for s in runs if len(s.evaluations)][:1]


def _evaluations(runs: Sequence[RunState]) -> list[Series]:
    return [state.evaluations for state in runs if len(state.evaluations)]


def _line(role: Role, series: Sequence[Series]) -> Curve | None:
    """Mean and range over the runs, at the steps that all of them have."""
    if not series:
        return None
    tables = [dict(zip(one.steps, one.values, strict=True)) for one in series]
    common = sorted(set(tables[0]).intersection(*tables[1:]))
    steps, _ = thin(common, [tables[0][step] for step in common])
    columns = [[table[step] for table in tables] for step in steps]
    return Curve(
        name=f"{role.name}, {numbers.plural(len(series), 'seed')}",
        color=role.color,
        dash=role.dash,
        steps=tuple(steps),
        means=tuple(sum(column) / len(column) for column in columns),
        low=tuple(map(min, columns)),
        high=tuple(map(max, columns)),
        seeds=len(series),
    )


def _chart(data: StudyData, lines: Sequence[tuple[Role, Curve]]) -> Chart:
    below = [(role, _metrics(_runs_of(role))) for role, _ in lines]
    panels = {name: _panel(name, below) for name in (KL, LENGTH)}
    shown = [name for name, curves in panels.items() if curves]
    return Chart(
        name="curves-chart",
        finding=_finding(data, lines),
        caption=_caption(shown),
        plot=_plot(data, [line for _, line in lines], [panels[name] for name in shown], shown),
        data=_table(lines),
        static=svg.curves([line for _, line in lines], data.view.objective),
    )


def _metrics(runs: Sequence[RunState]) -> list[dict[str, Series]]:
    return [read_series(state, (KL, LENGTH)) for state in runs]


def read_series(state: RunState, names: Sequence[str]) -> dict[str, Series]:
    """The named metrics of a run from its folder; a metric or folder that is not there is left out."""
    points: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    for step, values in read_lines(RunFolder(state.folder).metrics):
        for name in names:
            if isinstance(value := values.get(name), int | float):
                points[name].append((step, float(value)))
    return {
        name: Series(tuple(step for step, _ in pairs), tuple(value for _, value in pairs))
        for name, pairs in points.items()
        if pairs
    }


def _panel(name: str, below: Sequence[tuple[Role, list[dict[str, Series]]]]) -> list[Curve]:
    found = [_line(role, [series[name] for series in runs if name in series]) for role, runs in below]
    return [line for line in found if line is not None]


def _plot(
    data: StudyData, lines: Sequence[Curve], panels: Sequence[list[Curve]], names: Sequence[str]
) -> Markup:
    titles = {KL: "KL to reference", LENGTH: "length, tokens"}
    traces = _other_traces(data)
    for line in lines:
        traces += curve_traces(line, named=True)
    lowest = 0.27 * len(panels)
    axes = {
        "xaxis": axis("step", anchor=f"y{len(panels) + 1}" if panels else "y"),
        "yaxis": axis(data.view.objective, domain=[lowest + 0.06 if panels else 0, 1]),
    }
    for index, (panel, name) in enumerate(zip(panels, names, strict=True)):
        top = lowest - 0.27 * index
        axes[f"yaxis{index + 2}"] = axis(titles[name], domain=[top - 0.22, top], nticks=4)
        for line in panel:
            traces += curve_traces(line, named=False, yaxis=f"y{index + 2}")
    return plot("curves-chart", traces, layout(340 + 130 * len(panels), axes))


def curve_traces(line: Curve, *, named: bool, yaxis: str = "y") -> list[dict[str, object]]:
    """The band of the seeds, then their mean."""
    traces = []
    if line.seeds > 1:
        traces.append(
            scatter(
                [*line.steps, *reversed(line.steps)],
                [*line.high, *reversed(line.low)],
                fill="toself",
                fillcolor=faded(line.color, 0.16),
                line={"width": 0},
                hoverinfo="skip",
                mode="lines",
                legendgroup=line.name,
                yaxis=yaxis,
            )
        )
    traces.append(
        scatter(
            line.steps,
            line.means,
            line.name if named else "",
            mode="lines" if len(line.steps) > 1 else "markers",
            line={"color": line.color, "width": 2.5, "dash": line.dash},
            marker={"color": line.color},
            legendgroup=line.name,
            yaxis=yaxis,
            hovertemplate=f"{label(line.name)}<br>step %{{x}}: %{{y:.4g}}<extra></extra>",
        )
    )
    return traces


def _others(data: StudyData) -> list[RunState]:
    coloured = {role.configuration.id for role in roles(data)}
    runs = [s for s in data.view.history.runs if s.run.config_id not in coloured and len(s.evaluations)]
    stopped = [s for s in runs if s.outcome is not Outcome.FINISHED]
    return (stopped + [s for s in runs if s.outcome is Outcome.FINISHED])[:_OTHERS]


def _other_traces(data: StudyData) -> list[dict[str, object]]:
    """Grey curves; one that did not run to its end has the mark of its end and its reason."""
    traces: list[dict[str, object]] = []
    named: set[str] = set()
    for state in _others(data):
        steps, values = thin(state.evaluations.steps, state.evaluations.values)
        dash = "dash" if state.outcome is None else "solid"
        words = f"{state.run.config_id} seed {state.run.seed}"
        traces.append(
            scatter(
                steps,
                values,
                "" if "grey" in named else "other runs",
                mode="lines",
                line={"color": faded(GREY, 0.4), "width": 1, "dash": dash},
                legendgroup="others",
                hovertemplate=f"{label(words)}<br>step %{{x}}: %{{y:.4g}}<extra></extra>",
            )
        )
        named.add("grey")
        if state.outcome is Outcome.FINISHED and state.scored:
            continue
        mark = mark_of(state)
        known = [(s, v) for s, v in zip(steps, values, strict=True) if math.isfinite(v)]
        if not known:
            continue
        hover = f"{label(words)}: {label(mark.word)} at step {known[-1][0]}"
        traces.append(
            scatter(
                [known[-1][0]],
                [known[-1][1]],
                "" if mark.word in named else mark.word,
                mode="markers",
                marker={
                    "symbol": mark.symbol,
                    "size": 9,
                    "color": mark.color,
                    "line": {"width": 1.5, "color": mark.color},
                },
                text=[hover + (f"<br>{label(_wrapped(state.message))}" if state.message else "")],
                hovertemplate="%{text}<extra></extra>",
                legendgroup=mark.word,
            )
        )
        named.add(mark.word)
    return traces


def _wrapped(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _finding(data: StudyData, lines: Sequence[tuple[Role, Curve]]) -> str:
    parts = [
        f"{line.name}: from {numbers.short(line.means[0])} at step {line.steps[0]} "
        f"to {numbers.short(line.means[-1])} at step {line.steps[-1]}"
        for _, line in lines
        if line.steps
    ]
    return f"{data.view.objective} by training step. {'; '.join(parts) or 'Only other runs so far'}."


def _caption(panels: Sequence[str]) -> str:
    text = (
        "Lines: mean over the seeds of a configuration (confirmation seeds where there are any); bands: "
        "lowest to highest seed, not a standard error (SE). Grey: all other runs; a mark shows where one was "
        "stopped, failed or is now (dashed)."
    )
    if panels:
        text += " Below, on the same steps: " + " and ".join(
            {KL: "KL divergence to the reference (nats per token)", LENGTH: "mean response length"}[name]
            for name in panels
        )
        text += "."
    return text


def _table(lines: Sequence[tuple[Role, Curve]]) -> Table | None:
    """At most a dozen steps of each line."""
    if not lines:
        return None
    steps = sorted({step for _, line in lines for step in line.steps})
    chosen = (
        [steps[round(index * (len(steps) - 1) / 11)] for index in range(12)] if len(steps) > 12 else steps
    )
    rows = []
    for _, line in lines:
        known = dict(zip(line.steps, line.means, strict=True))
        cells = [Cell(numbers.short(known[step]) if step in known else numbers.UNKNOWN) for step in chosen]
        rows.append((Cell(line.name), *cells))
    return plain_table("curves-data", ("mean at step", *map(str, chosen)), rows, "Data of this chart")
