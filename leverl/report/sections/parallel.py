"""Parallel coordinates of all configurations, as lines: log axes for log levers, `–` for absent ones."""

from collections.abc import Sequence

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Chart
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import BASE, GREEN, GREY, RED, WINNER
from leverl.report.scales import ABSENT, LeverScale, lever_scale
from leverl.report.sections.roles import candidate_word
from leverl.report.study_data import Configuration, StudyData
from leverl.tune.model import BASE as BASE_ID

_TOP_SHARE = 0.1
_CROWDED = 40  # letters of all titles: more are set at an angle


def build(data: StudyData) -> Chart | None:
    """The chart; None without a lever to show."""
    if not data.view.axes or not data.configurations:
        return None
    uprights = [
        lever_scale(axis_, [c.values[index] for c in data.configurations])
        for index, axis_ in enumerate(data.view.axes)
    ]
    score = _score_axis(data)
    return Chart(
        name="runs-chart",
        finding=_finding(data),
        caption=(
            "One line per configuration through its settings to its mean score. Coloured: the best 10 % by "
            "mean score; thick blue: the one compared with the base; orange, dashed: the base; red, dotted: "
            "no score. Axes are scaled as the levers were searched; “–” marks a lever that does not apply to a "
            "configuration."
        ),
        plot=_plot(data, uprights, score),
    )


def _score_axis(data: StudyData) -> LeverScale:
    means = [c.mean for c in data.ranked if c.mean is not None] or [0.0, 1.0]
    low, high = min(means), max(means)
    return LeverScale(data.view.objective, low, high if high > low else low + 1e-9)


def _plot(data: StudyData, uprights: Sequence[LeverScale], score: LeverScale) -> Markup:
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
        "yaxis": axis(range=[ABSENT - 0.06, 1.16], visible=False, fixedrange=True),
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
    name: str, members: Sequence[Configuration], whole: Sequence[LeverScale], line: _Line
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
        words += [*_hovers(configuration, whole), ""]
    return scatter(
        x, y, name, mode="lines+markers", line=line, marker={"size": 5, "color": line["color"]}, text=words,
        hovertemplate="%{text}<extra></extra>", connectgaps=False,
    )  # fmt: skip


def _hovers(configuration: Configuration, whole: Sequence[LeverScale]) -> list[str]:
    """A text for each axis: the configuration with its value there, or its score."""
    pairs = zip(whole, configuration.values, strict=False)
    words = [f"{configuration.id}: {scale.title} = {numbers.setting(value)}" for scale, value in pairs]
    return [label(word) for word in (*words, f"{configuration.id}: {configuration.score_text}")]


def _notes(index: int, upright: LeverScale, data: StudyData, last: bool) -> list[dict[str, object]]:
    values = [c.mean if last else c.values[index] for c in data.configurations]
    ticks = upright.ticks(values)
    if last:
        ticks = [(y, "no score" if y == ABSENT else text) for y, text in ticks]
    found: list[dict[str, object]] = [
        {"x": index, "y": y, "text": label(text), "showarrow": False, "xanchor": "right", "xshift": -6,
         "font": {"size": 11}, "name": "tick", "borderpad": 1}
        for y, text in ticks
    ]  # fmt: skip
    title = label(upright.name)
    crowded = sum(len(axis_.name) for axis_ in data.view.axes) > _CROWDED
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
