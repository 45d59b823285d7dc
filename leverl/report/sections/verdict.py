"""1 VERDICT: what to use, by how much it is better, and how sure that is."""

from leverl.record.run_record import Outcome
from leverl.report import numbers
from leverl.report.blocks import Block, Cell, Code, Column, Note, Section, Table, setting_cell
from leverl.report.page import Fact, Headline
from leverl.report.scales import edge, range_words
from leverl.report.study_data import StudyData
from leverl.report.terminal import study_next
from leverl.tune.model import BASE as BASE_ID
from leverl.tune.model import ParamValue
from leverl.tune.statistics import mean

_EDGE = 0.05  # of the range, in its scale
_NO_FAILURE = (Outcome.INTERRUPTED, Outcome.STOPPED)  # ends without a score that are the tuner's doing


def headline(data: StudyData) -> Headline:
    """The verdict with its figures."""
    view = data.view
    kicker = f"Study {view.name} · {view.strategy} over {_levers(data)} · target {view.target}"
    return Headline(
        kicker=kicker,
        text=_sentence(data),
        detail=_detail(data),
        tone=_tone(data),
        facts=tuple(_facts(data)),
        next=study_next(view),
    )


def build(data: StudyData) -> Section:
    """What the settings found are, against the base."""
    winner = data.view.winner
    title = "Settings found" if winner and winner.config_id != BASE_ID else "Settings compared"
    blocks: list[Block] = [*_notes(data)]
    if data.candidate is not None:
        blocks.insert(0, _settings(data))
    blocks += _copies(data)
    return Section("settings", title, _settings_lead(data), tuple(blocks))


def _sentence(data: StudyData) -> str:
    winner = data.view.winner
    if winner is not None:
        return winner.verdict
    leader = data.leader
    if leader is None:
        return "No run has a score so far."
    score = numbers.seeds_text(leader.mean, leader.standard_error, len(leader.scores))
    return f"So far {leader.id} leads with {score}; nothing is confirmed yet."


def _tone(data: StudyData) -> str:
    winner = data.view.winner
    if winner is None:
        return "open" if data.leader or data.view.phase != "done" else "bad"
    if winner.config_id == BASE_ID:
        return "even"
    return "win" if winner.comparison and winner.comparison.gain else "open"


def _detail(data: StudyData) -> str:
    comparison = data.comparison
    if data.view.winner is None:
        return (
            f"The study is not over ({_phase(data)}). A score from few seeds flatters whoever leads: wait "
            f"for the confirmation on fresh seeds.{_tie(data)}"
        )
    if comparison is None:
        return "There was no confirmation against the base on fresh seeds."
    seeds = ", ".join(map(str, comparison.seeds))
    compared = data.candidate.id if data.candidate else data.view.winner.config_id
    text = (
        f"{compared} against the base, paired on {numbers.plural(len(comparison.seeds), 'fresh seed')} "
        f"({seeds}) that took no part in the search"
    )
    if comparison.interval is None:
        return f"{text}. One pair gives no interval: this is a hint, not a proof."
    if comparison.gain:
        return f"{text}: the 95 % confidence interval of the difference lies above 0."
    if comparison.interval[0] > 0:
        return f"{text}: the difference is clear, but a run of {compared} failed, so it cannot be relied on."
    return f"{text}: the 95 % confidence interval of the difference does not lie above 0."


def _tie(data: StudyData) -> str:
    """Why this one leads, where others are about as good."""
    found = data.view.recommendation
    return f" So far {found.reason}." if found is not None and found.indistinguishable else ""


def _facts(data: StudyData) -> list[Fact]:
    comparison = data.comparison
    found: list[Fact] = []
    if comparison is not None and data.candidate is not None:
        found += [
            Fact(
                f"{data.candidate.id}, mean of {numbers.plural(len(comparison.winner), 'seed')}",
                numbers.within(mean(comparison.winner), comparison.interval),
            ),
            Fact("Base, same seeds", numbers.within(mean(comparison.base), comparison.interval)),
            Fact("Difference", numbers.signed_within(comparison.difference, comparison.interval)),
        ]
        if comparison.interval:
            found.append(Fact("95 % CI of the difference", numbers.interval(*comparison.interval)))
    elif data.leader is not None:
        found.append(
            Fact(
                f"{data.leader.id}, {numbers.plural(len(data.leader.scores), 'seed')}", data.leader.score_text
            )
        )
        if data.base is not None and data.base is not data.leader and data.base.scores:
            count = numbers.plural(len(data.base.scores), "seed")
            found.append(Fact(f"Base, {count}", data.base.score_text))
    found.append(Fact("Runs", _runs(data), "started of planned"))
    found.append(Fact("Time", _time(data), "wall time over all sittings"))
    found += _certainty(data)
    if data.saved_share:
        hint = "share of the steps that the study would have taken without stopping runs early"
        found.append(Fact("Saved by stopping", numbers.percent(data.saved_share), hint))
    if (subject := data.candidate) is not None and subject.kl is not None:
        found.append(
            Fact(f"KL of {subject.id} to the reference", numbers.short(subject.kl, 2), "nats per token")
        )
    return found


def _certainty(data: StudyData) -> list[Fact]:
    """What search and race say, and the bounds that the study sets."""
    found: list[Fact] = []
    best = data.view.recommendation
    if best is not None:
        hint = "probability that it has the best true mean of those still in question, by search and race"
        found.append(Fact(f"P(best) of {best.config_id}", numbers.probability(best.probability_best), hint))
    if data.view.winner is None and best is not None:
        hint = "true mean as search and race tell, ± 2 standard deviations"
        found.append(
            Fact(f"{best.config_id}, posterior ± 2 SD", numbers.with_error(best.mean, 2 * best.sd), hint)
        )
    for bound in data.analysis.bounds if data.analysis else ():
        value = numbers.short(bound.value, 2) if bound.value is not None else "not measured"
        found.append(
            Fact(bound.text, f"{value} {'ok' if bound.kept else '✕'}", "a bound that the study sets")
        )
    return found


def _runs(data: StudyData) -> str:
    started, planned = len(data.view.history.runs), sum(data.view.planned.values())
    return f"{started}" if started >= planned else f"{started} of {planned}"


def _time(data: StudyData) -> str:
    spent, budget = data.view.seconds, data.view.budget_seconds
    return (
        numbers.duration(spent)
        if budget is None
        else f"{numbers.duration(spent)} of {numbers.duration(budget)}"
    )


def _levers(data: StudyData) -> str:
    names = [axis.name for axis in data.view.axes]
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} levers"


def _phase(data: StudyData) -> str:
    return "interrupted" if data.view.phase == "done" else f"phase: {data.view.phase}"


def _settings_lead(data: StudyData) -> str:
    if data.candidate is None:
        return "No configuration beside the base has a score yet."
    winner = data.view.winner
    if winner is None:
        return f"{data.candidate.id} is ahead for now."
    if winner.config_id == BASE_ID:
        return f"{data.candidate.id} came closest. It was not shown to be better, so the base stays."
    proven = data.comparison is not None and data.comparison.gain
    text = f"What {data.candidate.id} changes against the base; all else is as in the target."
    return text if proven else f"{text} That it is better has not been shown."


def _settings(data: StudyData) -> Table:
    candidate = data.candidate
    columns = (
        Column("lever"),
        Column("base", numeric=True),
        Column(candidate.id if candidate else "", numeric=True),
        Column("searched"),
        Column("what it does", wide=True),
    )
    rows = tuple(
        (
            Cell(axis.name, axis.name),
            setting_cell(axis.base),
            setting_cell(data.value_of(candidate, axis) if candidate else None),
            Cell(range_words(axis)),
            Cell(_lever_text(axis.name)),
        )
        for axis in data.view.axes
    )
    return Table("settings-table", columns, rows)


def _lever_text(name: str) -> str:
    from leverl.vocabulary import catalog

    return catalog.by_name(name).text if catalog.is_lever(name) else ""


def _notes(data: StudyData) -> list[Note]:
    notes = [Note(text, "warn") for text in _edges(data)]
    runs = data.view.history.runs
    failed = [s for s in runs if s.outcome is not None and not s.scored and s.outcome not in _NO_FAILURE]
    if failed:
        share = numbers.percent(len(failed) / len(runs))
        words = f"{numbers.plural(len(failed), 'run')} of {len(runs)} ({share}) ended without a score"
        notes.append(Note(f"{words}; they are shown as failures, never as a score of 0."))
    return notes


def _edges(data: StudyData) -> list[str]:
    """Levers whose best value lies at the edge of what was searched: a better one may lie beyond."""
    winner = data.view.winner
    if winner is None or winner.config_id == BASE_ID or data.candidate is None:
        return []
    found = []
    for axis in data.view.axes:
        side = edge(axis, data.value_of(data.candidate, axis), _EDGE)
        if side and not _last_allowed(axis.name, side, data.value_of(data.candidate, axis)):
            value = numbers.setting(data.value_of(data.candidate, axis))
            found.append(
                f"{axis.name} = {value} lies at the {side} edge of its range ({range_words(axis)}): a wider range "
                "may hold something better."
            )
    return found


def _last_allowed(name: str, side: str, value: ParamValue | None) -> bool:
    """Whether nothing beyond `value` is allowed at all, so that no wider range could be searched."""
    from leverl.config import tree
    from leverl.vocabulary import catalog

    if not catalog.is_lever(name):
        return False
    limits = tree.leaves()[catalog.by_name(name).path].metadata
    return any(getattr(limit, "ge" if side == "lower" else "le", None) == value for limit in limits)


def _copies(data: StudyData) -> list[Block]:
    winner = data.view.winner
    if winner is None or not winner.best_yaml.is_file():
        return []
    return [Code("best.yaml", winner.best_yaml.read_text(encoding="utf-8"), folded=True)]
