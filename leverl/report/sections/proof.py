"""2 PROOF: a dot per seed, means with 95 % intervals, and the paired differences that decide."""

from collections.abc import Sequence

from markupsafe import Markup

from leverl.report import numbers, svg
from leverl.report.blocks import Block, Cell, Chart, Note, Section, Table, number_cell, plain_table
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import GREY
from leverl.report.sections.roles import Role, roles
from leverl.report.study_data import StudyData, finished_scores
from leverl.report.svg import DotRow
from leverl.tune.model import CONFIRM, GRID, RACE, SEARCH, Comparison, RunState
from leverl.tune.statistics import interval95, mean


def build(data: StudyData) -> Section:
    """Winner, base and finalists; without confirmation what there is so far."""
    pairs = [(role, row) for role in roles(data) for row in _rows(data, role)]
    rows = [row for _, row in pairs]
    alike = [n for n, (role, _) in enumerate(pairs) if role.configuration.id in data.indistinguishable]
    blocks: tuple[Block, ...] = (Note("No finished run has a score yet."),)
    if rows:
        blocks = (_chart(data, rows, alike),)
    return Section("proof", "Proof", _lead(data), blocks)


def _lead(data: StudyData) -> str:
    if data.comparison is not None:
        return (
            "The seeds that chose a winner cannot prove it: whoever is chosen as best was also lucky. So the "
            "winner and the base were trained once more on seeds that nothing had seen."
        )
    return "No confirmation yet. Scores on the seeds of the search favour whoever leads by luck."


def _rows(data: StudyData, role: Role) -> list[DotRow]:
    """The role's scores of the latest phase that has some, so that seeds of phases never mix."""
    for phase in (CONFIRM, RACE, GRID, SEARCH):
        if row := _row(role, data.phase_runs(role.configuration, phase), phase):
            return [row]
    return []


def _row(role: Role, runs: Sequence[RunState], phase: str) -> DotRow | None:
    values = finished_scores(runs)
    if not values:
        return None
    seeds = tuple(state.run.seed for state in runs if finished_scores([state]))
    return DotRow(
        label=f"{role.name} · {phase}",
        color=role.color,
        symbol=role.symbol,
        values=values,
        seeds=seeds,
        mean=mean(values),
        interval=interval95(values),
    )


def _chart(data: StudyData, rows: Sequence[DotRow], alike: Sequence[int]) -> Chart:
    comparison = data.comparison
    return Chart(
        name="proof-chart",
        finding=_finding(data, rows),
        caption=_caption(data, rows),
        plot=_plot(data, rows, comparison, alike),
        data=_table(data, rows),
        static=svg.dot_rows(rows, data.view.objective),
    )


def _finding(data: StudyData, rows: Sequence[DotRow]) -> str:
    parts = [
        f"{row.label}: mean {numbers.short(row.mean)} over {numbers.plural(len(row.values), 'seed')}"
        for row in rows
    ]
    text = f"{data.view.objective} per seed. {'; '.join(parts)}."
    if (comparison := data.comparison) is not None:
        text += f" Difference to the base {numbers.signed_within(comparison.difference, comparison.interval)}"
        text += (
            f", 95 % CI {numbers.interval(*comparison.interval)}."
            if comparison.interval
            else ", no interval."
        )
    return text


def _caption(data: StudyData, rows: Sequence[DotRow]) -> str:
    text = (
        "Open marks: one run each (a seed). Thick bar: their mean. Line: 95 % confidence interval (CI, t) of "
        "the mean over seeds; with one seed there is none, and that of two seeds may run out of the picture."
    )
    if data.comparison is not None:
        text += " Below: the differences seed by seed, on which the verdict rests."
    if data.indistinguishable:
        found = data.view.recommendation
        text += f" By search and race {found.reason}." if found else ""
    if any(f"· {RACE}" in row.label for row in rows) and data.comparison is not None:
        text += " Finalists are shown on the seeds of the race; compare them with care."
    return text


def _plot(
    data: StudyData, rows: Sequence[DotRow], comparison: Comparison | None, alike: Sequence[int]
) -> Markup:
    traces = [trace for index, row in enumerate(rows) for trace in _row_traces(row, len(rows) - 1 - index)]
    height = 90 + 46 * len(rows)
    axes = {
        "xaxis": axis(data.view.objective, range=_span(rows)),
        "yaxis": axis(
            tickvals=list(range(len(rows))),
            ticktext=[label(row.label) for row in reversed(rows)],
            range=[-0.6, len(rows) - 0.4],
            showgrid=False,
            ticks="",
        ),
    }
    settings: dict[str, object] = {"showlegend": False, "margin": {"l": 60, "r": 24, "t": 12, "b": 44}}
    shapes: list[dict[str, object]] = []
    if len(alike) > 1:
        shapes, settings["annotations"] = _bracket([len(rows) - 1 - place for place in alike])
        settings["margin"] = {"l": 60, "r": 44, "t": 12, "b": 44}
    settings["shapes"] = shapes
    if comparison is not None:
        traces += _row_traces(_difference_row(data, comparison), 0, "x2", "y2")
        height += 130
        split = 100 / (height - 56)
        axes["yaxis"]["domain"] = [min(0.75, split + 70 / (height - 56)), 1]
        axes["xaxis"]["anchor"] = "y"
        axes["xaxis2"] = axis(_difference_words(data), anchor="y2")
        axes["yaxis2"] = axis(
            domain=[0, split],
            tickvals=[0],
            ticktext=["paired differences"],
            range=[-0.6, 0.6],
            showgrid=False,
            ticks="",
        )
        shapes += [
            {"type": "line", "xref": "x2", "yref": "y2", "x0": 0, "x1": 0, "y0": -0.6, "y1": 0.6,
             "line": {"color": "#808080", "width": 1.5, "dash": "dash"}}
        ]  # fmt: skip
        traces.append(
            scatter([0], [0], mode="markers", marker={"opacity": 0}, xaxis="x2", yaxis="y2", hoverinfo="skip")
        )
    return plot("proof-chart", traces, layout(height, axes, **settings))


def _span(rows: Sequence[DotRow]) -> list[float]:
    """All runs, and the intervals of three or more: one of two seeds can be so wide that it hides all else."""
    ends = [value for row in rows for value in row.values]
    ends += [end for row in rows if row.interval and len(row.values) > 2 for end in row.interval]
    pad = 0.05 * ((max(ends) - min(ends)) or 1.0)
    return [min(ends) - pad, max(ends) + pad]


def _bracket(places: Sequence[int]) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """A bracket at the right edge around the rows that cannot be told apart, with its word."""
    low, high = min(places) - 0.25, max(places) + 0.25
    stroke = {"color": GREY, "width": 1.8}
    place = {"xref": "paper", "yref": "y", "type": "line", "line": stroke}
    shapes: list[dict[str, object]] = [{**place, "x0": 1.012, "x1": 1.012, "y0": low, "y1": high}]
    shapes += [{**place, "x0": 1.0, "x1": 1.012, "y0": y, "y1": y} for y in (low, high)]
    shapes += [{**place, "x0": 1.006, "x1": 1.012, "y0": y, "y1": y} for y in places]
    word: dict[str, object] = {
        "text": "indistinguishable", "xref": "paper", "yref": "y", "x": 1.016, "y": (low + high) / 2,
        "textangle": 90, "showarrow": False, "xanchor": "left", "font": {"size": 11},
    }  # fmt: skip
    return shapes, [word]


def _difference_words(data: StudyData) -> str:
    """Differences are positive where the candidate is better, whichever way the goal points."""
    name = data.candidate.id if data.candidate else "candidate"
    one, two = (name, "base") if data.view.history.maximize else ("base", name)
    return f"{one} − {two} (> 0: {name} is better)"


def _difference_row(data: StudyData, comparison: Comparison) -> DotRow:
    sign = 1 if data.view.history.maximize else -1
    pairs = tuple(sign * (w - b) for w, b in zip(comparison.winner, comparison.base, strict=True))
    return DotRow(
        "paired differences",
        "#009E73",
        "circle",
        pairs,
        comparison.seeds,
        comparison.difference,
        comparison.interval,
    )


def _row_traces(row: DotRow, y: int, xaxis: str = "x", yaxis: str = "y") -> list[dict[str, object]]:
    where = {"xaxis": xaxis, "yaxis": yaxis}
    traces = []
    if row.interval is not None:
        half = (row.interval[1] - row.interval[0]) / 2
        traces.append(
            scatter(
                [row.mean],
                [y],
                mode="markers",
                marker={"opacity": 0},
                error_x={"type": "data", "array": [half], "color": row.color, "thickness": 2.5, "width": 7},
                hoverinfo="skip",
                **where,
            )
        )
    traces.append(
        scatter(
            row.values,
            [y] * len(row.values),
            mode="markers",
            marker={
                "symbol": f"{row.symbol}-open" if row.symbol != "cross" else "cross-open",
                "size": 11,
                "color": row.color,
                "line": {"width": 2, "color": row.color},
            },
            text=[
                f"seed {seed}: {numbers.short(value, 4)}"
                for seed, value in zip(row.seeds, row.values, strict=True)
            ],
            hovertemplate="%{text}<extra></extra>",
            **where,
        )
    )
    words = f"mean {numbers.short(row.mean, 4)}"
    if row.interval:
        words += f"<br>95 % CI {numbers.interval(*row.interval)}"
    traces.append(
        scatter(
            [row.mean],
            [y],
            mode="markers",
            marker={
                "symbol": "line-ns",
                "size": 22,
                "line": {"width": 5, "color": row.color},
                "color": faded(row.color, 1),
            },
            text=[words],
            hovertemplate="%{text}<extra></extra>",
            **where,
        )
    )
    return traces


def _table(data: StudyData, rows: Sequence[DotRow]) -> Table:
    shown = list(rows) + ([_difference_row(data, data.comparison)] if data.comparison else [])
    cells = [
        (
            Cell(row.label),
            number_cell(row.mean),
            Cell(
                numbers.interval(*row.interval)
                if row.interval and row.label == "paired differences"
                else _range(row)
            ),
            Cell(", ".join(f"{numbers.short(v)} ({s})" for v, s in zip(row.values, row.seeds, strict=True))),
        )
        for row in shown
    ]
    return plain_table(
        "proof-data",
        ("configuration · phase", "mean", "95 % CI", "value (seed)"),
        cells,
        "Data of this chart",
    )


def _range(row: DotRow) -> str:
    if row.interval is None:
        return numbers.UNKNOWN
    low, high = row.interval
    return f"{numbers.short(low)} … {numbers.short(high)}"
