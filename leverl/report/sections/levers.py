"""5 LEVERS: which of them matter, what the model thinks of each, and of the two most important together."""

from collections.abc import Sequence

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Block, Cell, Chart, Note, Section, number_cell, plain_table, setting_cell
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import BLUE, GREY, PURPLE
from leverl.report.scales import LeverScale, lever_scale
from leverl.report.sections import pair_map
from leverl.report.study_data import Configuration, StudyData
from leverl.tune.analysis.result import Analysis, Importance, Model, Slice, SlicePoint
from leverl.tune.model import LeverAxis
from leverl.tune.statistics import mean

SLICES = 8
_NEAR = 0.2  # mean distance of the other levers, as a share of their ranges
_ROW = 30
_TABLE = 11


def build(data: StudyData) -> Section:
    """Importance, the map of the top pair and a slice for each of the most important levers."""
    found = data.analysis
    model = found.model if found else None
    blocks: list[Block] = []
    if model is None:
        blocks.append(
            Note(found.without_model if found else "No run has a score yet, so no lever has an opinion.")
        )
        lead = "What the model of this study thinks of its levers."
    else:
        lead = (
            f"A Gaussian process fitted to all runs before the confirmation; {model.centre} is held and one lever "
            "at a time is moved. It is an opinion with a stated doubt, not a measurement: where the band is wide, "
            "nobody has looked."
        )
        blocks += [_importance(data, model.importance)] if model.importance else []
        blocks += [*_slices(data, model), *_unused(data, model)]
        if model.surface is not None:
            blocks.insert(min(1, len(blocks)), pair_map.build(data, model.surface, model.centre))
    blocks += _left_out(found)
    return Section("levers", "Levers", lead, tuple(blocks), columns=2 if model else 1)


def _unused(data: StudyData, model: Model) -> list[Note]:
    known = {one.lever for one in model.importance}
    names = [lever.name for lever in data.view.axes if lever.name not in known]
    return (
        [Note(f"Without effect in every configuration that ran: {', '.join(names)}.", "warn")]
        if names
        else []
    )


def _importance(data: StudyData, found: Sequence[Importance]) -> Chart:
    first = found[0]
    runner_up = f", then {found[1].lever} with {numbers.percent(found[1].median)}" if len(found) > 1 else ""
    return Chart(
        name="importance-chart",
        title="Which levers matter",
        finding=f"{first.lever} takes part in {numbers.percent(first.median)} of the variance of "
        f"{data.view.objective} over the space{runner_up}.",
        caption=(
            "Share of the variance of the score over the whole space that a lever takes part in (total Sobol' "
            "index); shares overlap where levers act together, so they can add up to more than 100 %. Bar: median, "
            "line: 90 % interval over functions drawn from the model. A lever of little importance may still be "
            "set wrongly."
        ),
        plot=_bars(found),
        data=plain_table(
            "importance-data",
            ("lever", "share", "90 % interval"),
            [
                (
                    Cell(one.lever),
                    number_cell(one.median, numbers.percent(one.median)),
                    Cell(f"{numbers.percent(one.low)} … {numbers.percent(one.high)}"),
                )
                for one in found
            ],
            "Data of this chart",
        ),
    )


def _bars(found: Sequence[Importance]) -> Markup:
    rows = list(reversed(found))
    bar = {
        "type": "bar",
        "orientation": "h",
        "x": [round(100 * one.median, 3) for one in rows],
        "y": [label(one.lever) for one in rows],
        "marker": {"color": faded(BLUE, 0.75)},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [round(100 * (one.high - one.median), 3) for one in rows],
            "arrayminus": [round(100 * (one.median - one.low), 3) for one in rows],
            "color": GREY,
            "thickness": 1.8,
            "width": 5,
        },
        "hovertemplate": "%{y}: %{x:.2g} %<extra></extra>",
        "showlegend": False,
    }
    axes = {
        "xaxis": axis("% of variance, total effect", rangemode="tozero"),
        "yaxis": axis(showgrid=False, ticks=""),
    }
    height = max(220, 80 + _ROW * len(rows))
    return plot("importance-chart", [bar], layout(height, axes, margin={"l": 60, "r": 16, "t": 8, "b": 44}))


def _slices(data: StudyData, model: Model) -> list[Chart]:
    shown = [one for one in model.slices if one.points][:SLICES]
    span = _span(data, shown)
    return [_slice(data, model, one, number, span) for number, one in enumerate(shown)]


def _span(data: StudyData, shown: Sequence[Slice]) -> tuple[float, float]:
    """One range of scores for all slices, so that a lever without effect looks flat."""
    values = [point.mean + side * 2 * point.sd for one in shown for point in one.points for side in (-1, 1)]
    values += [score for c in data.configurations for score in c.scores]
    low, high = min(values), max(values)
    pad = 0.04 * ((high - low) or 1.0)
    return low - pad, high + pad


def _slice(data: StudyData, model: Model, one: Slice, number: int, span: tuple[float, float]) -> Chart:
    lever = next(axis_ for axis_ in data.view.axes if axis_.name == one.lever)
    best = (max if data.view.history.maximize else min)(one.points, key=lambda point: point.mean)
    at = f" {model.centre} has {numbers.setting(one.at)}." if one.at is not None else ""
    finding = (
        f"{one.lever}: the model's mean is best, {numbers.short(best.mean)} ± {numbers.short(2 * best.sd, 2)}, at "
        f"{numbers.setting(best.value)}.{at}"
    )
    rows = [
        (
            setting_cell(point.value),
            number_cell(point.mean),
            number_cell(2 * point.sd, numbers.short(2 * point.sd, 2)),
        )
        for point in _some(one.points)
    ]
    return Chart(
        name=f"slice-{number}",
        title=one.lever,
        finding=finding,
        caption=finding
        if number
        else f"{finding} Line and band: posterior mean ± 2 SD with all else as in "
        f"{model.centre} (diamond: its value). Dots: runs; dark ones have their other levers near {model.centre}.",
        plot=_slice_plot(data, model.centre, one, lever, number, span),
        data=plain_table(f"slice-{number}-data", (one.lever, "mean", "2 SD"), rows, "Data of this chart"),
    )


def _some(points: Sequence[SlicePoint]) -> list[SlicePoint]:
    """About a dozen of them, both ends included."""
    step = max(1, len(points) // _TABLE)
    return [point for number, point in enumerate(points) if number % step == 0 or point is points[-1]]


def _slice_plot(
    data: StudyData, centre: str, one: Slice, lever: LeverAxis, number: int, span: tuple[float, float]
) -> Markup:
    used = [data.value_of(c, lever) for c in data.configurations if c.scores]
    values = [*used, *(point.value for point in one.points)]
    scale = lever_scale(lever, values)
    traces = [*_runs(data, centre, lever, scale), *_opinion(one, scale)]
    at = [point for point in one.points if point.value == one.at]
    if one.at is not None:
        level = at[0].mean if at else _nearest(one, scale).mean
        traces.append(
            scatter(
                [scale.place(one.at)], [level], mode="markers",
                marker={"symbol": "diamond", "size": 12, "color": BLUE, "line": {"width": 1.5, "color": "#fff"}},
                text=[f"{label(centre)}: {label(numbers.setting(one.at))}"], hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    ticks = scale.ticks(values)
    axes = {
        "xaxis": axis(
            scale.name, tickvals=[x for x, _ in ticks], ticktext=[label(text) for _, text in ticks],
            range=[min([-0.04, *(x - 0.05 for x, _ in ticks)]), 1.04],
        ),
        "yaxis": axis(data.view.objective, range=list(span)),
    }  # fmt: skip
    return plot(f"slice-{number}", traces, layout(280, axes, margin={"l": 60, "r": 12, "t": 8, "b": 44}))


def _nearest(one: Slice, scale: LeverScale) -> SlicePoint:
    at = scale.place(one.at)
    return min(one.points, key=lambda point: abs(scale.place(point.value) - at))


def _opinion(one: Slice, scale: LeverScale) -> list[dict[str, object]]:
    """A band along a range; bars for values that have no in-between."""
    line = [p for p in one.points if not scale.choices and not scale.aside(p.value)]
    alone = [p for p in one.points if p not in line]
    traces: list[dict[str, object]] = []
    if line:
        x = [scale.place(p.value) for p in line]
        traces += [
            scatter(
                [*x, *reversed(x)],
                [*(p.mean + 2 * p.sd for p in line), *(p.mean - 2 * p.sd for p in reversed(line))],
                fill="toself", fillcolor=faded(PURPLE, 0.2), line={"width": 0}, mode="lines", hoverinfo="skip",
            ),
            scatter(
                x, [p.mean for p in line], mode="lines", line={"color": PURPLE, "width": 2.2},
                text=[_words(p.value, p.mean, p.sd) for p in line], hovertemplate="%{text}<extra></extra>",
            ),
        ]  # fmt: skip
    if alone:
        traces.append(
            scatter(
                [scale.place(p.value) for p in alone], [p.mean for p in alone], mode="markers",
                marker={"symbol": "line-ew", "size": 18, "line": {"width": 3, "color": PURPLE}},
                error_y={"type": "data", "array": [2 * p.sd for p in alone], "color": PURPLE, "thickness": 2},
                text=[_words(p.value, p.mean, p.sd) for p in alone], hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    return traces


def _words(value: object, mean: float, sd: float) -> str:
    shown = numbers.setting(value) if isinstance(value, bool | int | float | str) else str(value)
    return label(f"{shown}: {numbers.with_error(mean, 2 * sd)} (2 SD)")


def _runs(data: StudyData, centre: str, lever: LeverAxis, scale: LeverScale) -> list[dict[str, object]]:
    near = _near(data, centre, lever)
    groups = (
        [c for c in data.configurations if c.id not in near],
        [c for c in data.configurations if c.id in near],
    )
    traces = []
    for members, alpha in zip(groups, (0.3, 0.95), strict=True):
        dots = [(c, score) for c in members for score in c.scores]
        if dots:
            traces.append(
                scatter(
                    [scale.place(data.value_of(c, lever)) for c, _ in dots], [score for _, score in dots],
                    mode="markers", marker={"size": 6, "color": faded(GREY, alpha)},
                    text=[
                        label(f"{c.id}: {numbers.short(score)} at {numbers.setting(data.value_of(c, lever))}")
                        for c, score in dots
                    ],
                    hovertemplate="%{text}<extra></extra>",
                )
            )  # fmt: skip
    return traces


def _near(data: StudyData, centre: str, lever: LeverAxis) -> set[str]:
    """Configurations whose other levers lie close to those of the centre."""
    others = [axis_ for axis_ in data.view.axes if axis_ is not lever]
    scales = [lever_scale(axis_, [data.value_of(c, axis_) for c in data.configurations]) for axis_ in others]

    def places(configuration: Configuration) -> list[float]:
        pairs = zip(scales, others, strict=True)
        return [scale.place(data.value_of(configuration, axis_)) for scale, axis_ in pairs]

    middle = places(data.by_id[centre])
    found = set()
    for configuration in data.configurations:
        gaps = [abs(a - b) for a, b in zip(places(configuration), middle, strict=True)]
        if not gaps or mean(gaps) <= _NEAR:
            found.add(configuration.id)
    return found


def _left_out(found: Analysis | None) -> list[Block]:
    if found is None or not found.left_out_levers:
        return []
    rows = [(Cell(name), Cell(reason)) for name, reason in found.left_out_levers.items()]
    count = numbers.plural(len(rows), "lever")
    return [plain_table("left-out-levers", ("lever", "why"), rows, f"{count} left out of the default space")]
