"""The map of the two most important levers: the model's mean, with the configurations that were tried."""

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Cell, Chart, plain_table
from leverl.report.figures import axis, label, layout, plot, rounded, scatter
from leverl.report.scales import LeverScale, lever_scale
from leverl.report.study_data import StudyData
from leverl.tune.analysis.result import Surface
from leverl.tune.model import LeverAxis, ParamValue

_SMOOTH: Final = 8  # values along a side from which on levels are drawn as lines
_TABLE: Final = 7  # rows and columns of its table
_COLORS: Final = "Cividis"  # legible to colour-blind readers, and on light and dark


def build(data: StudyData, surface: Surface, centre: str) -> Chart:
    """The chart; with data at some of its points."""
    axes = {lever.name: lever for lever in data.view.axes}
    across, up = axes[surface.across], axes[surface.up]
    known = [
        (mean, x, y)
        for y, row in zip(surface.up_values, surface.mean, strict=True)
        for x, mean in zip(surface.across_values, row, strict=True)
        if mean is not None
    ]
    finding = "None of the combinations looked at can run."
    if known:
        best, x, y = (max if data.view.history.maximize else min)(known, key=lambda found: found[0])
        finding = (
            f"The model's mean is best, {numbers.short(best)}, at {surface.across} = {numbers.setting(x)} and "
            f"{surface.up} = {numbers.setting(y)}."
        )
    return Chart(
        name="pair-chart",
        title=f"{surface.across} and {surface.up} together",
        finding=finding,
        caption=(
            f"{finding} Colour: posterior mean with all else as in {centre} (diamond). Dots: configurations that "
            "were tried, whatever their other levers. Far from dots the model guesses: the hover shows its doubt."
        ),
        plot=_plot(data, surface, centre, across, up),
        data=_table(surface),
    )


def _plot(data: StudyData, surface: Surface, centre: str, across: LeverAxis, up: LeverAxis) -> Markup:
    tried = [c for c in data.configurations if c.scores]
    columns, rows = ([data.value_of(c, lever) for c in tried] for lever in (across, up))
    x, y = (
        lever_scale(across, [*columns, *surface.across_values]),
        lever_scale(up, [*rows, *surface.up_values]),
    )
    traces: list[dict[str, Any]] = [_field(data, surface, x, y)]
    traces.append(
        scatter(
            [x.place(value) for value in columns], [y.place(value) for value in rows], mode="markers",
            marker={"size": 7, "color": "#fff", "line": {"width": 1.2, "color": "#000"}},
            text=[label(f"{c.id}: {c.score_text}") for c in tried], hovertemplate="%{text}<extra></extra>",
        )
    )  # fmt: skip
    middle = data.by_id[centre]
    traces.append(
        scatter(
            [x.place(data.value_of(middle, across))], [y.place(data.value_of(middle, up))], mode="markers",
            marker={"symbol": "diamond", "size": 14, "color": "#D55E00", "line": {"width": 1.5, "color": "#fff"}},
            text=[label(f"{centre}: {middle.score_text}")], hovertemplate="%{text}<extra></extra>",
        )
    )  # fmt: skip
    style = {
        "xaxis": _axis(x, [*columns, *surface.across_values]),
        "yaxis": _axis(y, [*rows, *surface.up_values]),
    }
    return plot("pair-chart", traces, layout(340, style, margin={"l": 60, "r": 12, "t": 8, "b": 44}))


def _field(data: StudyData, surface: Surface, x: LeverScale, y: LeverScale) -> dict[str, Any]:
    """Level lines where both levers are ranges, else cells."""
    smooth = all(
        len(values) >= _SMOOTH and not scale.choices
        for scale, values in ((x, surface.across_values), (y, surface.up_values))
    )
    columns = [i for i, value in enumerate(surface.across_values) if not smooth or not x.aside(value)]
    rows = [i for i, value in enumerate(surface.up_values) if not smooth or not y.aside(value)]
    means = [[surface.mean[row][column] for column in columns] for row in rows]
    doubts = [[surface.sd[row][column] for column in columns] for row in rows]
    field: dict[str, Any] = {
        "type": "contour" if smooth else "heatmap",
        "x": rounded(x.place(surface.across_values[i]) for i in columns),
        "y": rounded(y.place(surface.up_values[i]) for i in rows),
        "z": [rounded(row) for row in means],
        "text": [[numbers.with_error(m, None if s is None else 2 * s) for m, s in zip(*pair, strict=True)]
                 for pair in zip(means, doubts, strict=True)],
        "hovertemplate": "%{text} (2 SD)<extra></extra>",
        "colorscale": _COLORS,
        "reversescale": not data.view.history.maximize,
        "showscale": True,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "len": 0.95, "tickformat": ".3~g"},
    }  # fmt: skip
    if smooth:
        field["contours"] = {"coloring": "heatmap"}
        field["line"] = {"width": 0.6, "color": "rgba(255,255,255,0.55)"}
    return field


def _axis(scale: LeverScale, values: Sequence[ParamValue | None]) -> dict[str, Any]:
    ticks = scale.ticks(values)
    low = min([-0.04, *(place - 0.05 for place, _ in ticks)])
    return axis(
        scale.name,
        tickvals=[place for place, _ in ticks],
        ticktext=[label(text) for _, text in ticks],
        range=[low, 1.04],
        showgrid=False,
    )


def _table(surface: Surface) -> Any:
    columns, rows = (_some(len(values)) for values in (surface.across_values, surface.up_values))
    titles = (
        f"{surface.up} ↓ {surface.across} →",
        *(numbers.setting(surface.across_values[i]) for i in columns),
    )
    cells = [
        (
            Cell(numbers.setting(surface.up_values[row])),
            *(
                Cell(numbers.with_error(mean, None if sd is None else 2 * sd))
                for column in columns
                for mean, sd in [(surface.mean[row][column], surface.sd[row][column])]
            ),
        )
        for row in rows
    ]
    return plain_table("pair-data", titles, cells, "Data of this chart (mean ± 2 SD)")


def _some(count: int) -> list[int]:
    if count <= _TABLE:
        return list(range(count))
    return sorted({round(place * (count - 1) / (_TABLE - 1)) for place in range(_TABLE)})
