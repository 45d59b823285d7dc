"""`reward.kind: function`: the user's own `compute_score` from a Python file, with verl's signature."""

import hashlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from leverl.config.schema import Reward
from leverl.engine.rewards.protocol import RewardFunction
from leverl.errors import ConfigError
from leverl.plugins import nearest

_KEYWORDS = ("data_source", "solution_str", "ground_truth", "extra_info")


def build(settings: Reward) -> RewardFunction:
    """The function `reward.function_name` of the file `reward.function_path`.

    Raises:
        ConfigError: no path, no file, the file does not run, no such function, or one that cannot be called
            with verl's four keywords.
    """
    if settings.function_path is None:
        raise ConfigError(
            "reward.kind=function needs reward.function_path, the Python file with the function."
        )
    path = Path(settings.function_path).expanduser()
    if not path.is_file():
        siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ConfigError(f"reward.function_path: no file '{path}'.{nearest(path.name, siblings)}")
    return _checked(_run_file(path), settings.function_name, path)


def _run_file(path: Path) -> ModuleType:
    """The file as a module of its own; two files of the same name do not meet."""
    name = f"leverl_reward_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"reward.function_path: '{path}' is not a Python file (its name must end in .py).")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look the module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file may raise anything
        del sys.modules[name]
        raise ConfigError(
            f"reward.function_path: '{path}' fails when run: {type(error).__name__}: {error}"
        ) from error
    return module


def _checked(module: ModuleType, name: str, path: Path) -> RewardFunction:
    functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    function: Any = getattr(module, name, None)
    if not callable(function):
        found = f"it is {function!r}" if hasattr(module, name) else "there is none"
        raise ConfigError(
            f"reward.function_name: '{path}' has no function '{name}' ({found}).{nearest(name, functions)} "
            f"Functions there: {', '.join(functions) or 'none'}."
        )
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"reward.function_name: '{name}' in '{path}' is async; write a plain function.")
    try:
        signature = inspect.signature(function)
        signature.bind(**dict.fromkeys(_KEYWORDS))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"reward.function_name: '{name}' in '{path}' cannot be called: {error}. "
            f"It is called with the keywords {name}({', '.join(f'{key}=…' for key in _KEYWORDS)})."
        ) from error
    checked: RewardFunction = function
    return checked
