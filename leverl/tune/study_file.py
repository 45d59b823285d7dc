"""Reads a study file (`study.yaml`): unknown words and impossible numbers end here."""

from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from leverl.config import loader
from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.importing.wandb_sweep import Translation, is_sweep, translate
from leverl.tune.study import Budget, Study
from leverl.vocabulary import catalog

_PACKAGED: Final = files("leverl.tune").joinpath("studies")

_PARTS: Final = tuple(
    name
    for name, field in Study.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel) and name != "target"
)


def studies() -> list[str]:
    """Names of the packaged studies."""
    return sorted(
        entry.name.removesuffix(".yaml") for entry in _PACKAGED.iterdir() if entry.name.endswith(".yaml")
    )


def load_study(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] | Mapping[str, Any] = (),
    name: str | None = None,
) -> Study:
    """The study `source` (packaged name, YAML file or mapping) with overrides.

    An override of a part of the study (`budget.trials=20`, `strategy=random`) changes the study; every other
    one is a setting of the base configuration (`steps=100`).

    Raises:
        ConfigError: unknown key (names the nearest), wrong type or value, or no such study.
    """
    content, origin, beside = _read(source)
    if is_sweep(content):
        content = translate(content).study
    content.setdefault("name", Path(str(source)).stem if not isinstance(source, Mapping) else "study")
    if name is not None:
        content["name"] = name
    changes = overrides if isinstance(overrides, Mapping) else loader.parse_overrides(overrides)
    study = _validate(_apply(content, changes), origin)
    _check(study, origin)
    return _with_absolute_target(study, beside)


def dump_study(study: Study) -> str:
    """`study` as YAML that `load_study` accepts, every setting written out."""
    import yaml

    return yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _read(source: str | Path | Mapping[str, Any]) -> tuple[dict[str, Any], str, Path]:
    if isinstance(source, Mapping):
        return dict(source), "study", Path.cwd()
    path = Path(source)
    if path.is_file():
        return loader.read_yaml(path), str(path), path.parent
    if str(source) in studies():
        with as_file(_PACKAGED.joinpath(f"{source}.yaml")) as packaged:
            return loader.read_yaml(packaged), f"study {source}", Path.cwd()
    raise ConfigError(
        f"'{source}' is neither a packaged study nor a YAML file.{nearest(str(source), studies())} "
        f"Packaged: {', '.join(studies())}."
    )


def sweep_translation(source: str | Path | Mapping[str, Any]) -> Translation | None:
    """What became of a W&B sweep file, for people; None for a study of our own words.

    Raises:
        ConfigError: the file cannot be read, or means nothing here.
    """
    content, _, _ = _read(source)
    return translate(content) if is_sweep(content) else None


def _apply(content: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`content` with overrides of the study itself and of its base configuration."""
    merged = dict(content)
    settings: dict[str, Any] = {}
    for key, value in changes.items():
        part, _, field = str(key).partition(".")
        if part in _PARTS and field:
            merged[part] = {**(merged.get(part) or {}), field: value}
        elif not field and part in Study.model_fields:
            merged[part] = value
        else:
            settings[str(key)] = value
    if settings and isinstance(merged.get("target"), Mapping):
        present = {catalog.by_name(word).name: value for word, value in _set_of(merged["target"]).items()}
        added = {catalog.by_name(word).name: value for word, value in settings.items()}
        merged["target"] = {**merged["target"], "set": present | added}
    return merged


def _set_of(target: Mapping[str, Any]) -> Mapping[str, Any]:
    given = target.get("set") or {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"target.set = {given!r} must hold `lever: value` lines.")
    return given


def _by_lever(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {catalog.by_name(word).name: value for word, value in settings.items()}


def _validate(content: Mapping[str, Any], origin: str) -> Study:
    try:
        return Study.model_validate(content)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(item, origin) for item in error.errors())) from error


def _explain(item: Any, origin: str) -> str:
    path = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = _fields(item["loc"][:-1])
        hint = nearest(str(item["loc"][-1]), known)
        return f"{origin}: unknown key '{path}'.{hint} Known: {', '.join(known)}."
    if item["type"] == "missing":
        return f"{origin}: '{path}' is missing."
    return f"{origin}: {path} = {item['input']!r}: {item['msg'][:1].lower()}{item['msg'][1:]}."


def _fields(location: Sequence[int | str]) -> list[str]:
    model: type[BaseModel] = Study
    for part in location:
        annotation = model.model_fields[str(part)].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return list(model.model_fields)


def _check(study: Study, origin: str) -> None:
    from leverl.record.naming import check_name
    from leverl.tune.sampling import check_sampler
    from leverl.vocabulary.metrics import metric

    check_name(study.name)
    metric(study.objective.name)
    check_sampler(study.sampler)
    if study.sampler != "grid" and not study.budget.limited:
        raise ConfigError(
            f"{origin}: strategy {study.strategy} needs an end: set budget.trials, or another budget "
            f"({', '.join(Budget.model_fields)})."
        )
    if study.seeds.search > 1 and study.seeds.duplicates is not None:
        raise ConfigError(
            f"{origin}: seeds.duplicates = {study.seeds.duplicates} has no effect with seeds.search = "
            f"{study.seeds.search}: every configuration has several seeds. Leave it out."
        )
    _check_size(study, origin)


def _check_size(study: Study, origin: str) -> None:
    """A budget of runs has to hold the proof and a search worth the name."""
    runs, least = study.search_runs, 2 * study.seeds.search
    if runs is None or runs >= least:
        return
    proof = study.confirm_runs + (2 if study.race.finalists > 1 else 0)
    raise ConfigError(
        f"{origin}: budget.trials = {study.budget.trials} is too small. It counts the runs of all phases: 2 × "
        f"{study.seeds.confirm} for confirmation (winner and base × seeds.confirm), at least 2 for the race, and "
        f"{least} for a search of the base and one configuration. Set budget.trials ≥ {proof + least}, "
        "or fewer seeds."
    )


def _with_absolute_target(study: Study, beside: Path) -> Study:
    """A target file is named from the study file's folder; in the study's folder it needs its full path."""
    source = study.target.leverl
    if source in loader.recipes():
        return study
    path = beside / source if (beside / source).exists() else Path(source)
    if not path.exists():
        raise ConfigError(
            f"target: leverl: '{source}' is neither a recipe nor a file.{nearest(source, loader.recipes())} "
            f"Recipes: {', '.join(loader.recipes())}."
        )
    return study.model_copy(
        update={"target": study.target.model_copy(update={"leverl": str(path.resolve())})}
    )
