"""6 RUNS: all configurations as lines and as a table, and every single run."""

from leverl.report import numbers
from leverl.report.blocks import Block, Cell, Column, Section, Table, number_cell, setting_cell
from leverl.report.marks import mark_of
from leverl.report.sections import parallel
from leverl.report.sections.roles import candidate_word
from leverl.report.study_data import Configuration, StudyData
from leverl.tune.model import BASE as BASE_ID
from leverl.tune.model import RunState

_WHY = 300


def build(data: StudyData) -> Section:
    """Every configuration and every run."""
    chart = parallel.build(data)
    blocks: list[Block] = [chart] if chart else []
    blocks += [configurations(data), _every_run(data)]
    lead = (
        "Scores are means over the finished runs of a configuration with their standard error (SE) over "
        "seeds; with one seed there is none. They cover all phases, also the lucky runs that led to a "
        "choice; the proof above does not."
    )
    return Section("runs", "Runs", lead, tuple(blocks))


def configurations(data: StudyData) -> Table:
    """A row for each configuration, best first, those without a score last."""
    unscored = [c for c in data.configurations if not c.scores]
    columns = (
        Column("config"),
        Column("state"),
        Column("score ± SE", numeric=True, hint="mean of finished runs ± standard error over seeds"),
        Column("seeds", numeric=True, hint="finished runs"),
        Column("Δ base [95 % CI]", numeric=True, hint="paired by seed, latest phase that both took part in"),
        *(_believed_columns() if data.standings else ()),
        *(Column(axis.name, numeric=axis.low is not None) for axis in data.view.axes),
        Column("KL", numeric=True, hint="to the reference, nats per token, last tenth of the steps"),
        Column("length", numeric=True, hint="mean response length in tokens, last tenth of the steps"),
        Column("steps", numeric=True, hint="over all its runs"),
        Column("hours", numeric=True, hint="over all its runs"),
        Column("why ended", wide=True),
    )
    rows = tuple(_row(data, c) for c in (*data.ranked, *unscored))
    return Table("configurations", columns, rows, csv=f"{data.view.name}-configurations.csv")


def _row(data: StudyData, configuration: Configuration) -> tuple[Cell, ...]:
    return (
        Cell(configuration.id, configuration.id, tag=_tag(data, configuration)),
        Cell(configuration.states),
        Cell(configuration.score_text, configuration.mean, numbers.exact(configuration.mean)),
        number_cell(len(configuration.scores)),
        _difference(data, configuration),
        *(_believed(data, configuration) if data.standings else ()),
        *(setting_cell(value) for value in configuration.values),
        number_cell(configuration.kl),
        number_cell(configuration.length),
        number_cell(configuration.steps),
        number_cell(configuration.seconds / 3600, numbers.short(configuration.seconds / 3600, 2)),
        Cell(configuration.reasons[:_WHY]),
    )


def _believed_columns() -> tuple[Column, ...]:
    return (
        Column("posterior ± SD", numeric=True, hint="true mean as search and race tell, by the model"),
        Column(
            "P(best)",
            numeric=True,
            hint="among the configurations still in question; confirmation not counted",
        ),
    )


def _believed(data: StudyData, configuration: Configuration) -> tuple[Cell, ...]:
    found = data.standings.get(configuration.id)
    if found is None:
        return Cell(numbers.UNKNOWN), Cell(numbers.UNKNOWN)
    chance = found.probability_best
    best = Cell(numbers.probability(chance), chance, numbers.exact(chance))
    return (
        Cell(numbers.with_error(found.mean, found.sd), found.mean, numbers.exact(found.mean)),
        best if chance is not None else Cell(numbers.UNKNOWN, None, "no longer in question"),
    )


def _tag(data: StudyData, configuration: Configuration) -> str:
    if configuration.id == BASE_ID:
        return "base"
    if data.candidate is configuration:
        return candidate_word(data)
    return "finalist" if configuration in data.finalists and data.view.winner else ""


def _difference(data: StudyData, configuration: Configuration) -> Cell:
    found = data.against_base(configuration)
    if found is None:
        return Cell(numbers.UNKNOWN)
    text = numbers.signed_within(found.value, found.interval)
    if found.interval is not None:
        text += f" [{numbers.interval(*found.interval)}]"
    return Cell(text, found.value, f"{numbers.plural(found.pairs, 'pair')} of equal seeds")


def _every_run(data: StudyData) -> Table:
    columns = (
        Column("run"),
        Column("config"),
        Column("phase"),
        Column("seed", numeric=True),
        Column("state"),
        Column("score ± SE", numeric=True, hint="last evaluations of this run ± standard error over prompts"),
        Column("step", numeric=True),
        Column("to 90 % of gain", numeric=True, hint="first step with 90 % of the run's own gain"),
        Column("KL", numeric=True),
        Column("length", numeric=True),
        Column("responses", numeric=True),
        Column("seconds", numeric=True),
        Column("why ended", wide=True),
    )
    rows = tuple(_run_row(state) for state in data.view.history.runs)
    name = f"{data.view.name}-runs.csv"
    return Table("every-run", columns, rows, csv=name, folded=f"Every single run ({len(rows)})")


def _run_row(state: RunState) -> tuple[Cell, ...]:
    mark = mark_of(state)
    score = state.score if state.scored else None
    text = numbers.with_error(score.mean, score.standard_error) if score else numbers.UNKNOWN
    return (
        Cell(state.run.id, state.run.id),
        Cell(state.run.config_id),
        Cell(state.run.phase),
        number_cell(state.run.seed),
        Cell(f"{mark.glyph} {mark.word}"),
        Cell(text, score.mean if score else None, numbers.exact(score.mean) if score else ""),
        number_cell(state.cost.steps),
        number_cell(state.steps_to_90),
        number_cell(state.kl),
        number_cell(state.length),
        number_cell(state.cost.responses),
        number_cell(state.cost.seconds, numbers.short(state.cost.seconds)),
        Cell(state.message[:_WHY]),
    )
