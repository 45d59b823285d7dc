"""Plotly figures in one style, drawn by the bundle that a page carries once.

Backgrounds are transparent and text has no colour of its own: the page's script sets both for light and dark.
Plotly reads a little HTML in its texts, so every word that comes from a run goes through `label`.
"""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

POINTS = 200
"""Most points of a curve on a page."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"
# The mode bar cannot be reached by keyboard and covers legends; a double click resets a zoom without it.
_CONFIG = {"displaylogo": False, "responsive": True, "displayModeBar": False}
_GRID = "rgba(128,128,128,0.22)"
_SIGNIFICANT = 6


def label(text: object) -> str:
    """`text` as plain text for plotly, which would read `<b>` or `<a href=…>` as markup."""
    return html.escape(str(text), quote=True)


def axis(title: str = "", **settings: Any) -> dict[str, Any]:
    """An axis in the house style."""
    style: dict[str, Any] = {
        "gridcolor": _GRID,
        "zeroline": False,
        "linecolor": "rgba(128,128,128,0.6)",
        "ticks": "outside",
        "tickcolor": "rgba(128,128,128,0.6)",
        "ticklen": 4,
        "automargin": True,
    }
    if title:
        style["title"] = {"text": label(title), "standoff": 8}
    return style | settings


def layout(height: int, axes: Mapping[str, Mapping[str, Any]], **settings: Any) -> dict[str, Any]:
    """A layout in the house style; `axes` maps `xaxis`, `yaxis2` … to `axis(…)`."""
    style: dict[str, Any] = {
        "height": height,
        "margin": {"l": 60, "r": 16, "t": 34, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12.5, "color": "#444"},
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        "template": {"layout": {"autotypenumbers": "strict"}},
    }
    return style | {name: dict(settings_) for name, settings_ in axes.items()} | settings


def scatter(x: Iterable[Any], y: Iterable[Any], name: str = "", **settings: Any) -> dict[str, Any]:
    """A scatter trace; without a name it stays out of the legend and the hover shows only the text."""
    trace: dict[str, Any] = {"type": "scatter", "x": rounded(x), "y": rounded(y)}
    trace |= {"name": label(name)} if name else {"showlegend": False}
    return trace | settings


def plot(name: str, traces: Sequence[Mapping[str, Any]], style: Mapping[str, Any]) -> Markup:
    """The figure as HTML without the library; `name` is the element's id on the page."""
    import plotly.graph_objects as go

    figure = go.Figure(data=list(traces), layout=dict(style))
    text = figure.to_html(
        include_plotlyjs=False,
        full_html=False,
        div_id=name,
        config=_CONFIG,
        default_height=f"{style['height']}px",
    )
    return Markup(text)  # plotly escapes <, > and / in its JSON; a test holds it


def rounded(values: Iterable[Any]) -> list[Any]:
    """Numbers to six significant digits, for a small page; anything else, and gaps, as they are."""
    return [_round(value) for value in values]


def _round(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_SIGNIFICANT}g}") if math.isfinite(value) else None


def thin(steps: Sequence[int], values: Sequence[float], most: int = POINTS) -> tuple[list[int], list[float]]:
    """At most `most` points: lowest and highest of each stretch, so that no spike is lost, and both ends."""
    count = len(steps)
    if count <= most:
        return list(steps), list(values)
    kept = {0, count - 1}
    stretches = (most - 2) // 2
    for stretch in range(stretches):
        span = range(stretch * count // stretches, (stretch + 1) * count // stretches)
        known = [index for index in span if math.isfinite(values[index])]
        if known:
            kept |= {min(known, key=lambda i: values[i]), max(known, key=lambda i: values[i])}
        else:
            kept.add(span.start)
    order = sorted(kept)
    return [steps[index] for index in order], [values[index] for index in order]


def faded(color: str, alpha: float) -> str:
    """`#RRGGBB` as an rgba() colour."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
