"""Heat map of the probability ratio over steps, from the counts a run logs each iteration."""

import math
from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from leverl.record.series import RunSeries
from leverl.report import numbers
from leverl.report.blocks import Chart, number_cell, plain_table
from leverl.report.figures import axis, label, layout, plot
from leverl.vocabulary.ratio_bins import RATIO_BINS

HISTOGRAM = "ratio/histogram"
_COLUMNS = 120
_BINS = len(RATIO_BINS) + 1

Counts = tuple[int, tuple[int, ...]]


def chart(run: RunSeries) -> Chart | None:
    """None when the run logged no histogram over the known bins."""
    rows = [row for row in run.histograms.get(HISTOGRAM, ()) if len(row[1]) == _BINS and sum(row[1]) > 0]
    if not rows:
        return None
    columns = _merged(rows)
    shares = [[counts[index] / sum(counts) for _, counts in columns] for index in range(_BINS)]
    last = columns[-1][1]
    inside = last[_BINS // 2] / sum(last)
    return Chart(
        name="ratio-chart",
        finding="Distribution of the probability ratio over steps. In the last iterations "
        f"{numbers.percent(inside)} of the tokens have a ratio within 0.1 % of 1.",
        caption="Probability ratio of the update to the policy that sampled (rows, log-spaced around 1, ends "
        "open) over steps; colour: share of tokens, square root scale. All mass in the middle row: the "
        "updates change nothing. Wide and growing: they are too large.",
        plot=_plot(columns, shares),
        data=plain_table(
            "ratio-data",
            ("ratio", "share of tokens, first", "last"),
            [
                (number_cell(i, name), number_cell(shares[i][0]), number_cell(shares[i][-1]))
                for i, name in enumerate(names())
            ],
            "Data of this chart",
        ),
    )


def names() -> list[str]:
    """The bins in words, lowest first."""
    edges = [
        f"{edge:.3f}" if 0.99 < edge < 1.01 else f"{edge:.2f}" if edge < 10 else f"{edge:.0f}"
        for edge in RATIO_BINS
    ]
    between = [f"{low} … {high}" for low, high in pairwise(edges)]
    return [f"< {edges[0]}", *between, f"≥ {edges[-1]}"]


def _merged(rows: Sequence[Counts]) -> list[Counts]:
    """At most `_COLUMNS` columns; neighbours are added up."""
    size = math.ceil(len(rows) / _COLUMNS)
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [
        (group[0][0], tuple(map(sum, zip(*(counts for _, counts in group), strict=True)))) for group in groups
    ]


def _plot(columns: Sequence[Counts], shares: Sequence[Sequence[float]]) -> Markup:
    words = names()
    trace = {
        "type": "heatmap",
        "x": [step for step, _ in columns],
        "y": list(range(_BINS)),
        "z": [[round(math.sqrt(share), 4) for share in row] for row in shares],
        "customdata": [[float(f"{share:.3g}") for share in row] for row in shares],
        "text": [[label(words[index])] * len(columns) for index in range(_BINS)],
        "colorscale": "Cividis",
        "zmin": 0,
        "zmax": 1,
        "hovertemplate": "step %{x}<br>ratio %{text}<br>share %{customdata:.3%}<extra></extra>",
        "colorbar": {
            "title": {"text": "share"}, "tickvals": [0, 0.1**0.5, 0.25**0.5, 0.5**0.5, 1], "thickness": 12,
            "ticktext": ["0", "10 %", "25 %", "50 %", "100 %"], "outlinewidth": 0,
        },
    }  # fmt: skip
    shown = list(range(0, _BINS, 3))
    axes = {
        "xaxis": axis("step", showgrid=False),
        "yaxis": axis(
            "ratio", tickvals=shown, ticktext=[label(words[index]) for index in shown], showgrid=False
        ),
    }
    return plot("ratio-chart", [trace], layout(380, axes))
