"""What a study file says (`study.yaml`), checked: unknown words and impossible numbers end here."""

from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leverl.config import loader
from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.tune.model import CONFIRM, SEARCH, SELECT
from leverl.vocabulary import catalog

_PACKAGED: Final = files("leverl.tune").joinpath("studies")

_SYNONYMS: Final = {"method": "strategy", "parameters": "space", "metric": "objective"}
"""Words of W&B sweeps."""

_FIRST_SEED: Final = {SEARCH: 1000, SELECT: 2000, CONFIRM: 3000}
_SEEDS_PER_STUDY_SEED: Final = 10_000
_MOST_SEEDS: Final = 500


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Target(_Part):
    """What is trained: a recipe or configuration file, and settings on top of it."""

    leverl: str
    set: dict[str, Any] = {}


class Objective(_Part):
    """What is optimised: a metric of held-out evaluation, as the mean of its last values."""

    name: str = "eval/score"
    goal: Literal["maximize", "minimize"] = "maximize"


class Seeds(_Part):
    """How many seeds a configuration gets in each phase."""

    search: int = Field(1, ge=1, le=_MOST_SEEDS)
    select: int = Field(2, ge=1, le=_MOST_SEEDS)
    confirm: int = Field(3, ge=1, le=_MOST_SEEDS)


class Budget(_Part):
    """How much may be spent: runs of all phases together, and hours of wall time."""

    trials: int | None = Field(None, ge=1)
    hours: float | None = Field(None, gt=0)


class Study(_Part):
    """A study: base configuration, space, strategy and budget."""

    name: str
    target: Target
    strategy: Literal["grid", "random", "bayes"] = "bayes"
    objective: Objective = Objective()
    space: dict[str, Any]
    constraints: list[str] = []
    seeds: Seeds = Seeds()
    budget: Budget = Budget()
    parallel: int | None = Field(None, ge=1)
    top_k: int = Field(3, ge=1)
    seed: int = Field(0, ge=0)

    @property
    def maximize(self) -> bool:
        return self.objective.goal == "maximize"

    def seeds_of(self, phase: str) -> tuple[int, ...]:
        """The seeds of a phase. Those of different phases, and of studies with another seed, never meet."""
        count = {SEARCH: self.seeds.search, SELECT: self.seeds.select, CONFIRM: self.seeds.confirm}[phase]
        first = self.seed * _SEEDS_PER_STUDY_SEED + _FIRST_SEED[phase]
        return tuple(range(first, first + count))

    @property
    def reserved_runs(self) -> int:
        """Runs that selection and confirmation take at most."""
        return self.top_k * self.seeds.select + 2 * self.seeds.confirm

    @property
    def search_runs(self) -> int | None:
        """Runs that the search may start; None when only hours, or the grid, end it."""
        if self.budget.trials is None:
            return None
        return (self.budget.trials - self.reserved_runs) // self.seeds.search * self.seeds.search


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
    content = _translate(content, origin)
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


def _translate(content: dict[str, Any], origin: str) -> dict[str, Any]:
    """Without the words of W&B sweeps."""
    if "early_terminate" in content:
        raise ConfigError(f"{origin}: early_terminate: runs are not stopped early here; leave it out.")
    metric = content.get("metric")
    if isinstance(metric, Mapping) and "goal" not in metric:
        raise ConfigError(
            f"{origin}: metric without goal means minimize in W&B and maximize here. "
            "Write goal: maximize or goal: minimize."
        )
    found: dict[str, Any] = {}
    for key, value in content.items():
        name = _SYNONYMS.get(key, key)
        if key == "run_cap":
            name, value = "budget", {**(content.get("budget") or {}), "trials": value}
        elif key == "budget" and "run_cap" in content:
            continue
        if name in found:
            raise ConfigError(f"{origin}: '{key}' and another word for {name} are both given.")
        found[name] = value
    return found


def _apply(content: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`content` with overrides of the study itself and of its base configuration."""
    merged = dict(content)
    settings: dict[str, Any] = {}
    for key, value in changes.items():
        part, _, field = str(key).partition(".")
        if part in ("seeds", "budget", "objective") and field:
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
    from leverl.vocabulary.metrics import metric

    check_name(study.name)
    metric(study.objective.name)
    if study.strategy != "grid" and study.budget.trials is None and study.budget.hours is None:
        raise ConfigError(
            f"{origin}: strategy {study.strategy} needs an end: set budget.trials or budget.hours."
        )
    least = 2 * study.seeds.search
    if study.search_runs is not None and study.search_runs < least:
        raise ConfigError(
            f"{origin}: budget.trials = {study.budget.trials} is too small. It counts the runs of all phases: "
            f"up to {study.top_k} × {study.seeds.select} for selection (top_k × seeds.select), 2 × "
            f"{study.seeds.confirm} for confirmation (winner and base × seeds.confirm), and {least} for a search "
            f"of the base and one configuration. Set budget.trials ≥ {study.reserved_runs + least}, "
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
