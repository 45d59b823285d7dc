"""Whether to believe the model and the order: left-out predictions, and intervals of ranks."""

from collections.abc import Sequence

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Cell, Chart, number_cell, plain_table
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import BASE, BLUE, GREY, RED
from leverl.report.study_data import StudyData
from leverl.tune.analysis.result import Model, Prediction, Standing
from leverl.tune.model import BASE as BASE_ID

RANKS = 15
_ROW = 24


def left_out(data: StudyData, model: Model) -> Chart | None:
    """Predicted against observed, each configuration left out once."""
    found = model.left_out
    if len(found) < 3 or model.coverage is None:
        return None
    inside = sum(one.inside for one in found)
    finding = f"{inside} of {len(found)} left-out means ({numbers.percent(model.coverage)}) lie in their 95 % interval."
    return Chart(
        name="left-out-chart",
        title="The model, tested",
        finding=finding,
        caption=(
            f"{finding} Each configuration as predicted by all others (± 1.96 SD, its own noise included) against what "
            "its runs showed; on the dashed line they agree. Orange: outside. Far fewer than 95 % inside means that "
            "the model is too sure of itself."
        ),
        plot=_scatter(data, found),
        data=plain_table(
            "left-out-data",
            ("config", "observed", "predicted", "SD", "inside"),
            [
                (
                    Cell(one.config_id),
                    number_cell(one.observed),
                    number_cell(one.predicted),
                    number_cell(one.sd, numbers.short(one.sd, 2)),
                    Cell("yes" if one.inside else "no"),
                )
                for one in found
            ],
            "Data of this chart",
        ),
    )


def _scatter(data: StudyData, found: Sequence[Prediction]) -> Markup:
    ends = [value for one in found for value in (one.observed, one.predicted)]
    line = [min(ends), max(ends)]
    traces = [
        scatter(line, line, mode="lines", line={"color": faded(GREY, 0.8), "dash": "dash"}, hoverinfo="skip")
    ]
    for members, color, name in (
        ([one for one in found if one.inside], BLUE, "inside"),
        ([one for one in found if not one.inside], RED, "outside"),
    ):
        if members:
            traces.append(
                scatter(
                    [one.predicted for one in members], [one.observed for one in members], name, mode="markers",
                    marker={"size": 8, "color": color, "symbol": "circle" if name == "inside" else "x"},
                    error_x={
                        "type": "data", "array": [1.96 * one.sd for one in members], "thickness": 1, "width": 0,
                        "color": faded(color, 0.5),
                    },
                    text=[
                        label(f"{one.config_id}: observed {numbers.short(one.observed)}, predicted "
                              f"{numbers.with_error(one.predicted, one.sd)} (SD)")
                        for one in members
                    ],
                    hovertemplate="%{text}<extra></extra>",
                )
            )  # fmt: skip
    axes = {"xaxis": axis(f"predicted {data.view.objective}"), "yaxis": axis("observed")}
    return plot("left-out-chart", traces, layout(360, axes))


def ranks(data: StudyData) -> Chart | None:
    """Rank intervals of the configurations in front."""
    shown = sorted(data.standings.values(), key=lambda one: (one.rank, one.rank_high))[:RANKS]
    if len(shown) < 2:
        return None
    first = shown[0]
    return Chart(
        name="rank-chart",
        title="How firm the order is",
        finding=f"{first.config_id} ranks {_interval(first)} of {len(data.standings)} (90 % interval); {_rest(shown)}.",
        caption=(
            f"Rank of each configuration's true mean over draws from the joint posterior: median and 90 % interval; "
            f"the {len(shown)} in front of {len(data.standings)}. Where intervals overlap, ranks could be exchanged."
            f"{_seeds(data)}"
        ),
        plot=_rank_plot(shown),
        data=plain_table(
            "rank-data",
            ("config", "rank", "90 % interval", "posterior mean", "SD", "P(best)"),
            [
                (
                    Cell(one.config_id),
                    number_cell(one.rank),
                    Cell(_interval(one)),
                    number_cell(one.mean),
                    number_cell(one.sd, numbers.short(one.sd, 2)),
                    number_cell(one.probability_best, numbers.short(one.probability_best, 2)),
                )
                for one in shown
            ],
            "Data of this chart",
        ),
    )


def _interval(one: Standing) -> str:
    low, high = numbers.short(one.rank_low), numbers.short(one.rank_high)
    return low if low == high else f"{low} … {high}"


def _rest(shown: Sequence[Standing]) -> str:
    overlapping = [one.config_id for one in shown[1:] if one.rank_low <= shown[0].rank_high]
    if not overlapping:
        return "no other interval reaches it"
    return f"the intervals of {numbers.plural(len(overlapping), 'other')} reach it"


def _seeds(data: StudyData) -> str:
    """What the seeds themselves say of the order."""
    found = data.analysis.agreement if data.analysis else ()
    if not found:
        return (
            " No two seeds have three configurations in common, so the seeds themselves cannot be compared."
        )
    words = [
        f"{one.phase} {numbers.short(one.tau, 2)} ({numbers.plural(one.pairs, 'pair')} of seeds, "
        f"{numbers.plural(one.configurations, 'configuration')})"
        for one in found
    ]
    return f" Agreement of single seeds (Kendall's tau; 1 same order, 0 unrelated): {', '.join(words)}."


def _rank_plot(shown: Sequence[Standing]) -> Markup:
    rows = list(reversed(shown))
    traces = [
        scatter(
            [one.rank], [place], mode="markers",
            marker={"size": 9, "color": BASE if one.config_id == BASE_ID else BLUE},
            error_x={
                "type": "data", "symmetric": False, "array": [one.rank_high - one.rank],
                "arrayminus": [one.rank - one.rank_low], "thickness": 2, "width": 4,
                "color": BASE if one.config_id == BASE_ID else BLUE,
            },
            text=[label(f"{one.config_id}: rank {_interval(one)}")], hovertemplate="%{text}<extra></extra>",
        )
        for place, one in enumerate(rows)
    ]  # fmt: skip
    axes = {
        "xaxis": axis("rank (1 is the best)", rangemode="tozero"),
        "yaxis": axis(
            tickvals=list(range(len(rows))), ticktext=[label(one.config_id) for one in rows],
            range=[-0.6, len(rows) - 0.4], showgrid=False, ticks="",
        ),
    }  # fmt: skip
    height = max(260, 70 + _ROW * len(rows))
    return plot("rank-chart", traces, layout(height, axes, margin={"l": 60, "r": 16, "t": 12, "b": 44}))
