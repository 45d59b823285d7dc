"""Runs that a study did not make itself: what an imported study leaves in the study's folder, and how it is read.

They are prior knowledge for the sampler. They are no runs of the study: they have no folder and no known seed, cost
no budget and can neither win nor prove anything.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from leverl.errors import ConfigError
from leverl.record.layout import write_json
from leverl.record.run_record import Outcome, Score
from leverl.tune.model import Params, ParamValue, Run, RunState
from leverl.tune.space.space import Key, Space, key

IMPORTED: Final = "imported.json"

IMPORT: Final = "import"
"""Phase of such runs."""

UNKNOWN_SEED: Final = -1


@dataclass(frozen=True)
class ImportedTrial:
    """One trial of the other study, as far as it fits."""

    number: int
    params: Params  # lever → value
    value: float | None  # None where it failed
    message: str = ""


@dataclass(frozen=True)
class Imported:
    """A study taken in. `space` and `fixed` are in the words of a study file."""

    source: str
    study: str
    maximize: bool
    trials: tuple[ImportedTrial, ...]
    space: Mapping[str, Any] = field(default_factory=dict)  # lever → range or values
    fixed: Mapping[str, ParamValue] = field(default_factory=dict)  # levers with one value
    names: Mapping[str, str] = field(default_factory=dict)  # its parameter → lever searched
    left_out: tuple[str, ...] = ()  # what did not fit, each with the reason


def write_imported(folder: Path, imported: Imported) -> None:
    """Write `imported.json` into a study's folder."""
    write_json(folder / IMPORTED, asdict(imported))


def read_imported(folder: Path) -> Imported | None:
    """What was imported into the study in `folder`; None where nothing was.

    Raises:
        ConfigError: the file is damaged.
    """
    path = folder / IMPORTED
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        trials = tuple(ImportedTrial(**trial) for trial in content.pop("trials"))
        return Imported(**{**content, "left_out": tuple(content["left_out"])}, trials=trials)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{path} cannot be read ({error}). Import the study again, or delete the file to tune without it."
        ) from error


def prior_runs(imported: Imported, space: Space, *, maximize: bool) -> tuple[RunState, ...]:
    """The imported trials that lie in `space` as runs of phase "import".

    Trials with the same levers are runs of one configuration.

    Raises:
        ConfigError: the other study had the opposite goal.
    """
    if imported.maximize != maximize:
        was, now = ("maximize", "minimize") if imported.maximize else ("minimize", "maximize")
        raise ConfigError(
            f"{IMPORTED}: study '{imported.study}' had goal {was}, and objective.goal is {now}: its values mean "
            f"the opposite. Set objective.goal: {was}, or delete the file."
        )
    names: dict[Key, str] = {}
    runs: list[RunState] = []
    for trial in imported.trials:
        params = _live(trial.params, space)
        if params is not None:
            config_id = names.setdefault(key(params), f"i{len(names):03d}")
            runs.append(_run(trial, config_id, params))
    return tuple(runs)


def _live(params: Params, space: Space) -> Params | None:
    """The trial as a configuration of the space; None outside it."""
    searched = {axis.name: params[axis.name] for axis in space.axes if axis.name in params}
    if not searched or space.fill(searched) is None:
        return None
    return space.admit(searched).params


def _run(trial: ImportedTrial, config_id: str, params: Params) -> RunState:
    run = Run(f"import-{trial.number:03d}", config_id, params, UNKNOWN_SEED, 0, IMPORT)
    if trial.value is None:
        return RunState(run, Path(), Outcome.CRASHED, message=trial.message)
    return RunState(run, Path(), Outcome.FINISHED, Score(trial.value, None, 0))
