"""leverl in Python: what the commands do, as functions."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leverl.config import loader
from leverl.errors import ConfigError
from leverl.record.layout import RunFolder
from leverl.record.naming import check_name, occupied, run_name, taken
from leverl.record.observer import Observer

if TYPE_CHECKING:
    from leverl.engine.train.evaluate import Evaluation
    from leverl.engine.train.run import Result
    from leverl.tune.model import StudyObserver, Winner

Overrides = Sequence[str] | Mapping[str, Any]

_ARTICLE_KEYS: Final = {"lr": "actor_learning_rate", "learning_rate": "actor_learning_rate"}
_PPO_OF_PRETRAINED: Final = {
    "extends": "grpo-llm",
    "algorithm": "ppo",
    "group_size": 1,
    "kl_in": "reward",
    "critic_learning_rate": 1e-5,
}


def train(
    config: str | Path | Mapping[str, Any] = "grpo",
    overrides: Overrides = (),
    *,
    name: str | None = None,
    out: str | Path = "runs",
    resume: bool = False,
    from_checkpoint: str | Path | None = None,
    clean: bool = False,
    observer: Observer | None = None,
) -> "Result":
    """Train a policy and return how the run ended.

    Args:
        config: a recipe ("grpo"), a YAML file, a run's folder, or a mapping of settings (which may hold
            `extends`). With `resume`, the folder of the run to go on with.
        overrides: `["kl_coef=0.01"]` or `{"kl_coef": 0.01}`; short names or full paths.
        name, out: the run's folder is `out/name`; a name is made up when none is given.
        resume: go on from the last checkpoint, exactly.
        from_checkpoint: fork: go on from this checkpoint (or run) with `overrides`, in a new folder.
        clean: remove a run of the same name first.

    Raises:
        ConfigError: wrong configuration, or the folder holds a run already.
        EnvironmentProblem: a missing extra, no space.
    """
    from leverl.engine.train import run

    if resume:
        if overrides:
            raise ConfigError(
                "a resumed run keeps its configuration. To change levers, fork it: from_checkpoint=… "
                "(--from)."
            )
        return run.resume(Path(str(config)), observer=observer)
    if from_checkpoint is not None:
        changes = overrides if isinstance(overrides, Mapping) else loader.parse_overrides(overrides)
        prepared = run.prepare_fork(Path(from_checkpoint), changes)
        folder = _new_folder(Path(out), name or run_name(prepared.loaded.config), clean)
        return run.fork(prepared, folder, observer=observer)
    loaded = load_config(config, overrides)
    folder = _new_folder(Path(out), name or run_name(loaded.config), clean)
    return run.start(loaded, folder, observer=observer)


def load_config(config: str | Path | Mapping[str, Any], overrides: Overrides = ()) -> loader.Loaded:
    """The checked configuration that `train` would use."""
    if isinstance(config, Mapping):
        settings = dict(config)
        base = str(settings.pop("extends", "grpo"))
        more = overrides if isinstance(overrides, Mapping) else loader.parse_overrides(overrides)
        return loader.load(base, {**settings, **more})
    return loader.load(config, overrides)


def evaluate(
    model: str | Path,
    config: str | Path | Mapping[str, Any] = "grpo",
    overrides: Overrides = (),
    *,
    samples: int | None = None,
    seed: int = 0,
) -> "Evaluation":
    """Score a model on the held-out prompts of a configuration.

    Args:
        model: a checkpoint, a run's folder (its last checkpoint and its own configuration), or a path or name
            of a Hugging Face model.
        samples: responses per prompt; needs `eval_temperature` > 0 when above 1.
    """
    from leverl.engine.train.evaluate import evaluate_model

    if RunFolder(Path(model)).exists() and config == "grpo":
        config = Path(model)
    loaded = load_config(config, overrides)
    return evaluate_model(model, loaded.config, samples=samples, seed=seed)


def tune(
    study: str | Path | Mapping[str, Any],
    overrides: Overrides = (),
    *,
    name: str | None = None,
    out: str | Path = "studies",
    resume: bool = False,
    clean: bool = False,
    parallel: int | None = None,
    retry_failed: bool = False,
    observer: "StudyObserver | None" = None,
) -> "Winner":
    """Search the levers of a study within its budget, prove the winner on fresh seeds, write the report.

    Args:
        study: a packaged study ("demo"), a study file, or a mapping. With `resume`, the study's folder.
        overrides: settings on top of the study's base configuration.
        parallel: runs side by side.
        retry_failed: with `resume`, run failed runs again.
    """
    from leverl.report.study_page import report_study
    from leverl.tune.run_study import run_study

    winner = run_study(
        study,
        overrides,
        name=name,
        out=Path(out),
        resume=resume,
        clean=clean,
        parallel=parallel,
        retry_failed=retry_failed,
        observer=observer,
    )
    report_study(winner.best_yaml.parent)
    return winner


def train_with_verl(config: Mapping[str, Any], **settings: Any) -> float:
    """The function that tuning recipes written for verl call: configuration in, score out.

    Takes the short keys such recipes use (`model`, `lr`, `kl_coef`, `ppo_epochs`, `batch_size`, `save_path`)
    and trains with leverl's own engine, with PPO: for the embedded model by the recipe `ppo`, for any other by
    `grpo-llm` made PPO. `settings` are further settings of the run; both win over the recipe.

    Returns:
        The held-out score of the run: mean of its last evaluations.

    Raises:
        ConfigError: a key is unknown, given twice or impossible, or a run lies at `save_path` already.
        TrainingFailed: the run ended without a score.
    """
    from leverl.errors import TrainingFailed

    wanted: dict[str, Any] = {}
    for key, value in (*config.items(), *settings.items()):
        name = _ARTICLE_KEYS.get(key, key)
        if name in wanted:
            raise ConfigError(f"train_with_verl: '{key}' is given twice: {wanted[name]!r} and {value!r}.")
        wanted[name] = value
    folder = Path(str(wanted.pop("save_path"))) if "save_path" in wanted else None
    embedded = wanted.get("model", "embedded") == "embedded"
    result = train(
        {"extends": "ppo", **wanted} if embedded else {**_PPO_OF_PRETRAINED, **wanted},
        name=folder.name if folder else None,
        out=folder.parent if folder else "runs",
    )
    if result.score is None:
        trouble = result.record.message or "it had no held-out prompts (set eval_files)."
        raise TrainingFailed(f"{result.folder} has no score ({result.outcome}): {trouble}")
    return result.score.mean


def _new_folder(out: Path, name: str, clean: bool) -> Path:
    folder = out / check_name(name)
    if clean and RunFolder(folder).exists():
        shutil.rmtree(folder)
    if occupied(folder):
        raise ConfigError(taken(folder, "train"))
    return folder
