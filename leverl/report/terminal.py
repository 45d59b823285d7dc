"""A finished run or study in the terminal: a table, and the command that comes next."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from leverl.record.layout import RunFolder
from leverl.record.run_record import Outcome, RunRecord
from leverl.report import numbers
from leverl.report.study_data import Configuration, StudyData
from leverl.tune.model import BASE as BASE_ID
from leverl.tune.model import StudyView

if TYPE_CHECKING:
    from rich.table import Table

_ROWS = 10


def run_line(record: RunRecord) -> str:
    """How a run went in one line: `finished · 0.61 ± 0.03 (last 3 evaluations) · 200 of 200 steps · 52 s`."""
    outcome = record.outcome.value.replace("_", " ") if record.outcome else "running"
    words = [outcome]
    if record.score is not None:
        score = numbers.with_error(record.score.mean, record.score.standard_error)
        words.append(f"{score} (last {numbers.plural(record.score.evaluations, 'evaluation')})")
    words += [f"{record.step} of {record.until} steps", numbers.duration(record.seconds)]
    return " · ".join(words)


def run_next(record: RunRecord, folder: Path) -> str:
    """The command that makes sense after a run."""
    place = shlex.quote(str(folder))
    if record.outcome is Outcome.NON_FINITE and (halved := _halved_learning_rate(folder)):
        return (
            f"leverl train {place} actor_learning_rate={halved} --name {shlex.quote(f'{folder.name}-slower')}"
        )
    if record.outcome in (Outcome.FINISHED, Outcome.STOPPED):
        return f"leverl eval {place}"
    return f"leverl train --resume {place}"


def _halved_learning_rate(folder: Path) -> str:
    """Half the run's learning rate, the first thing to try after a non-finite loss; empty when unknown."""
    from leverl.config.loader import read_yaml

    path = RunFolder(folder).config
    actor = read_yaml(path).get("actor") if path.is_file() else None
    rate = actor.get("learning_rate") if isinstance(actor, dict) else None
    return numbers.exact(rate / 2) if isinstance(rate, float) else ""


def study_table(view: StudyView) -> "Table":
    """The best configurations, the base among them."""
    from rich.table import Table
    from rich.text import Text

    data = StudyData(view)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("config", "", *(axis.name for axis in view.axes)):
        table.add_column(title)
    table.add_column(view.objective, justify="right")
    table.add_column("Δ base", justify="right")
    for configuration in _shown(data):
        difference = data.against_base(configuration)
        words = [
            configuration.id,
            _word(data, configuration),
            *map(numbers.setting, configuration.values),
            numbers.seeds_text(configuration.mean, configuration.standard_error, len(configuration.scores)),
            numbers.signed(difference.value) if difference else numbers.UNKNOWN,
        ]
        table.add_row(*map(Text, words))
    return table


def study_next(view: StudyView) -> str:
    """The command that makes sense after (or during) a study."""
    if view.winner is None:
        return f"leverl tune --resume {shlex.quote(str(view.folder))}"
    if view.winner.config_id == BASE_ID:
        return " ".join(["leverl train", *map(shlex.quote, [view.target, *base_overrides(view)])])
    return f"leverl train {shlex.quote(str(view.winner.best_yaml))}"


def repeat_command(view: StudyView) -> str:
    """The command that runs the study again under another name."""
    file = shlex.quote(str(view.folder / "study.yaml"))
    return f"leverl tune {file} --name {shlex.quote(f'{view.name}-again')}"


def base_overrides(view: StudyView) -> list[str]:
    return [f"{name}={numbers.exact(value)}" for name, value in view.base_settings.items()]


def _shown(data: StudyData) -> list[Configuration]:
    shown = list(data.ranked[:_ROWS])
    if data.base is not None and data.base not in shown:
        shown.append(data.base)
    return shown


def _word(data: StudyData, configuration: Configuration) -> str:
    if configuration.id == BASE_ID:
        return "base"
    if data.view.winner and data.view.winner.config_id == configuration.id:
        return "winner"
    return "leader" if data.leader is configuration and data.view.winner is None else ""
