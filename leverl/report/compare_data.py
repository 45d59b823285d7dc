"""Studies side by side: what each cost, what it found, and how far the numbers can be compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leverl.errors import ConfigError
from leverl.report import numbers
from leverl.report.marks import BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from leverl.report.study_data import StudyData
from leverl.report.study_page import analysed
from leverl.tune.model import BASE, Comparison, Params, ParamValue
from leverl.tune.statistics import interval95, mean, paired_t, sample_variance, t_quantile

COLORS: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MOST: Final = len(COLORS)


@dataclass(frozen=True)
class Quality:
    """The score of what a study recommends."""

    config_id: str
    mean: float
    interval: tuple[float, float] | None  # 95 %
    scores: tuple[float, ...]  # on the fresh seeds; empty where it is the model's opinion
    seeds: tuple[int, ...]

    @property
    def source(self) -> str:
        if not self.scores:
            return "the model's opinion after search and race; nothing was confirmed"
        return f"{numbers.plural(len(self.scores), 'fresh seed')}"


@dataclass(frozen=True)
class Difference:
    """Quality of a study less that of the first; positive is better, whichever way the goal points."""

    value: float
    interval: tuple[float, float] | None
    paired: bool  # by seed


@dataclass(frozen=True)
class Study:
    """One of the studies compared."""

    label: str
    data: StudyData
    color: str
    dash: str
    quality: Quality | None
    against_first: Difference | None

    @property
    def gain(self) -> Comparison | None:
        return self.data.comparison

    @property
    def settings(self) -> Params:
        """Lever → value of the configuration that it recommends."""
        if self.quality is None:
            return {}
        found = self.data.by_id[self.quality.config_id]
        pairs = zip(self.data.view.axes, found.values, strict=True)
        return {axis.name: value for axis, value in pairs if value is not None}


def read_studies(folders: Sequence[Path]) -> tuple[Study, ...]:
    """The studies in `folders` with their analyses, which take seconds each.

    Raises:
        ConfigError: fewer than two or more than MOST, the same one twice, or a folder that holds no study.
    """
    if not 2 <= len(folders) <= MOST:
        raise ConfigError(f"{len(folders)} studies: 2 to {MOST} can be compared.")
    places = [folder.resolve() for folder in folders]
    if len(set(places)) < len(places):
        twice = next(folder for folder in folders if places.count(folder.resolve()) > 1)
        raise ConfigError(f"{twice} is given twice: name different studies.")
    return side_by_side([analysed(folder) for folder in folders])


def side_by_side(found: Sequence[StudyData]) -> tuple[Study, ...]:
    """The studies in the order given; the first is what the others are compared with."""
    names = [data.view.name for data in found]
    labels = [data.view.name if names.count(data.view.name) == 1 else str(data.view.folder) for data in found]
    qualities = [quality(data) for data in found]
    return tuple(
        Study(
            label=label,
            data=data,
            color=COLORS[place],
            dash=DASHES[place],
            quality=qualities[place],
            against_first=_difference(found[0], qualities[0], qualities[place]) if place else None,
        )
        for place, (label, data) in enumerate(zip(labels, found, strict=True))
    )


def quality(data: StudyData) -> Quality | None:
    """By the confirmation where there was one, else what the model believes; None without a score."""
    winner, comparison = data.view.winner, data.comparison
    if winner is not None and comparison is not None:
        scores = comparison.base if winner.config_id == BASE else comparison.winner
        return Quality(winner.config_id, mean(scores), interval95(scores), scores, comparison.seeds)
    found = data.view.recommendation
    if found is None:
        return None
    half = 1.96 * found.sd
    return Quality(found.config_id, found.mean, (found.mean - half, found.mean + half), (), ())


def _difference(first: StudyData, one: Quality | None, two: Quality | None) -> Difference | None:
    if one is None or two is None:
        return None
    sign = 1.0 if first.view.history.maximize else -1.0
    value = sign * (two.mean - one.mean)
    if one.scores and one.seeds == two.seeds:
        paired = paired_t([sign * b for b in two.scores], [sign * a for a in one.scores])
        return Difference(value, paired.interval, True)
    return Difference(value, _welch(value, one.scores, two.scores), False)


def _welch(value: float, one: Sequence[float], two: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of a difference of means with unequal variances (Welch 1947); None below two scores each."""
    if min(len(one), len(two)) < 2:
        return None
    a, b = sample_variance(one) / len(one), sample_variance(two) / len(two)
    if a + b == 0.0:
        return None
    freedom = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(two) - 1))
    half = t_quantile(freedom) * (a + b) ** 0.5
    return value - half, value + half


def warnings(studies: Sequence[Study]) -> list[str]:
    """Why numbers of these studies may not be comparable."""
    first = studies[0].data.view
    found = []
    for study in studies[1:]:
        view = study.data.view
        pairs: list[tuple[str, ParamValue | None, ParamValue | None]] = [
            ("objective", first.objective, view.objective),
            ("goal", _goal(first.history.maximize), _goal(view.history.maximize)),
            ("target", first.target, view.target),
            ("steps of a run", first.steps, view.steps),
            *_settings(first.base_settings, view.base_settings),
        ]
        differing = [
            f"{word} ({_word(ours)}, {_word(theirs)})" for word, ours, theirs in pairs if ours != theirs
        ]
        if differing:
            found.append(
                f"{studies[0].label} and {study.label} differ in {', '.join(differing)}: their scores and costs "
                "do not mean the same."
            )
    if open_ones := [study.label for study in studies if study.data.view.winner is None]:
        found.append(f"Not over yet: {', '.join(open_ones)}.")
    return found


def _goal(maximize: bool) -> str:
    return "maximize" if maximize else "minimize"


def _settings(one: Params, two: Params) -> list[tuple[str, ParamValue | None, ParamValue | None]]:
    return [(name, one.get(name), two.get(name)) for name in dict.fromkeys((*one, *two))]


def _word(value: ParamValue | None) -> str:
    return "not set" if value is None else numbers.exact(value)
