"""The study that an import begins: its file, and the imported trials beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from leverl.errors import ConfigError
from leverl.record.layout import write_atomically
from leverl.record.naming import free_name, occupied
from leverl.tune.plan import Plan, prepare
from leverl.tune.store.imported import IMPORTED, Imported, prior_runs, write_imported
from leverl.tune.store.outputs import STUDY_FILE
from leverl.tune.study import Study
from leverl.tune.study_file import dump_study, load_study

TRIALS: Final = 30
"""Budget of the new study unless the user gives one."""


def draft(
    imported: Imported, folder: Path, target: str, overrides: Sequence[str] | Mapping[str, Any] = ()
) -> Plan:
    """The study that goes on from `imported` in `folder`; nothing is written.

    Args:
        target: recipe or configuration file that the new runs train.
        overrides: parts of the study (`budget.trials=20`) or settings of its base (`steps=100`).

    Raises:
        ConfigError: folder, target, settings and space do not work out.
    """
    content = {
        "name": folder.name,
        "target": {"leverl": target, "set": dict(imported.fixed)},
        "objective": {"goal": "maximize" if imported.maximize else "minimize"},
        "space": dict(imported.space),
        "budget": {"trials": TRIALS},
    }
    plan = prepare(load_study(content, overrides), folder)
    prior_runs(imported, plan.space, maximize=plan.study.maximize)
    return plan


def begin(study: Study, folder: Path, imported: Imported) -> None:
    """Write `study.yaml` and `imported.json` into `folder`, for `leverl tune --resume` to go on with.

    Raises:
        ConfigError: the folder is not empty.
    """
    if occupied(folder):
        raise ConfigError(
            f"{folder} exists already, and nothing in it is overwritten. Choose another folder, such as --into "
            f"{folder.parent / free_name(folder.parent, folder.name)}"
        )
    head = f"# Goes on from study {imported.study} in {imported.source}; its trials are in {IMPORTED}.\n"
    write_imported(folder, imported)
    write_atomically(folder / STUDY_FILE, head + dump_study(study))
