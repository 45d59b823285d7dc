"""Who is who in a study's charts: candidate, base and finalists with one colour and shape each."""

from dataclasses import dataclass

from leverl.report.marks import BASE, FINALISTS, WINNER
from leverl.report.study_data import Configuration, StudyData
from leverl.tune.model import RACE


@dataclass(frozen=True)
class Role:
    """A configuration worth its own colour."""

    configuration: Configuration
    word: str  # "winner", "leader", "candidate", "base", "finalist"
    color: str
    dash: str
    symbol: str

    @property
    def name(self) -> str:
        return f"{self.configuration.id} ({self.word})"


def roles(data: StudyData) -> tuple[Role, ...]:
    """Candidate first, then the base, then finalists."""
    found: list[Role] = []
    if data.candidate is not None:
        found.append(Role(data.candidate, candidate_word(data), WINNER, "solid", "circle"))
    if data.base is not None:
        found.append(Role(data.base, "base", BASE, "dash", "square"))
    for configuration, color, symbol in zip(
        data.finalists, FINALISTS, ("diamond", "cross", "star"), strict=False
    ):
        raced = StudyData.phase_runs(configuration, RACE)
        found.append(Role(configuration, "finalist" if raced else "runner-up", color, "dot", symbol))
    return tuple(found)


def candidate_word(data: StudyData) -> str:
    """What the candidate is by now."""
    winner = data.view.winner
    if winner is None:
        return "leader"
    if data.candidate is None or winner.config_id != data.candidate.id:
        return "candidate"
    return "winner" if winner.comparison is not None and winner.comparison.gain else "leader"
