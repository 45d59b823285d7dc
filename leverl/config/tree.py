"""Access to the schema and to configurations by path (`algorithm.kl_coef`)."""

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from leverl.config.schema import Config


@cache
def leaves() -> dict[str, FieldInfo]:
    """Every setting: path → its pydantic field, in the order of the schema."""
    found: dict[str, FieldInfo] = {}

    def walk(model: type[BaseModel], prefix: str) -> None:
        for name, field in model.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                walk(field.annotation, f"{prefix}{name}.")
            else:
                found[f"{prefix}{name}"] = field

    walk(Config, "")
    return found


@cache
def sections() -> frozenset[str]:
    """Paths that are groups of settings (`algorithm`, `model.embedded`)."""
    return frozenset(path.rsplit(".", 1)[0] for path in leaves() if "." in path) | {"model"}


def get(config: Config, path: str) -> Any:
    """The value at `path`."""
    value: Any = config
    for part in path.split("."):
        value = getattr(value, part)
    return value


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """`{"a.b": 1}` → `{"a": {"b": 1}}`."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        *parents, name = path.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return tree


def flat(config: Config) -> dict[str, Any]:
    """Every setting of `config` by path."""
    return {path: get(config, path) for path in leaves()}


def allowed(path: str) -> str:
    """What the setting at `path` accepts, in words."""
    field = leaves()[path]
    bounds = []
    for item in field.metadata:
        for attribute, sign in (
            ("ge", "≥"),
            ("gt", ">"),
            ("le", "≤"),
            ("lt", "<"),
            ("multiple_of", "multiple of"),
        ):
            bound = getattr(item, attribute, None)
            if bound is not None:
                bounds.append(f"{sign} {bound}")
    return ", ".join([_type_words(field.annotation), *bounds])


def _type_words(annotation: Any) -> str:
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    if annotation in words:
        return words[annotation]
    arguments = getattr(annotation, "__args__", ())
    if arguments and all(isinstance(argument, str) for argument in arguments):
        return "one of " + ", ".join(arguments)
    if type(None) in arguments:
        rest = [argument for argument in arguments if argument is not type(None)]
        return f"{_type_words(rest[0])} or null"
    if getattr(annotation, "__origin__", None) is list:
        return "a list of texts"
    return "a mapping"
