"""Charts of one run: held-out score, and everything the training logged, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leverl.record.series import RunSeries, Series
from leverl.report import numbers, svg
from leverl.report.blocks import Cell, Chart, Table, number_cell, plain_table
from leverl.report.figures import axis, faded, label, layout, plot, scatter, thin
from leverl.report.marks import BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from leverl.report.svg import Curve

EVAL, EVAL_ERROR = "eval/score", "eval/score_se"


@dataclass(frozen=True)
class Line:
    """A metric in a chart; on the right-hand axis when `right`."""

    metric: str
    name: str
    color: str
    dash: str = "solid"
    right: bool = False


@dataclass(frozen=True)
class Panel:
    """A chart: what belongs together, and what to look for."""

    name: str
    title: str
    left: str
    lines: tuple[Line, ...]
    caption: str
    right: str = ""
    log: bool = False


PANELS = (
    Panel(
        "reward-kl",
        "Reward and KL to the reference",
        "reward",
        (
            Line("critic/score/mean", "reward", BLUE),
            Line("kl_divergence", "KL, k1", RED, "dash", right=True),
            Line("kl_divergence_k3", "KL, k3", ORANGE, "dot", right=True),
        ),
        "Mean score of the sampled responses (left) and distance of the policy that sampled them from the "
        "reference (right, nats per token). KL that grows while eval/score does not is distance without use.",
        right="KL, nats per token",
    ),
    Panel(
        "groups",
        "Learning signal",
        "share or reward",
        (
            Line("group/reward_std", "spread within groups", GREEN),
            Line("group/dead_share", "dead groups", RED, "dash"),
            Line("rollout_success_rate", "success rate", SKY, "dot"),
        ),
        "A dead group is a prompt whose responses all score alike: it teaches nothing.",
    ),
    Panel(
        "entropy",
        "Entropy",
        "nats per token",
        (Line("actor/entropy", "entropy", PURPLE),),
        "How undecided the policy is. It falls as it learns; a sudden fall ends exploration.",
    ),
    Panel(
        "length",
        "Response length and truncation",
        "tokens",
        (
            Line("response_length/mean", "mean length", BLUE),
            Line("response_length/p99", "99 % are shorter", SKY, "dash"),
            Line("rollout/truncated", "truncated", RED, "dot", right=True),
        ),
        "Length in tokens (left) and share of responses cut off at the limit (right).",
        right="share truncated",
    ),
    Panel(
        "clipping",
        "Clipping",
        "share of tokens",
        (
            Line("ratio/below", "ratio below the interval", ORANGE),
            Line("ratio/above", "ratio above the interval", RED, "dash"),
            Line("actor/pg_clipfrac", "clipping binds", BLUE, "dot"),
        ),
        "Tokens outside the clip interval by their ratio alone, and those where clipping changes the loss: "
        "different numbers.",
    ),
    Panel(
        "gradient",
        "Gradient norm",
        "norm (log)",
        (Line("actor/grad_norm", "policy", BLUE), Line("critic/grad_norm", "critic", ORANGE, "dash")),
        "Before clipping, on a log axis. Spikes are kept when the curve is thinned.",
        log=True,
    ),
    Panel(
        "critic",
        "Critic",
        "loss",
        (
            Line("critic/vf_loss", "value loss", ORANGE),
            Line("critic/vf_explained_var", "explained variance", GREEN, "dash", right=True),
        ),
        "The critic is useful when its explained variance (right) rises towards 1.",
        right="explained variance",
    ),
    Panel(
        "timing",
        "Time per step",
        "seconds",
        (
            Line("timing_s/step", "whole step", "#808080"),
            Line("timing_s/gen", "generate", BLUE, "dash"),
            Line("timing_s/update_actor", "train policy", ORANGE, "dot"),
            Line("timing_s/update_critic", "train critic", RED, "dot"),
            Line("timing_s/ref", "reference", PURPLE, "dashdot"),
            Line("timing_s/sync", "hand over weights", GREEN, "dash"),
            Line("timing_s/eval", "evaluate", SKY, "dot"),
        ),
        "Where the time goes. Steps with an evaluation take longer.",
    ),
)


def evaluation_chart(run: RunSeries) -> Chart | None:
    """Held-out score ± its standard error; None before the first evaluation."""
    scores = run.get(EVAL)
    if not len(scores):
        return None
    by_step = dict(zip(run.get(EVAL_ERROR).steps, run.get(EVAL_ERROR).values, strict=True))
    errors = [by_step.get(step) for step in scores.steps]
    traces = [
        scatter(
            scores.steps,
            scores.values,
            mode="lines+markers",
            line={"color": BLUE, "width": 2.5},
            marker={"size": 8},
            error_y={"type": "data", "array": [error or 0 for error in errors], "thickness": 1.5, "width": 4},
            hovertemplate="step %{x}: %{y:.4g}<extra></extra>",
        )
    ]
    first, last = scores.values[0], scores.values[-1]
    rows = [
        (number_cell(step), number_cell(value), number_cell(error))
        for step, value, error in zip(scores.steps, scores.values, errors, strict=True)
    ]
    return Chart(
        name="eval-chart",
        finding=f"Held-out score by step: from {numbers.short(first)} at step {scores.steps[0]} "
        f"to {numbers.short(last)} at step {scores.steps[-1]}.",
        caption="Mean score on held-out prompts ± one standard error (SE) over prompts. It does not contain "
        "the spread between seeds.",
        plot=plot("eval-chart", traces, layout(320, {"xaxis": axis("step"), "yaxis": axis("eval/score")})),
        data=plain_table("eval-data", ("step", "eval/score", "SE"), rows, "Data of this chart"),
        static=svg.curves([_static(scores)], "eval/score"),
    )


def _static(scores: Series) -> Curve:
    steps, values = thin(scores.steps, scores.values)
    return Curve("eval/score", BLUE, "solid", tuple(steps), tuple(values), tuple(values), tuple(values), 1)


def panel_chart(run: RunSeries, panel: Panel) -> Chart | None:
    """The chart of a panel; None when the run logged nothing of it."""
    lines = [line for line in panel.lines if len(run.get(line.metric))]
    if not lines:
        return None
    return Chart(
        name=f"{panel.name}-chart",
        finding=f"{panel.title} by step. " + " ".join(_words(line, run.get(line.metric)) for line in lines),
        caption=panel.caption,
        title=panel.title,
        plot=_plot(run, panel, lines),
        data=_table(run, panel, lines),
    )


def _words(line: Line, series: Series) -> str:
    low, high = min(series.values), max(series.values)
    return (
        f"{line.name}: {numbers.short(series.values[0])} at first, {numbers.short(series.values[-1])} at "
        f"last, between {numbers.short(low)} and {numbers.short(high)}."
    )


def _plot(run: RunSeries, panel: Panel, lines: Sequence[Line]) -> Markup:
    traces: list[dict[str, object]] = []
    for line in lines:
        traces += _traces(line, run.get(line.metric))
    positive = all(value >= 0 for line in lines for value in run.get(line.metric).values)
    axes = {
        "xaxis": axis("step"),
        "yaxis": axis(
            panel.left,
            type="log" if panel.log else "linear",
            rangemode="nonnegative" if positive and not panel.log else "normal",
        ),
    }
    if any(line.right for line in lines):
        axes["yaxis2"] = axis(
            panel.right, overlaying="y", side="right", showgrid=False, tickmode="auto", nticks=6
        )
    return plot(f"{panel.name}-chart", traces, layout(270, axes, showlegend=True))


def _traces(line: Line, series: Series) -> list[dict[str, object]]:
    """The raw line, faint, under its running mean when it is long enough to need one."""
    steps, values = thin(series.steps, series.values)
    side = {"yaxis": "y2"} if line.right else {}
    style = {"color": line.color, "width": 2, "dash": line.dash}
    hover = f"{label(line.name)}<br>step %{{x}}: %{{y:.4g}}<extra></extra>"
    mode = "lines" if len(steps) > 1 else "markers"
    if len(series) < 40 or line.metric.startswith("timing_s/eval"):
        return [scatter(steps, values, line.name, mode=mode, line=style, hovertemplate=hover, **side)]
    smooth = _running_mean(series)
    raw = {"color": faded(line.color, 0.35), "width": 1}
    return [
        scatter(steps, values, mode="lines", line=raw, hovertemplate=hover, legendgroup=line.name, **side),
        scatter(
            *thin(*smooth),
            line.name,
            mode="lines",
            line=style,
            hoverinfo="skip",
            legendgroup=line.name,
            **side,
        ),
    ]


def _running_mean(series: Series) -> tuple[list[int], list[float]]:
    """Centred mean over a twentieth of the points."""
    half = max(1, len(series) // 40)
    values = series.values
    means = []
    for index in range(len(values)):
        near = values[max(0, index - half) : index + half + 1]
        means.append(sum(near) / len(near))
    return list(series.steps), means


def _table(run: RunSeries, panel: Panel, lines: Sequence[Line]) -> Table:
    steps = sorted({step for line in lines for step in run.get(line.metric).steps})
    chosen = (
        [steps[round(index * (len(steps) - 1) / 19)] for index in range(20)] if len(steps) > 20 else steps
    )
    known = [
        dict(zip(run.get(line.metric).steps, run.get(line.metric).values, strict=True)) for line in lines
    ]
    rows = [(number_cell(step), *(_value(values.get(step)) for values in known)) for step in chosen]
    return plain_table(
        f"{panel.name}-data", ("step", *(line.metric for line in lines)), rows, "Data of this chart"
    )


def _value(value: float | None) -> Cell:
    return number_cell(value)
