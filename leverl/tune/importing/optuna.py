"""An Optuna study taken in: its parameters as levers, its trials as prior knowledge."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from leverl.backends.leverl import create
from leverl.errors import ConfigError
from leverl.tune.importing.optuna_storage import open_study
from leverl.tune.importing.words import lever_called
from leverl.tune.model import ParamValue
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import build
from leverl.tune.store.imported import Imported, ImportedTrial

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

Content = dict[str, Any]

_SHOWN: Final = 8  # numbers of trials in a line


def read_optuna(storage: str, study: str | None = None, *, target: str = "grpo") -> Imported:
    """The trials of a study, as far as they fit levers of `target` (a recipe or configuration file).

    Args:
        storage: URL of a database (`sqlite:///old.db`), or path of an SQLite file or an Optuna journal.
        study: its name; None where the storage holds one study only.

    Raises:
        ConfigError: no such storage or study (names those that exist), several objectives, or nothing fits.
        EnvironmentProblem: the database needs a driver that is not installed.
    """
    with open_study(storage, study) as (source, opened):
        name, trials = opened.study_name, opened.get_trials(deepcopy=False)
        goals = [direction.name.lower() for direction in opened.directions]
    if len(goals) > 1:
        raise ConfigError(
            f"study '{name}' has {len(goals)} objectives ({', '.join(goals)}), and a study here has one. "
            "Nothing was imported."
        )
    return _fit(source, name, goals[0] == "maximize", trials, target)


def _fit(source: str, name: str, maximize: bool, trials: Sequence["FrozenTrial"], target: str) -> Imported:
    ranges = _ranges(trials)
    if not ranges:
        raise ConfigError(f"study '{name}' in {source} has no trials with parameters: nothing to import.")
    check = _check(target)
    left_out: list[str] = []
    space: dict[str, Content] = {}
    fixed: dict[str, ParamValue] = {}
    axes: dict[str, Axis] = {}
    for word, distributions in ranges.items():
        try:
            lever = lever_called(word).name
            if lever in space or lever in fixed:
                raise ConfigError(f"is {lever}, which another parameter is already.")
            content = _content(distributions)
            if len(content.get("values", "two")) == 1:
                (fixed[lever],) = check(lever, content).values
            else:
                axes[word], space[lever] = check(lever, content), content
        except ConfigError as error:
            left_out.append(f"parameter {word}: {_reason(error)}")
    if not axes:
        raise ConfigError(
            f"no parameter of study '{name}' can be searched here; nothing was imported.\n"
            + "\n".join(left_out)
        )
    if left_out:
        left_out.append(
            "what those parameters did stays in the values of the trials, as noise: the fewer they moved, the better."
        )
    taken, troubles = _trials(trials, axes)
    left_out += troubles
    names = {word: axis.name for word, axis in axes.items()}
    return Imported(source, name, maximize, taken, space, fixed, names, tuple(left_out))


def _ranges(trials: Sequence["FrozenTrial"]) -> dict[str, list["BaseDistribution"]]:
    """Each parameter's distributions, the latest first; the most frequent parameter first."""
    found: dict[str, list[BaseDistribution]] = {}
    for trial in reversed(trials):
        for name, distribution in trial.distributions.items():
            found.setdefault(name, []).append(distribution)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _content(distributions: Sequence["BaseDistribution"]) -> Content:
    """The words of a study file for a parameter: its choices, or one range around all it had.

    Raises:
        ConfigError: the ranges differ in scale or step.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    latest = distributions[0]
    if isinstance(latest, CategoricalDistribution):
        return {"values": list(latest.choices)}
    ranges = [one for one in distributions if isinstance(one, FloatDistribution | IntDistribution)]
    scales = {(one.log, one.step) for one in ranges}
    if len(scales) > 1:
        raise ConfigError("its ranges differ in scale or step between trials.")
    low, high = min(one.low for one in ranges), max(one.high for one in ranges)
    if low == high:
        return {"values": [low]}
    content: Content = {"min": low, "max": high}
    ((log, step),) = scales
    if log:
        content["log"] = True
    elif step is not None and not (step == 1 and isinstance(low, int)):
        content["step"] = step
    return content


def _check(target: str) -> Callable[[str, Content], Axis]:
    """A function that makes the axis of a lever, or says why it cannot be searched."""
    backend = create(target, {})

    def check(lever: str, content: Content) -> Axis:
        return build({lever: content}, (), backend.base, backend.resolve).axes[0]

    return check


def _trials(
    trials: Sequence["FrozenTrial"], axes: Mapping[str, Axis]
) -> tuple[tuple[ImportedTrial, ...], list[str]]:
    """The trials in our words, and what to know of those that are not there or not whole."""
    taken: list[ImportedTrial] = []
    troubled: dict[str, list[int]] = {}
    for trial in trials:
        found, trouble = _trial(trial, axes)
        if found is not None:
            taken.append(found)
        if trouble:
            troubled.setdefault(trouble, []).append(trial.number)
    return tuple(taken), [f"{_listed(numbers)}: {trouble}" for trouble, numbers in troubled.items()]


def _trial(trial: "FrozenTrial", axes: Mapping[str, Axis]) -> tuple[ImportedTrial | None, str]:
    """The trial in our words (None where it says nothing) and what is wrong with it."""
    from optuna.trial import TrialState

    if trial.state not in (TrialState.COMPLETE, TrialState.FAIL):
        return None, f"{trial.state.name.lower()}, without a final value."
    params = {axis.name: axis.snap(trial.params[word]) for word, axis in axes.items() if word in trial.params}
    known = {name: value for name, value in params.items() if value is not None}
    if not known or len(known) < len(params):
        return None, "none of the parameters that are searched, or one out of its range."
    if trial.state == TrialState.FAIL:
        return ImportedTrial(trial.number, known, None, "failed in the imported study"), ""
    if trial.value is None or not math.isfinite(trial.value):
        return None, f"value {trial.value} is not finite."
    broken = any(value > 0 for value in trial.constraints.values())
    trouble = "broke a constraint, which is not taken in; the value is." if broken else ""
    return ImportedTrial(trial.number, known, trial.value), trouble


def _listed(numbers: Sequence[int]) -> str:
    """`trial 3`, or `12 trials (3, 5, 8, …)`."""
    if len(numbers) == 1:
        return f"trial {numbers[0]}"
    shown = ", ".join(str(number) for number in numbers[:_SHOWN])
    return f"{len(numbers)} trials ({shown}{', …' if len(numbers) > _SHOWN else ''})"


def _reason(error: ConfigError) -> str:
    return str(error).removeprefix("space: ")
