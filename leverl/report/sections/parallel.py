"""Parallel coordinates of all configurations, as lines: log axes for log levers, `–` for absent ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Chart
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import BASE, GREEN, GREY, RED, WINNER
from leverl.report.sections.roles import candidate_word
from leverl.report.study_data import BASE_ID, Configuration, StudyData
from leverl.tune.model import LeverAxis, ParamValue

_ABSENT = -0.22
_ZERO = -0.11
_TOP_SHARE = 0.1
_CROWDED = 5  # more levers than this: their names are set at an angle


@dataclass(frozen=True)
class Upright:
    """One vertical axis: where a value lies (0 bottom, 1 top; below 0 for 0 on a log axis and for absent)."""

    title: str
    low: float
    high: float
    log: bool
    choices: tuple[str, ...]
    whole: bool = False

    def place(self, value: ParamValue | None) -> float:
        if value is None:
            return _ABSENT
        if self.choices:
            return (self.choices.index(numbers.exact(value)) + 0.5) / len(self.choices)
        number = float(value)
        if self.log and number <= 0:
            return _ZERO
        low, high, at = (
            (math.log(x) for x in (self.low, self.high, number))
            if self.log
            else (self.low, self.high, number)
        )
        return 0.5 if high == low else (at - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        if self.choices:
            return [((index + 0.5) / len(self.choices), choice) for index, choice in enumerate(self.choices)]
        values = [self.low, self.high]
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            decades = [10.0**power for power in range(first, last + 1)]
            values += decades if len(decades) <= 5 else decades[:: math.ceil(len(decades) / 4)]
        elif self.whole:
            values += [float(value) for value in range(math.ceil(self.low), math.floor(self.high) + 1)]
        else:
            values.append((self.low + self.high) / 2)
        kept: list[float] = []
        for value in sorted(set(values), key=lambda v: (v not in (self.low, self.high), v)):
            if all(abs(self.place(value) - self.place(other)) > 0.07 for other in kept):
                kept.append(value)
        return [(self.place(value), numbers.short(value)) for value in kept]


def build(data: StudyData) -> Chart | None:
    """The chart; None without a lever to show."""
    if not data.view.axes or not data.configurations:
        return None
    uprights = [_upright(axis_, index, data) for index, axis_ in enumerate(data.view.axes)]
    score = _score_axis(data)
    return Chart(
        name="runs-chart",
        finding=_finding(data),
        caption=(
            "One line per configuration through its settings to its mean score. Coloured: the best 10 % by "
            "mean score; thick blue: the one compared with the base; orange, dashed: the base; red, dotted: "
            "no score. Log levers have log axes; “–” marks a lever that does not apply to a configuration."
        ),
        plot=_plot(data, uprights, score),
    )


def _upright(lever: LeverAxis, index: int, data: StudyData) -> Upright:
    values = [v for c in data.configurations if (v := c.values[index]) is not None]
    known = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if lever.low is None or lever.high is None or len(known) < len(values):
        choices = dict.fromkeys(numbers.exact(value) for value in (*lever.values, *values))
        return Upright(lever.name, 0, 1, False, tuple(choices))
    log = lever.scale == "log" and lever.low > 0
    inside = [v for v in known if v > 0] if log else known
    low, high = min(lever.low, *inside, lever.high), max(lever.high, *inside, lever.low)
    return Upright(lever.name, low, high, log, (), lever.scale == "int")


def _score_axis(data: StudyData) -> Upright:
    means = [c.mean for c in data.ranked if c.mean is not None] or [0.0, 1.0]
    low, high = min(means), max(means)
    return Upright(data.view.objective, low, high if high > low else low + 1e-9, False, ())


def _plot(data: StudyData, uprights: Sequence[Upright], score: Upright) -> Markup:
    whole = [*uprights, score]
    traces = []
    for name, members, line in _groups(data):
        if members:
            traces.append(_lines(name, members, whole, line))
    notes = [
        note
        for index, upright in enumerate(whole)
        for note in _notes(index, upright, data, index == len(uprights))
    ]
    stroke = {"color": faded(GREY, 0.8), "width": 1.2}
    shapes = [
        {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": stroke, "layer": "below"}
        for x in range(len(whole))
    ]
    axes = {
        "xaxis": axis(range=[-0.35, len(whole) - 0.65], visible=False, fixedrange=True),
        "yaxis": axis(range=[_ABSENT - 0.06, 1.16], visible=False, fixedrange=True),
    }
    style = layout(430, axes, annotations=notes, shapes=shapes, margin={"l": 30, "r": 20, "t": 34, "b": 8})
    return plot("runs-chart", traces, style)


_Line = dict[str, object]


def _groups(data: StudyData) -> list[tuple[str, list[Configuration], _Line]]:
    """Name, configurations and line style, in drawing order."""
    front = data.candidate
    top = [c for c in data.ranked[: max(1, round(_TOP_SHARE * len(data.ranked)))] if c is not front]
    base = [data.base] if data.base is not None else []
    special = {c.id for c in (*top, *base, *((front,) if front else ()))}
    rest = [c for c in data.configurations if c.id not in special]
    return [
        (
            "no score",
            [c for c in rest if not c.scores],
            {"color": faded(RED, 0.45), "width": 1, "dash": "dot"},
        ),
        ("others", [c for c in rest if c.scores], {"color": faded(GREY, 0.45), "width": 1}),
        ("best 10 %", [c for c in top if c.id != BASE_ID], {"color": GREEN, "width": 1.8}),
        ("base", [c for c in base if c is not front], {"color": BASE, "width": 2.4, "dash": "dash"}),
        (
            f"{front.id} ({candidate_word(data)})" if front else "",
            [front] if front else [],
            {"color": WINNER, "width": 3.2},
        ),
    ]


def _lines(
    name: str, members: Sequence[Configuration], whole: Sequence[Upright], line: _Line
) -> dict[str, object]:
    x: list[int | None] = []
    y: list[float | None] = []
    words: list[str] = []
    for configuration in members:
        places = [
            upright.place(value)
            for upright, value in zip(whole, (*configuration.values, configuration.mean), strict=True)
        ]
        x += [*range(len(whole)), None]
        y += [*places, None]
        words += [_hover(configuration, whole)] * (len(whole) + 1)
    return scatter(
        x, y, name, mode="lines+markers", line=line, marker={"size": 5, "color": line["color"]}, text=words,
        hovertemplate="%{text}<extra></extra>", connectgaps=False,
    )  # fmt: skip


def _hover(configuration: Configuration, whole: Sequence[Upright]) -> str:
    pairs = zip(whole, configuration.values, strict=False)
    words = [f"{configuration.id}: {configuration.score_text}"]
    words += [f"{upright.title} = {numbers.setting(value)}" for upright, value in pairs]
    return "<br>".join(label(word) for word in words)


def _notes(index: int, upright: Upright, data: StudyData, last: bool) -> list[dict[str, object]]:
    values = [c.mean if last else c.values[index] for c in data.configurations]
    ticks = upright.ticks()
    if any(value is None for value in values):
        ticks.append((_ABSENT, "no score" if last else numbers.UNKNOWN))
    if upright.log and any(not isinstance(v, str) and v is not None and float(v) <= 0 for v in values):
        ticks.append((_ZERO, "0"))
    found: list[dict[str, object]] = [
        {"x": index, "y": y, "text": label(text), "showarrow": False, "xanchor": "right", "xshift": -6,
         "font": {"size": 11}, "name": "tick", "borderpad": 1}
        for y, text in ticks
    ]  # fmt: skip
    title = label(upright.title) + (" (log)" if upright.log else "")
    crowded = len(data.view.axes) > _CROWDED
    turned = {"textangle": -18, "xanchor": "left", "xshift": -10} if crowded else {}
    place: dict[str, object] = {"x": index, "y": 1.05, "yanchor": "bottom", "showarrow": False}
    found.append(place | {"text": title, "font": {"size": 12}} | turned)
    return found


def _finding(data: StudyData) -> str:
    text = f"Settings and score of {numbers.plural(len(data.configurations), 'configuration')}."
    if (front := data.candidate) is not None:
        pairs = zip(data.view.axes, front.values, strict=True)
        settings = ", ".join(f"{axis_.name} {numbers.setting(value)}" for axis_, value in pairs)
        text += f" {front.id} ({candidate_word(data)}): {settings}, score {front.score_text}."
    return text
