"""The two headline charts as inline SVG, for viewers that run no scripts. Colours follow the page's CSS."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leverl.report import numbers

_WIDTH, _LEFT, _RIGHT = 760, 190, 20
_ROW, _CURVE_HEIGHT = 34, 260


@dataclass(frozen=True)
class DotRow:
    """One line of a dot plot: a value per seed, their mean and, with two or more, a 95 % interval."""

    label: str
    color: str
    symbol: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Curve:
    """A mean over seeds by step, with the range of the seeds when there are several."""

    name: str
    color: str
    dash: str
    steps: tuple[int, ...]
    means: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    seeds: int


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        span = (self.high - self.low) or 1.0
        raw = span / count
        base = 10 ** math.floor(math.log10(raw))
        step = next(base * f for f in (1, 2, 5, 10) if base * f >= raw)
        first = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(first, math.floor(self.high / step + 1e-9) + 1)]


def dot_rows(rows: Sequence[DotRow], axis: str) -> Markup:
    """Rows of dots over a common axis."""
    known = [v for row in rows for v in (*row.values, *(row.interval or ())) if math.isfinite(v)]
    if not known:
        return Markup("")
    pad = 0.05 * ((max(known) - min(known)) or 1.0)
    scale = _Scale(min(known) - pad, max(known) + pad, _LEFT, _WIDTH - _RIGHT)
    bottom = 10 + _ROW * len(rows)
    parts = [_vertical_axis(scale, bottom, axis)]
    for index, row in enumerate(rows):
        parts.append(_dot_row(row, scale, 10 + _ROW * (index + 0.5)))
    return _svg(bottom + 44, parts)


def _dot_row(row: DotRow, scale: _Scale, y: float) -> Markup:
    parts = [
        Markup('<text x="{}" y="{}" text-anchor="end" class="ink">{}</text>').format(
            _LEFT - 12, _px(y + 4), row.label
        )
    ]
    if row.interval is not None:
        low, high = (scale(end) for end in row.interval)
        parts.append(
            Markup(
                '<path d="M{0} {2}H{1}M{0} {3}v8M{1} {3}v8" stroke="{4}" stroke-width="2" fill="none"/>'
            ).format(_px(low), _px(high), _px(y), _px(y - 4), row.color)
        )
    circle = Markup('<circle cx="{}" cy="{}" r="4" fill="none" stroke="{}" stroke-width="1.5"/>')
    parts += [circle.format(_px(scale(value)), _px(y), row.color) for value in row.values]
    parts.append(
        Markup('<path d="M{} {}v18" stroke="{}" stroke-width="4"/>').format(
            _px(scale(row.mean)), _px(y - 9), row.color
        )
    )
    return Markup("").join(parts)


def curves(lines: Sequence[Curve], axis: str) -> Markup:
    """Means by step with the range of the seeds."""
    values = [v for line in lines for v in (*line.low, *line.high, *line.means) if math.isfinite(v)]
    steps = [step for line in lines for step in line.steps]
    if not values:
        return Markup("")
    pad = 0.05 * ((max(values) - min(values)) or 1.0)
    across = _Scale(min(steps), max(steps), 60, _WIDTH - _RIGHT)
    up = _Scale(min(values) - pad, max(values) + pad, _CURVE_HEIGHT, 16)
    parts = [_horizontal_grid(up, axis), _steps_axis(across)]
    for index, line in enumerate(lines):
        parts += [_curve(line, across, up), _legend(line, index)]
    return _svg(_CURVE_HEIGHT + 52 + 20 * len(lines), parts)


def _curve(line: Curve, across: _Scale, up: _Scale) -> Markup:
    path = _path(line.steps, line.means, across, up)
    dash = {"dash": "8 5", "dot": "2 4", "dashdot": "8 4 2 4"}.get(line.dash, "none")
    band = Markup("")
    if line.seeds > 1 and all(map(math.isfinite, (*line.low, *line.high))):
        there = _path(line.steps, line.high, across, up)
        back = _path(line.steps[::-1], line.low[::-1], across, up).replace("M", "L", 1)
        band = Markup('<path d="{}{}Z" fill="{}" fill-opacity=".18"/>').format(there, back, line.color)
    return band + Markup(
        '<path d="{}" fill="none" stroke="{}" stroke-width="2" stroke-dasharray="{}"/>'
    ).format(path, line.color, dash)


def _path(steps: Sequence[int], values: Sequence[float], across: _Scale, up: _Scale) -> str:
    points = [(s, v) for s, v in zip(steps, values, strict=True) if math.isfinite(v)]
    return "M" + "L".join(f"{_px(across(s))} {_px(up(v))}" for s, v in points)


def _legend(line: Curve, index: int) -> Markup:
    y = _CURVE_HEIGHT + 56 + 20 * index
    return Markup(
        '<path d="M60 {0}h26" stroke="{1}" stroke-width="3"/><text x="94" y="{2}" class="ink">{3}</text>'
    ).format(y, line.color, y + 4, line.name)


def _vertical_axis(scale: _Scale, bottom: float, title: str) -> Markup:
    line = Markup('<path d="M{} 6V{}" class="grid"/>')
    parts = [line.format(_px(scale(tick)), _px(bottom)) for tick in scale.ticks()]
    parts += [_middle(scale(tick), bottom + 16, _tick(tick)) for tick in scale.ticks()]
    parts.append(_middle((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 36, title))
    return Markup("").join(parts)


def _horizontal_grid(up: _Scale, title: str) -> Markup:
    line = Markup('<path d="M60 {}H{}" class="grid"/>')
    words = Markup('<text x="52" y="{}" text-anchor="end" class="ink">{}</text>')
    parts = [line.format(_px(up(tick)), _WIDTH - _RIGHT) for tick in up.ticks()]
    parts += [words.format(_px(up(tick) + 4), _tick(tick)) for tick in up.ticks()]
    parts.append(Markup('<text x="60" y="10" class="ink">{}</text>').format(title))
    return Markup("").join(parts)


def _steps_axis(across: _Scale) -> Markup:
    parts = [_middle(across(tick), _CURVE_HEIGHT + 18, _tick(tick)) for tick in across.ticks()]
    parts.append(_middle(_WIDTH / 2, _CURVE_HEIGHT + 36, "step"))
    return Markup("").join(parts)


def _middle(x: float, y: float, text: str) -> Markup:
    words = Markup('<text x="{}" y="{}" text-anchor="middle" class="ink">{}</text>')
    return words.format(_px(x), _px(y), text)


def _tick(value: float) -> str:
    return numbers.short(float(f"{value:.6g}"))


def _svg(height: float, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {} {}" width="100%" aria-hidden="true" focusable="false">{}</svg>'
    ).format(_WIDTH, _px(height), Markup("").join(parts))


def _px(value: float) -> str:
    return f"{value:.1f}"
