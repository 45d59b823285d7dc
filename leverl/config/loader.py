"""From a recipe, a file or a run's folder and `key=value` overrides to a checked configuration.

Layers, lowest first: the schema's defaults, packaged recipes (`extends`), the user's file, overrides.
Short names are accepted wherever a full path is. This is the only module that reads configuration YAML.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from leverl.config import arithmetic, combinations, tree
from leverl.config.schema import Config
from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.vocabulary import catalog

_RECIPES: Final = files("leverl.config").joinpath("recipes")
_NUMBER: Final = re.compile(r"[-+]?[0-9._]+([eE][-+]?[0-9]+)?$")
_INTERPOLATION: Final = re.compile(r"(\\*)\$\{")
_EMBEDDED_LEARNING_RATE: Final = 1e-4  # above this a learning rate is meant for the small embedded policy


@dataclass(frozen=True)
class Layer:
    """Settings from one place: canonical path → value.

    `inherited`: nobody typed them for this run (a packaged recipe, the complete configuration of a run), so
    that one without effect is no mistake of the user.
    """

    origin: str
    values: Mapping[str, Any]
    inherited: bool = False


@dataclass(frozen=True)
class Loaded:
    """A checked configuration and where its settings came from."""

    config: Config
    source: str
    layers: tuple[Layer, ...]

    @property
    def set_by_user(self) -> frozenset[str]:
        return frozenset(path for layer in self.layers if not layer.inherited for path in layer.values)


def recipes() -> list[str]:
    """Names of the packaged recipes."""
    return sorted(
        entry.name.removesuffix(".yaml") for entry in _RECIPES.iterdir() if entry.name.endswith(".yaml")
    )


def load(source: str | Path = "grpo", overrides: Sequence[str] | Mapping[str, Any] = ()) -> Loaded:
    """Load recipe, YAML file or run folder `source` and apply `overrides` (`["kl_coef=0.01"]` or a mapping).

    Raises:
        ConfigError: unknown key, wrong type, out of bounds, impossible combination, or a setting that would
            have no effect; names key, value, what is allowed and the nearest name.
    """
    layers = [*_file_layers(str(source), seen=()), _override_layer(overrides)]
    return resolve(layers, str(source))


def resolve(layers: Sequence[Layer], source: str) -> Loaded:
    """Merge `layers` (lowest first), complete the batch arithmetic and check the result."""
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for layer in layers:
        values.update(layer.values)
        origin.update(dict.fromkeys(layer.values, layer.origin))
    _files_replace_task(layers, values)
    values.update(arithmetic.complete([_sizes(layer) for layer in layers]))
    config = _validate(values, origin)
    combinations.check(config)
    loaded = Loaded(config, source, tuple(layers))
    _refuse_inert(loaded)
    _refuse_learning_rate_of_the_embedded_policy(loaded)
    return loaded


def dump(config: Config, header: str = "") -> str:
    """`config` as YAML that `load` accepts, every setting written out."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes text that `read_yaml` would take for a number: 1e5."""

    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
    text = yaml.dump(_escaped(config.model_dump()), Dumper=Dumper, sort_keys=False, allow_unicode=True)
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    return f"{comment}{text}"


def _escaped(value: Any) -> Any:
    """Text with `${`, which `read_yaml` would take for an interpolation, made to stand for itself."""
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return _INTERPOLATION.sub(r"\1\1\\${", value) if isinstance(value, str) else value


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping with OmegaConf's number grammar (`1e-6` is a number).

    Raises:
        ConfigError: no such file, not YAML, or not a mapping.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        content = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}.") from error
    except (YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold `key: value` lines, found a {type(content).__name__}.")
    return {str(key): value for key, value in content.items()}


def parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """`["kl_coef=1e-3", "+task=copy"]` → `{"kl_coef": 0.001, "task": "copy"}`.

    Raises:
        ConfigError: not of the form key=value, a value that is no YAML, or one key with two values.
    """
    values: dict[str, Any] = {}
    for text in overrides:
        key, sign, word = text.removeprefix("+").partition("=")
        key = key.strip()
        if not sign or not key:
            raise ConfigError(f"'{text}' is not of the form key=value.{_flag_hint(text)}")
        value = _parse_value(key, word)
        if key in values and values[key] != value:
            raise ConfigError(f"'{key}' is set twice: to {values[key]!r} and to {value!r}.")
        values[key] = value
    return values


def _parse_value(key: str, word: str) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        content = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={word}"]))
    except (YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(
            f"{key}={word} cannot be read: {' '.join(str(error).split())}. Lists are written [a, b], "
            "mappings {a: 1}; in a shell, put quotes around the whole."
        ) from error
    return content["value"]  # type: ignore[call-overload,index]


def canonical(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Settings by full path, from nested sections, dotted paths and short names in any mixture.

    Raises:
        ConfigError: unknown key, or one setting given twice with different values.
    """
    found: dict[str, Any] = {}

    def put(key: str, path: str, value: Any) -> None:
        value = _word(path, value)
        if path in found and found[path] != value:
            raise ConfigError(
                f"{origin}: '{key}' sets {path} to {value!r}, but it is already {found[path]!r}."
            )
        found[path] = value

    def walk(mapping: Mapping[str, Any], prefix: str) -> None:
        for name, value in mapping.items():
            key = f"{prefix}{name}"
            if isinstance(value, Mapping) and key in tree.sections():
                walk(value, f"{key}.")
            elif key in tree.leaves():
                put(key, key, value)
            elif prefix:
                raise ConfigError(f"{origin}: unknown key '{key}'.{nearest(key, tree.leaves())}")
            else:
                put(key, _path_of(key, origin), value)

    walk(values, "")
    return found


def _word(path: str, value: Any) -> Any:
    """`off` where it is one of the words to choose from; YAML reads it as false."""
    words = getattr(tree.leaves()[path].annotation, "__args__", ())
    return {False: "off", True: "on"}[value] if isinstance(value, bool) and "off" in words else value


def _path_of(key: str, origin: str) -> str:
    try:
        return catalog.by_name(key).path
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error


def _file_layers(source: str, seen: tuple[str, ...]) -> list[Layer]:
    if source in seen:
        raise ConfigError(f"'extends' goes round in a circle: {' → '.join([*seen, source])}.")
    content, origin, folder, inherited = _read_source(source)
    parent = content.pop("extends", None)
    if parent is not None and not isinstance(parent, str):
        raise ConfigError(f"{origin}: extends = {parent!r} must be the name of a recipe or a file.")
    below: list[Layer] = []
    if parent is not None:
        beside = folder / parent if folder else None
        below = _file_layers(str(beside) if beside and beside.is_file() else parent, (*seen, source))
    values = canonical(content, origin)
    complete = values.keys() >= tree.leaves().keys()  # written by `dump`, not by hand
    return [*below, Layer(origin, values, inherited or complete)]


def _read_source(source: str) -> tuple[dict[str, Any], str, Path | None, bool]:
    path = Path(source)
    if path.is_dir() and (path / "config.yaml").is_file():
        return read_yaml(path / "config.yaml"), str(path / "config.yaml"), path, True
    if path.is_file():
        return read_yaml(path), str(path), path.parent, False
    if source in recipes():
        with _packaged(source) as recipe:
            return read_yaml(recipe), f"recipe {source}", None, True
    raise ConfigError(
        f"'{source}' is neither a recipe, a YAML file nor the folder of a run.{nearest(source, recipes())} "
        f"Recipes: {', '.join(recipes())}."
    )


def _packaged(name: str) -> Any:
    from importlib.resources import as_file

    return as_file(_RECIPES.joinpath(f"{name}.yaml"))


def _override_layer(overrides: Sequence[str] | Mapping[str, Any]) -> Layer:
    values = dict(overrides) if isinstance(overrides, Mapping) else parse_overrides(overrides)
    return Layer("overrides", canonical(values, "overrides"))


def _flag_hint(text: str) -> str:
    word = text.lstrip("-").replace("-", "_")
    return f" Write {word}=VALUE." if catalog.is_lever(word) else ""


def _sizes(layer: Layer) -> dict[str, int]:
    """The batch sizes that `layer` sets, checked before any arithmetic."""
    sizes = {path: layer.values[path] for path in arithmetic.SIZES if path in layer.values}
    for path, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{layer.origin}: {path} = {value!r} must be {tree.allowed(path)}.")
    return sizes


def _files_replace_task(layers: Sequence[Layer], values: dict[str, Any]) -> None:
    """A user who names files does not have to switch the recipe's task off."""
    top = {path: n for n, layer in enumerate(layers) for path in layer.values if path.startswith("data.t")}
    if values.get("data.train_files") and top["data.train_files"] > top.get("data.task", -1):
        values["data.task"] = None


def _validate(values: dict[str, Any], origin: Mapping[str, str]) -> Config:
    try:
        return Config.model_validate(tree.nested(values))
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(item, origin) for item in error.errors())) from error


def _explain(item: Any, origin: Mapping[str, str]) -> str:
    parts = [str(part) for part in item["loc"]]
    while parts and ".".join(parts) not in tree.leaves():
        parts.pop()
    path = ".".join(parts)
    if not path:
        return f"{'.'.join(str(part) for part in item['loc'])} = {item['input']!r}: {item['msg']}."
    value = item["input"]
    hint = ""
    if isinstance(value, str) and _is_number(value):
        hint = " It is text here; write the number without quotes."
    return f"{origin.get(path, 'defaults')}: {path} = {value!r} must be {tree.allowed(path)}.{hint}"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _refuse_inert(loaded: Loaded) -> None:
    """A setting of the user that does nothing is an error; in a file, one that equals the default is not."""
    default = Config()
    for layer in loaded.layers:
        if layer.inherited:
            continue
        for path, value in layer.values.items():
            reason = combinations.inert(loaded.config, path)
            unchanged = layer.origin != "overrides" and value == tree.get(default, path)
            if reason and not unchanged:
                name = catalog.by_path(path).name
                raise ConfigError(
                    f"{layer.origin}: {name} = {value!r} would have no effect: {reason}. "
                    "Leave it out, or change that."
                )


def _refuse_learning_rate_of_the_embedded_policy(loaded: Loaded) -> None:
    config = loaded.config
    path = "actor.learning_rate"
    chosen_here = "model.path" in loaded.set_by_user and path not in loaded.set_by_user
    if (
        config.model.path != "embedded"
        and chosen_here
        and config.actor.learning_rate > _EMBEDDED_LEARNING_RATE
    ):
        raise ConfigError(
            f"model = {config.model.path} would be trained with actor_learning_rate = "
            f"{config.actor.learning_rate:g}, which the recipe chose for the small embedded policy. "
            "Set actor_learning_rate (pretrained models: about 1e-6), or start from the recipe grpo-llm."
        )
