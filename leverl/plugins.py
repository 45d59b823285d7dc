"""The folder is the registry: a plug-in is a module in a package, found by its file name.

Outsiders add theirs as an entry point in the group `leverl.<last part of the package name>`.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from leverl.errors import ConfigError, EnvironmentProblem


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint such as ` Did you mean 'kl_coef'?`, or an empty string when nothing is close."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


def _group(package: str) -> str:
    return f"leverl.{package.rsplit('.', 1)[-1]}"


def _module_name(name: str) -> str:
    return name.replace("-", "_")


def names(package: str) -> list[str]:
    """Names of all plug-ins of `package` (modules whose name does not start with `_`), sorted."""
    module = importlib.import_module(package)
    own = {info.name for info in pkgutil.iter_modules(module.__path__) if not info.name.startswith("_")}
    return sorted(own | {point.name for point in entry_points(group=_group(package))})


def load(package: str, name: str, what: str) -> ModuleType | Any:
    """The plug-in `name` of `package`; `what` is the word for it in the error message.

    Raises:
        ConfigError: no such plug-in; names the nearest one and all that exist.
    """
    for point in entry_points(group=_group(package), name=name):
        return point.load()
    known = names(package)
    if _module_name(name) not in known:
        raise ConfigError(f"unknown {what} '{name}'.{nearest(name, known)} Known: {', '.join(known)}.")
    return importlib.import_module(f"{package}.{_module_name(name)}")


@dataclass(frozen=True)
class Dependency:
    """An optional package: the module to import and the extra of leverl that brings it."""

    module: str
    extra: str

    def require(self, purpose: str) -> ModuleType:
        """Import the module, or say how to install it (exit code 4).

        Raises:
            EnvironmentProblem: the package is not installed.
        """
        if find_spec(self.module) is None:
            raise EnvironmentProblem(
                f"'{self.module}' is needed {purpose}. Install it with: pip install 'leverl[{self.extra}]'"
            )
        return importlib.import_module(self.module)


DATASETS = Dependency("datasets", "datasets")
MATH_VERIFY = Dependency("math_verify", "math-verify")
REASONING_GYM = Dependency("reasoning_gym", "reasoning-gym")
NVML = Dependency("pynvml", "nvml")
WANDB = Dependency("wandb", "wandb")
MLFLOW = Dependency("mlflow", "mlflow")
TENSORBOARD = Dependency("tensorboard", "tensorboard")
CMAES = Dependency("cmaes", "cmaes")
HYPEROPT = Dependency("hyperopt", "hyperopt")
AX = Dependency("ax", "ax")
DASHBOARD = Dependency("optuna_dashboard", "dashboard")
