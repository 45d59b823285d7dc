"""Charts of several studies: scores of what they recommend, and the course of their leaders."""

from collections.abc import Sequence

from leverl.report import numbers
from leverl.report.blocks import Cell, Chart, number_cell, plain_table
from leverl.report.compare_data import Quality, Study
from leverl.report.figures import axis, label, layout, plot, scatter
from leverl.report.sections.search import lead_traces, unit_of

_ROW = 46


def scores(studies: Sequence[Study]) -> Chart | None:
    """A dot per fresh seed, mean and 95 % interval of each study's recommendation."""
    found = [(study, study.quality) for study in studies if study.quality is not None]
    if not found:
        return None
    traces = []
    rows = list(reversed(found))
    for place, (study, quality) in enumerate(rows):
        if quality.interval is not None:
            half = (quality.interval[1] - quality.interval[0]) / 2
            traces.append(
                scatter(
                    [quality.mean], [place], mode="markers", marker={"opacity": 0}, hoverinfo="skip",
                    error_x={"type": "data", "array": [half], "color": study.color, "thickness": 2.5, "width": 7},
                )
            )  # fmt: skip
        traces.append(
            scatter(
                quality.scores, [place] * len(quality.scores), mode="markers",
                marker={"symbol": "circle-open", "size": 11, "color": study.color, "line": {"width": 2}},
                text=[
                    f"seed {seed}: {numbers.short(value, 4)}"
                    for seed, value in zip(quality.seeds, quality.scores, strict=True)
                ],
                hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
        traces.append(
            scatter(
                [quality.mean], [place], mode="markers", text=[f"mean {numbers.short(quality.mean, 4)}"],
                marker={"symbol": "line-ns", "size": 22, "line": {"width": 5, "color": study.color}},
                hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    names = [label(f"{study.label} · {quality.config_id}") for study, quality in rows]
    axes = {
        "xaxis": axis(studies[0].data.view.objective),
        "yaxis": axis(
            tickvals=list(range(len(rows))),
            ticktext=names,
            range=[-0.6, len(rows) - 0.4],
            showgrid=False,
            ticks="",
        ),
    }
    style = layout(80 + _ROW * len(rows), axes, showlegend=False, margin={"l": 60, "r": 24, "t": 12, "b": 44})
    parts = [f"{study.label}: {numbers.short(quality.mean)} ({quality.source})" for study, quality in found]
    return Chart(
        name="scores-chart",
        title="What the recommendations are worth",
        finding=f"{studies[0].data.view.objective} of what each study recommends. {'; '.join(parts)}.",
        caption=(
            "Open marks: runs on fresh seeds. Thick bar: their mean. Line: 95 % confidence interval over seeds (t), or "
            "of the posterior where nothing was confirmed."
        ),
        plot=plot("scores-chart", traces, style),
        data=plain_table(
            "scores-data",
            ("study", "config", "mean", "value (seed)"),
            [
                (
                    Cell(study.label),
                    Cell(quality.config_id),
                    number_cell(quality.mean),
                    Cell(
                        ", ".join(
                            f"{numbers.short(v)} ({s})"
                            for v, s in zip(quality.scores, quality.seeds, strict=True)
                        )
                    ),
                )
                for study, quality in found
            ],
            "Data of this chart",
        ),
    )


def _by_seed(quality: Quality) -> str:
    pairs = zip(quality.scores, quality.seeds, strict=True)
    return ", ".join(f"{numbers.short(value)} ({seed})" for value, seed in pairs) or numbers.UNKNOWN


def course(studies: Sequence[Study]) -> Chart | None:
    """Each study's leader by cost, in one picture."""
    known = [(study, study.data.analysis.course) for study in studies if study.data.analysis]
    if not any(leads for _, leads in known):
        return None
    units = [unit_of(study.data.view.history) for study, _ in known]
    unit, _, key = (
        units[0] if all(one[2] == "responses" for one in units) else ("training steps", None, "steps")
    )
    traces = []
    for study, leads in known:
        lines = lead_traces(leads, key, study.label, study.color)
        if lines:
            lines[-1]["line"] = {"color": study.color, "width": 2.2, "dash": study.dash}
        traces += lines
    last = [
        f"{study.label} ends at {numbers.with_error(leads[-1].mean, 2 * leads[-1].sd)} (2 SD) after "
        f"{numbers.amount(leads[-1].spent[key])} {unit}"
        for study, leads in known
        if leads
    ]
    axes = {
        "xaxis": axis(f"{unit} (cumulative)", tickformat="~s", rangemode="tozero"),
        "yaxis": axis(studies[0].data.view.objective),
    }
    rows = [
        (
            Cell(study.label),
            number_cell(lead.runs),
            number_cell(lead.spent[key], numbers.amount(lead.spent[key])),
            Cell(lead.config_id),
            Cell(numbers.with_error(lead.mean, 2 * lead.sd)),
        )
        for study, leads in known
        for lead in leads
    ]
    return Chart(
        name="course-chart",
        finding=f"{'; '.join(last)}.",
        caption=(
            "Posterior mean ± 2 SD of the configuration that each study would have recommended by then, confirmation "
            "left out. At equal cost the better line knew the better recommendation; bands that overlap are no "
            "difference shown."
        ),
        plot=plot("course-chart", traces, layout(400, axes)),
        data=plain_table(
            "course-data", ("study", "runs", unit, "leader", "mean ± 2 SD"), rows, "Data of this chart"
        ),
    )
