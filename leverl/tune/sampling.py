"""Samplers by name: `bayes`, or `optuna:tpe` for one of several that another package brings.

A file `NAME.py` in `leverl/tune/samplers/` is the sampler NAME, a file `PACKAGE/VARIANT.py` is PACKAGE:VARIANT; each
has `create(seed) -> Sampler`. Outsiders add an entry point of either form in the group `leverl.samplers`. Nothing is
imported to list the names.
"""

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune import samplers
from leverl.tune.model import Sampler

_GROUP: Final = "leverl.samplers"
_BETWEEN: Final = ":"


def sampler_names() -> list[str]:
    """Names of all samplers, sorted; those whose package is not installed too."""
    return sorted({*_own(), *_outside()})


def check_sampler(name: str) -> None:
    """Refuse an unknown name, without importing the sampler.

    Raises:
        ConfigError: no such sampler; names the nearest one, and all.
    """
    known = sampler_names()
    if name not in known:
        raise _unknown(name, known)


def sampler_named(name: str, seed: int) -> Sampler:
    """The sampler `name` for a study with this seed.

    Raises:
        ConfigError: no such sampler; names the nearest one, and all.
        EnvironmentProblem: its package is not installed; names the extra that brings it.
    """
    points, own = _outside(), _own()
    if name in points:
        module: Any = points[name].load()
    elif name in own:
        module = import_module(f"{samplers.__name__}.{own[name]}")
    else:
        raise _unknown(name, sorted({*own, *points}))
    sampler: Sampler = module.create(seed)
    return sampler


def _own() -> dict[str, str]:
    """Name → module below the package of samplers."""
    found: dict[str, str] = {}
    for module in _modules(samplers.__path__):
        if not module.ispkg:
            found[module.name] = module.name
            continue
        for variant in _modules([f"{path}/{module.name}" for path in samplers.__path__]):
            found[f"{module.name}{_BETWEEN}{variant.name}"] = f"{module.name}.{variant.name}"
    return found


def _modules(paths: Iterable[str]) -> list[pkgutil.ModuleInfo]:
    return [module for module in pkgutil.iter_modules(paths) if not module.name.startswith("_")]


def _outside() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=_GROUP)}


def _unknown(name: str, known: list[str]) -> ConfigError:
    variants = [other for other in known if other.startswith(f"{name}{_BETWEEN}")]
    hint = f" Did you mean {' or '.join(variants)}?" if variants else nearest(name, known)
    return ConfigError(f"unknown strategy '{name}'.{hint} Known: {', '.join(known)}.")
