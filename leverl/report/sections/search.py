"""4 SEARCH: every run over the cost spent, and who led when."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leverl.report import numbers
from leverl.report.blocks import Block, Cell, Chart, Note, Section, Table, number_cell, plain_table
from leverl.report.figures import axis, faded, label, layout, plot, scatter
from leverl.report.marks import GREEN, GREY, Mark, mark_of
from leverl.report.sections import course
from leverl.report.sections.roles import roles
from leverl.report.study_data import StudyData
from leverl.tune.analysis.result import Lead
from leverl.tune.model import CONFIRM, Cost, History, RunState

_CAPTION = (
    "Each mark is one run, placed at the cost spent when it ended. Green line and band: posterior mean ± 2 SD of the "
    "configuration that led by then, as the model saw it with the runs so far. Dotted line: best single run seen, "
    "which luck drives. ◐: stopped early, at the score its curve pointed to. Runs without a score (▲ out of memory, "
    "✕ non-finite, ■ crashed, ◆ timed out; hollow: interrupted or lost) lie in the strip below the axis, not at 0."
)


@dataclass(frozen=True)
class Point:
    """A run at the cost spent when it ended."""

    state: RunState
    cost: float

    @property
    def score(self) -> float | None:
        return self.state.score.mean if self.state.scored and self.state.score else None

    @property
    def level(self) -> float | None:
        """The score, or what a run that was stopped early would have scored."""
        predicted = self.state.prediction.mean if self.state.outcome and self.state.prediction else None
        return self.score if self.score is not None else predicted


@dataclass(frozen=True)
class Seen:
    """The best single score up to a cost."""

    cost: float
    best: float


def build(data: StudyData) -> Section:
    """The course of the study."""
    unit, measure, key = unit_of(data.view.history)
    points = _points(data, measure)
    if not points:
        blocks: tuple[Block, ...] = (Note("No run has started yet."),)
    else:
        blocks = (_chart(data, points, unit, key),)
        trajectory = course.build(data, data.analysis, unit, key) if data.analysis else None
        blocks += (trajectory,) if trajectory else (Note("The model has not been asked who led when."),)
    return Section("search", "Search", "Every run of the study, in the order of start.", blocks)


def unit_of(history: History) -> tuple[str, Callable[[Cost], float], str]:
    """Responses generated are the fair measure; steps where a target does not count them. With its key in a Lead."""
    if any(state.cost.responses for state in history.runs):
        return "responses generated", lambda cost: float(cost.responses), "responses"
    return "training steps", lambda cost: float(cost.steps), "steps"


def _points(data: StudyData, measure: Callable[[Cost], float]) -> list[Point]:
    spent, points = 0.0, []
    for state in data.view.history.runs:
        spent += measure(state.cost)
        points.append(Point(state, spent))
    return points


def _seen(data: StudyData, points: Sequence[Point]) -> list[Seen]:
    """The best single score so far, confirmation left out: those seeds choose nothing."""
    sign = 1 if data.view.history.maximize else -1
    found: list[Seen] = []
    for point in points:
        if point.score is None or point.state.run.phase == CONFIRM:
            continue
        best = point.score if not found else max(found[-1].best, point.score, key=lambda value: sign * value)
        found.append(Seen(point.cost, best))
    return found


def _chart(data: StudyData, points: Sequence[Point], unit: str, key: str) -> Chart:
    leads = data.analysis.course if data.analysis else ()
    return Chart(
        name="search-chart",
        finding=_finding(data, points, leads),
        caption=_CAPTION,
        plot=_plot(data, points, leads, unit, key),
        data=_table(points, unit),
    )


def _plot(data: StudyData, points: Sequence[Point], leads: Sequence[Lead], unit: str, key: str) -> Markup:
    unscored = [point for point in points if point.level is None and point.state.outcome is not None]
    running = [point for point in points if point.state.outcome is None]
    traces = [
        *_best_seen(_seen(data, points)), *lead_traces(leads, key), *_dots(data, points), *_stopped(points),
        *_running(running),
    ]  # fmt: skip
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


def _best_seen(seen: Sequence[Seen]) -> list[dict[str, object]]:
    if not seen:
        return []
    return [
        scatter(
            [step.cost for step in seen], [step.best for step in seen], "best single run seen", mode="lines",
            line={"color": faded(GREY, 0.8), "width": 1.4, "dash": "dot", "shape": "hv"}, hoverinfo="skip",
        )
    ]  # fmt: skip


def lead_traces(
    leads: Sequence[Lead], key: str, name: str = "leader, posterior mean ± 2 SD", color: str = GREEN
) -> list[dict[str, object]]:
    """The leader's posterior mean with its band, by cost."""
    if not leads:
        return []
    costs = [lead.spent[key] for lead in leads]
    high, low = ([lead.mean + side * 2 * lead.sd for lead in leads] for side in (1, -1))
    return [
        scatter(
            [*costs, *reversed(costs)], [*high, *reversed(low)], fill="toself", fillcolor=faded(color, 0.15),
            line={"width": 0}, mode="lines", hoverinfo="skip", legendgroup=name,
        ),
        scatter(
            costs, [lead.mean for lead in leads], name, mode="lines+markers", legendgroup=name,
            line={"color": color, "width": 2.2}, marker={"size": 5, "color": color},
            text=[
                label(f"{lead.config_id} leads: {numbers.with_error(lead.mean, 2 * lead.sd)} (2 SD)") for lead in leads
            ],
            hovertemplate="%{text}<extra></extra>",
        ),
    ]  # fmt: skip


def _dots(data: StudyData, points: Sequence[Point]) -> list[dict[str, object]]:
    """Runs with a score: a trace for each role, and one for all others."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        if point.score is not None:
            groups.setdefault(point.state.run.config_id, []).append(point)
    traces = []
    for role in roles(data):
        members = groups.pop(role.configuration.id, [])
        if members:
            traces.append(_markers(members, role.name, role.symbol, role.color, [p.score for p in members]))
    others = [point for members in groups.values() for point in members]
    if others:
        traces.append(_markers(others, "other runs", "circle", faded(GREY, 0.85), [p.score for p in others]))
    return traces


def _stopped(points: Sequence[Point]) -> list[dict[str, object]]:
    """Runs that were stopped early, where their curve pointed to."""
    members = [point for point in points if point.score is None and point.level is not None]
    if not members:
        return []
    mark = mark_of(members[0].state)
    return [_markers(members, "stopped (predicted)", mark.symbol, mark.color, [p.level for p in members])]


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
        _markers(members, "", mark.symbol, mark.color, [0.0] * len(members), yaxis="y2")
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
    if state.outcome and state.prediction:
        predicted = numbers.with_error(state.prediction.mean, state.prediction.standard_error)
        words.append(f"would have scored {predicted} by its curve")
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


def _finding(data: StudyData, points: Sequence[Point], leads: Sequence[Lead]) -> str:
    scored = [point for point in points if point.score is not None]
    failed = [point for point in points if point.level is None and point.state.outcome is not None]
    stopped = [point for point in points if point.score is None and point.level is not None]
    text = f"{numbers.plural(len(points), 'run')}: {len(scored)} with a score, {len(stopped)} stopped early, "
    text += f"{len(failed)} without a score."
    if leads:
        last = leads[-1]
        text += f" Before the confirmation {last.config_id} leads with a posterior mean of "
        text += f"{numbers.with_error(last.mean, 2 * last.sd)} (2 SD)."
    if seen := _seen(data, points):
        text += f" Best single run {numbers.short(seen[-1].best)}."
    return text


def _table(points: Sequence[Point], unit: str) -> Table:
    rows = [
        (
            Cell(f"{point.state.run.config_id} seed {point.state.run.seed}"),
            Cell(point.state.run.phase),
            Cell(mark_of(point.state).word),
            number_cell(point.cost, numbers.amount(point.cost)),
            number_cell(point.score),
            number_cell(point.level if point.score is None else None),
        )
        for point in points
    ]
    return plain_table(
        "search-data", ("run", "phase", "state", unit, "score", "predicted"), rows, "Data of this chart"
    )
