"""What quality costs: score against the time of a run, and against the steps to most of the gain."""

from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Cell, Chart, number_cell, plain_table
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import GREEN, GREY
from leverl.report.sections.roles import roles
from leverl.report.study_data import StudyData
from leverl.tune.analysis.result import TradeOff

_Place = Callable[[TradeOff], float | None]


def build(data: StudyData) -> list[Chart]:
    """Two charts, each where something was measured."""
    if data.analysis is None:
        return []
    found = data.analysis.trade_offs
    charts = []
    if sum(one.seconds is not None for one in found) > 1:
        charts.append(_price(data, found))
    if sum(one.steps_to_90 is not None for one in found) > 1:
        charts.append(_speed(data, found))
    return charts


def _price(data: StudyData, found: Sequence[TradeOff]) -> Chart:
    front = sorted((one for one in found if one.best_buy), key=lambda one: one.seconds or 0.0)
    names = ", ".join(
        f"{one.config_id} ({numbers.short(one.score)}, {numbers.duration(one.seconds)})" for one in front
    )
    return Chart(
        name="pareto-chart",
        title="Quality against the time of a run",
        finding=f"No configuration is both quicker and better than {names}.",
        caption=(
            "Posterior mean of the score against the seconds of a run at full length (runs that were stopped early at "
            "their own pace). Green line: no configuration is both quicker and better (Pareto front). Seconds depend "
            "on what else the machine was doing."
        ),
        plot=_plot(data, "pareto-chart", found, lambda one: one.seconds, "seconds of a run", front),
        data=plain_table(
            "pareto-data",
            ("config", data.view.objective, "SD", "seconds of a run", "KL", "front"),
            [
                (
                    Cell(one.config_id),
                    number_cell(one.score),
                    number_cell(one.sd, numbers.short(one.sd, 2)),
                    number_cell(one.seconds),
                    number_cell(one.kl),
                    Cell("●" if one.best_buy else ""),
                )
                for one in found
            ],
            "Data of this chart",
        ),
    )


def _speed(data: StudyData, found: Sequence[TradeOff]) -> Chart:
    known = sorted(
        (one for one in found if one.steps_to_90 is not None), key=lambda one: one.steps_to_90 or 0.0
    )
    first = known[0]
    text = (
        f"Quickest to 90 % of its own gain is {first.config_id}, at step {numbers.short(first.steps_to_90)}"
    )
    if (front := data.candidate) is not None and front is not data.base:
        own = next((one for one in known if one.config_id == front.id), None)
        base = next((one for one in known if data.base is not None and one.config_id == data.base.id), None)
        text += f"; {front.id} at step {numbers.short(own.steps_to_90)}" if own else ""
        text += f", the base at step {numbers.short(base.steps_to_90)}" if own and base else ""
    return Chart(
        name="speed-chart",
        title="Speed of convergence",
        finding=f"{text}.",
        caption=(
            f"{text}. First step with 90 % of a run's own gain, mean over the finished runs of a configuration. Read "
            "it with the score: who gains little is there at once."
        ),
        plot=_plot(
            data, "speed-chart", known, lambda one: one.steps_to_90, "steps to 90 % of the own gain", ()
        ),
        data=plain_table(
            "speed-data",
            ("config", "steps to 90 %", data.view.objective),
            [(Cell(o.config_id), number_cell(o.steps_to_90), number_cell(o.score)) for o in known],
            "Data of this chart",
        ),
    )


def _plot(
    data: StudyData,
    name: str,
    found: Sequence[TradeOff],
    place: _Place,
    words: str,
    front: Sequence[TradeOff],
) -> Markup:
    special = {role.configuration.id: role for role in roles(data)}
    traces: list[dict[str, Any]] = []
    if len(front) > 1:
        traces.append(
            scatter(
                [place(one) for one in front], [one.score for one in front], mode="lines", hoverinfo="skip",
                line={"color": faded(GREEN, 0.8), "width": 1.6, "shape": "hv"},
            )
        )  # fmt: skip
    plain = [one for one in found if one.config_id not in special and place(one) is not None]
    traces.append(_dots(plain, place, faded(GREY, 0.7), "circle", ""))
    for one in found:
        role = special.get(one.config_id)
        if role is not None and place(one) is not None:
            traces.append(_dots([one], place, role.color, role.symbol, role.configuration.id))
    axes = {"xaxis": axis(words, rangemode="tozero"), "yaxis": axis(data.view.objective)}
    return plot(name, traces, layout(320, axes, margin={"l": 60, "r": 40, "t": 12, "b": 44}))


def _dots(found: Sequence[TradeOff], place: _Place, color: str, symbol: str, name: str) -> dict[str, Any]:
    return scatter(
        [place(one) for one in found],
        [one.score for one in found],
        mode="markers+text" if name else "markers",
        texttemplate=label(name),
        textposition="middle right",
        marker={"size": 9, "color": color, "symbol": symbol},
        error_y={
            "type": "data",
            "array": [2 * one.sd for one in found],
            "thickness": 1,
            "width": 0,
            "color": color,
        },
        text=[
            label(
                f"{one.config_id}: {numbers.with_error(one.score, 2 * one.sd)} (2 SD), {numbers.short(place(one))}"
            )
            for one in found
        ],
        hovertemplate="%{text}<extra></extra>",
    )
