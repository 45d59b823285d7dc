"""4 SEARCH: every run over the cost spent, and who led when."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leverl.record.run_record import Outcome
from leverl.report import numbers
from leverl.report.blocks import Block, Cell, Chart, Note, Section, Table, number_cell, plain_table
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import GREY, Mark, mark_of
from leverl.report.sections.roles import Role, roles
from leverl.report.statistics import mean
from leverl.report.study_data import StudyData, finished_scores
from leverl.tune.model import CONFIRM, Cost, RunState

_FOUND = "#009E73"

_CAPTION = (
    "Each mark is one run, placed at the cost spent when it ended. Green line: mean score of the finished "
    "search and selection runs of the configuration that leads by that mean; while it has few seeds it is "
    "too high. Dotted line: best single run seen, which luck drives. Runs without a score (▲ out of memory, "
    "✕ non-finite, ■ crashed, ◆ timed out; hollow: interrupted or lost) lie in the strip below the axis, not "
    "at 0."
)


@dataclass(frozen=True)
class Point:
    """A run at the cost spent when it ended."""

    state: RunState
    cost: float

    @property
    def score(self) -> float | None:
        return self.state.score.mean if self.state.scored and self.state.score else None


@dataclass(frozen=True)
class Progress:
    """Who led after a run, and the best single score seen up to then."""

    cost: float
    leader: str
    value: float
    best: float


def build(data: StudyData) -> Section:
    """The course of the study."""
    unit, measure = _unit(data)
    points = _points(data, measure)
    blocks: tuple[Block, ...] = (Note("No run has started yet."),)
    if points:
        blocks = (_chart(data, points, _progress(data, points), unit),)
    return Section("search", "Search", "Every run of the study, in the order of start.", blocks)


def _unit(data: StudyData) -> tuple[str, Callable[[Cost], float]]:
    """Responses generated are the fair measure; steps where a target does not count them."""
    if any(state.cost.responses for state in data.view.history.runs):
        return "responses generated", lambda cost: float(cost.responses)
    return "training steps", lambda cost: float(cost.steps)


def _points(data: StudyData, measure: Callable[[Cost], float]) -> list[Point]:
    spent, points = 0.0, []
    for state in data.view.history.runs:
        spent += measure(state.cost)
        points.append(Point(state, spent))
    return points


def _progress(data: StudyData, points: Sequence[Point]) -> list[Progress]:
    """Leader by the mean of its finished runs, confirmation left out: those seeds choose nothing."""
    sign = 1 if data.view.history.maximize else -1
    scores: dict[str, list[float]] = {}
    found: list[Progress] = []
    for point in points:
        values = finished_scores([point.state])
        if not values or point.state.run.phase == CONFIRM:
            continue
        scores.setdefault(point.state.run.config_id, []).extend(values)
        leader = max(scores, key=lambda name: sign * (mean(scores[name]) or 0.0))
        best = max((value for group in scores.values() for value in group), key=lambda value: sign * value)
        found.append(Progress(point.cost, leader, mean(scores[leader]) or 0.0, best))
    return found


def _chart(data: StudyData, points: Sequence[Point], progress: Sequence[Progress], unit: str) -> Chart:
    return Chart(
        name="search-chart",
        finding=_finding(points, progress),
        caption=_CAPTION,
        plot=_plot(data, points, progress, unit),
        data=_table(points, unit),
    )


def _plot(data: StudyData, points: Sequence[Point], progress: Sequence[Progress], unit: str) -> Markup:
    unscored = [point for point in points if point.score is None and point.state.outcome is not None]
    running = [point for point in points if point.state.outcome is None]
    traces = [*_lines(progress), *_dots(data, points), *_running(running)]
    axes = {"xaxis": axis(f"{unit} (cumulative)", tickformat="~s"), "yaxis": axis(data.view.objective)}
    if unscored:
        axes["yaxis"]["domain"] = [0.2, 1]
        axes["xaxis"]["anchor"] = "y2"
        axes["yaxis2"] = axis(
            domain=[0, 0.12], range=[-1, 1], tickvals=[0], ticktext=["no score"], showgrid=False, ticks="",
            showline=True, mirror=True,
        )  # fmt: skip
        traces += _strip(unscored)
    return plot(
        "search-chart",
        traces,
        layout(400, axes, shapes=_phase_lines(points), annotations=_phase_names(points)),
    )


def _lines(progress: Sequence[Progress]) -> list[dict[str, object]]:
    if not progress:
        return []
    costs = [step.cost for step in progress]
    return [
        scatter(
            costs, [step.best for step in progress], "best single run seen", mode="lines",
            line={"color": faded(GREY, 0.8), "width": 1.4, "dash": "dot", "shape": "hv"}, hoverinfo="skip",
        ),
        scatter(
            costs, [step.value for step in progress], "leader (mean of its runs)", mode="lines",
            line={"color": _FOUND, "width": 2.2, "shape": "hv"},
            text=[f"leader {label(step.leader)}: {numbers.short(step.value)}" for step in progress],
            hovertemplate="%{text}<extra></extra>",
        ),
    ]  # fmt: skip


def _dots(data: StudyData, points: Sequence[Point]) -> list[dict[str, object]]:
    by_id: dict[str, Role] = {role.configuration.id: role for role in roles(data)}
    order = {role.name: place for place, role in enumerate(roles(data))}
    groups: dict[tuple[str, str, str], list[Point]] = {}
    for point in points:
        if point.score is None:
            continue
        role = by_id.get(point.state.run.config_id)
        stopped = point.state.outcome is Outcome.STOPPED
        name = "stopped" if stopped else role.name if role else "other runs"
        symbol = mark_of(point.state).symbol if stopped or not role else role.symbol
        color = role.color if role else faded(GREY, 0.85)
        groups.setdefault((name, symbol, color), []).append(point)
    named: set[str] = set()
    traces = []
    for (name, symbol, color), members in sorted(
        groups.items(), key=lambda item: order.get(item[0][0], len(order))
    ):
        traces.append(
            _markers(members, "" if name in named else name, symbol, color, [p.score for p in members])
        )
        named.add(name)
    return traces


def _running(points: Sequence[Point]) -> list[dict[str, object]]:
    """Where running runs are now: their latest evaluation, which is not a score yet."""
    known = [point for point in points if len(point.state.evaluations)]
    if not known:
        return []
    values = [point.state.evaluations.last for point in known]
    return [_markers(known, "running (latest evaluation)", "circle-open", GREY, values)]


def _strip(points: Sequence[Point]) -> list[dict[str, object]]:
    groups: dict[Mark, list[Point]] = {}
    for point in points:
        groups.setdefault(mark_of(point.state), []).append(point)
    return [
        _markers(members, mark.word, mark.symbol, mark.color, [0.0] * len(members), yaxis="y2")
        for mark, members in groups.items()
    ]


def _markers(
    points: Sequence[Point],
    name: str,
    symbol: str,
    color: str,
    values: Sequence[float | None],
    yaxis: str = "y",
) -> dict[str, object]:
    return scatter(
        [point.cost for point in points],
        values,
        name,
        mode="markers",
        marker={
            "symbol": symbol,
            "size": 9,
            "color": color,
            "line": {"width": 1.5 if "open" in symbol else 0, "color": color},
        },
        text=[_hover(point.state) for point in points],
        hovertemplate="%{text}<extra></extra>",
        yaxis=yaxis,
    )


def _hover(state: RunState) -> str:
    words = [f"{state.run.config_id} seed {state.run.seed} · {state.run.phase}", mark_of(state).word]
    if state.scored and state.score:
        words.append(f"score {numbers.with_error(state.score.mean, state.score.standard_error)}")
    words += [f"{name} = {numbers.setting(value)}" for name, value in state.run.params.items()]
    if state.message:
        words.append(state.message[:160])
    return "<br>".join(label(word) for word in words)


def _phase_starts(points: Sequence[Point]) -> list[tuple[float, str]]:
    """Where each phase after the first begins: the cost spent before its first run."""
    starts: list[tuple[float, str]] = []
    seen: set[str] = set()
    before = 0.0
    for point in points:
        if point.state.run.phase not in seen:
            seen.add(point.state.run.phase)
            starts.append((before, point.state.run.phase))
        before = point.cost
    return starts


def _phase_lines(points: Sequence[Point]) -> list[dict[str, object]]:
    return [
        {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1,
         "line": {"color": faded(GREY, 0.5), "width": 1, "dash": "dot"}}
        for x, _ in _phase_starts(points)[1:]
    ]  # fmt: skip


def _phase_names(points: Sequence[Point]) -> list[dict[str, object]]:
    return [
        {"x": x, "xref": "x", "y": 1, "yref": "paper", "text": label(phase), "showarrow": False,
         "xanchor": "left", "yanchor": "top", "xshift": 4, "font": {"size": 11}, "name": "tick"}
        for x, phase in _phase_starts(points)
    ]  # fmt: skip


def _finding(points: Sequence[Point], progress: Sequence[Progress]) -> str:
    scored = [point for point in points if point.score is not None]
    failed = [point for point in points if point.score is None and point.state.outcome is not None]
    text = f"{numbers.plural(len(points), 'run')}: {len(scored)} with a score, {len(failed)} without."
    if progress:
        last = progress[-1]
        text += f" At the end {last.leader} leads with a mean of {numbers.short(last.value)}; "
        text += f"best single run {numbers.short(last.best)}."
    return text


def _table(points: Sequence[Point], unit: str) -> Table:
    rows = [
        (
            Cell(f"{point.state.run.config_id} seed {point.state.run.seed}"),
            Cell(point.state.run.phase),
            Cell(mark_of(point.state).word),
            number_cell(point.cost, numbers.amount(point.cost)),
            number_cell(point.score),
        )
        for point in points
    ]
    return plain_table("search-data", ("run", "phase", "state", unit, "score"), rows, "Data of this chart")
