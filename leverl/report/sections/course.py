"""The course of the leader: its levers against the cost spent (the articles' parameter trajectory)."""

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Cell, Chart, Table, number_cell, plain_table, setting_cell
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import BASE, GREEN
from leverl.report.scales import lever_scale
from leverl.report.study_data import StudyData
from leverl.tune.analysis.result import Analysis, Lead
from leverl.tune.model import LeverAxis

LEVERS: Final = 6
_PANEL: Final = 96
_APART: Final = 0.19  # panels are low


def build(data: StudyData, found: Analysis, unit: str, key: str) -> Chart | None:
    """The chart; None where nobody has led yet. `key` names the cost in `Lead.spent`."""
    if not found.course or not data.view.axes:
        return None
    levers = _most_important(data, found)
    last = found.course[-1]
    settings = ", ".join(f"{a.name} {numbers.setting(last.params.get(a.name))}" for a in levers)
    leaders = list(dict.fromkeys(lead.config_id for lead in found.course))
    return Chart(
        name="trajectory-chart",
        title="Levers of the leader by cost",
        finding=f"Leaders in order: {', '.join(leaders)}. At the end {last.config_id} leads with {settings}.",
        caption=(
            f"What the study would have recommended after so many {unit}, and how it was set; the model is fitted anew "
            f"at each of {len(found.course)} points. Dashed: the base. A line that settles early says where to look "
            "first the next time."
            + (
                f" The {LEVERS} most important levers; the others are in the table."
                if len(data.view.axes) > LEVERS
                else ""
            )
        ),
        plot=_plot(found.course, levers, unit, key),
        data=_table(data, found.course, unit, key),
    )


def _most_important(data: StudyData, found: Analysis) -> list[LeverAxis]:
    order = [one.lever for one in found.model.importance] if found.model else []
    axes = sorted(data.view.axes, key=lambda a: order.index(a.name) if a.name in order else len(order))
    return axes[:LEVERS]


def _plot(course: Sequence[Lead], levers: Sequence[LeverAxis], unit: str, key: str) -> Markup:
    costs = [lead.spent[key] for lead in course]
    traces: list[dict[str, Any]] = []
    axes: dict[str, dict[str, Any]] = {}
    share = 1 / len(levers)
    notes = []
    for number, lever in enumerate(levers):
        name = "y" if number == 0 else f"y{number + 1}"
        values = [lead.params.get(lever.name) for lead in course]
        used = [*values, lever.base]
        scale = lever_scale(lever, used)
        ticks = scale.ticks(used, apart=_APART)
        top = 1 - share * number
        axes[name.replace("y", "yaxis")] = axis(
            domain=[top - share * 0.72, top - share * 0.04],
            tickvals=[place for place, _ in ticks], ticktext=[label(text) for _, text in ticks],
            range=[min([-0.1, *(place - 0.08 for place, _ in ticks)]), 1.1],
        )  # fmt: skip
        notes.append(
            {"text": label(scale.name), "xref": "paper", "yref": "paper", "x": 0, "y": top - share * 0.04,
             "xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 12}}
        )  # fmt: skip
        if lever.base is not None:
            traces.append(
                scatter(
                    [costs[0], costs[-1]], [scale.place(lever.base)] * 2, mode="lines", yaxis=name, hoverinfo="skip",
                    line={"color": faded(BASE, 0.9), "width": 1.5, "dash": "dash"},
                )
            )  # fmt: skip
        traces.append(
            scatter(
                costs, [scale.place(value) for value in values], mode="lines+markers", yaxis=name,
                line={"color": GREEN, "width": 2.2, "shape": "hv"}, marker={"size": 6, "color": GREEN},
                text=[
                    label(f"{lead.config_id}: {numbers.setting(value)}")
                    for lead, value in zip(course, values, strict=True)
                ],
                hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    last = f"y{len(levers)}" if len(levers) > 1 else "y"
    axes["xaxis"] = axis(f"{unit} (cumulative)", tickformat="~s", anchor=last, rangemode="tozero")
    style = layout(
        70 + _PANEL * len(levers), axes, annotations=notes, margin={"l": 60, "r": 16, "t": 22, "b": 44}
    )
    return plot("trajectory-chart", traces, style)


def _table(data: StudyData, course: Sequence[Lead], unit: str, key: str) -> Table:
    rows = [
        (
            number_cell(lead.runs),
            number_cell(lead.spent[key], numbers.amount(lead.spent[key])),
            Cell(lead.config_id),
            Cell(numbers.with_error(lead.mean, 2 * lead.sd)),
            *(setting_cell(lead.params.get(lever.name)) for lever in data.view.axes),
        )
        for lead in course
    ]
    titles = ("runs", unit, "leader", "mean ± 2 SD", *(lever.name for lever in data.view.axes))
    return plain_table("trajectory-data", titles, rows, "Data of this chart")
