"""A study made ready: base configuration, space and strategy, built from the study file alone."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from leverl.backends.leverl import create
from leverl.backends.protocol import Backend
from leverl.errors import ConfigError
from leverl.tune import strategy as strategies
from leverl.tune.fidelity import Fidelity
from leverl.tune.model import History, Run
from leverl.tune.space import space as spaces
from leverl.tune.space.space import Space
from leverl.tune.store.imported import prior_runs, read_imported
from leverl.tune.store.progress import Measure
from leverl.tune.strategy import Strategy
from leverl.tune.study import Study
from leverl.vocabulary.metrics import metric

DEFAULT_PARALLEL: Final = 2

_KL: Final = ("kl_divergence", "kl_divergence_k3")


@dataclass(frozen=True)
class Plan:
    """Everything the tuner needs to know before it starts."""

    study: Study
    folder: Path
    backend: Backend
    space: Space
    strategy: Strategy
    measure: Measure
    fidelity: Fidelity

    @property
    def steps(self) -> int:
        """Steps of a run of the base."""
        return self.fidelity.steps({})

    @property
    def budget_seconds(self) -> float | None:
        hours = self.study.budget.hours
        return None if hours is None else hours * 3600

    def settings(self, run: Run) -> Mapping[str, Any]:
        """What the tuner sets in each run: the seed, the length, and one checkpoint, at the end, for disks fill up."""
        fixed = {"seed": run.seed, "train.save_every": 0, "train.keep": 1}
        return {**self.fidelity.settings(run.params), **fixed}


def prepare(study: Study, folder: Path, backend: Backend | None = None) -> Plan:
    """Check the study against its base configuration; nothing is started or written.

    Raises:
        ConfigError: base, space, constraints or strategy do not work out.
    """
    backend = backend or create(study.target.leverl, study.target.set)
    space = spaces.build(study.space, study.constraints, backend.base, backend.resolve)
    data = backend.base.data
    if data.train_files and not data.eval_files:
        raise ConfigError(
            f"the study's base trains on {', '.join(data.train_files)} but has no held-out prompts, and a study "
            "compares held-out scores. Set data.eval_files in target.set."
        )
    _check_bounds(space, backend)
    fidelity = Fidelity(backend, study.fidelity)
    last_k = backend.base.evaluation.last_k
    imported = read_imported(folder)
    prior = () if imported is None else prior_runs(imported, space, maximize=study.maximize)
    strategy = strategies.build(study, space, fidelity.steps, last_k, prior)
    bounded = tuple(dict.fromkeys(constraint.metric for constraint in space.metric_constraints))
    measure = Measure(backend.reader, metric(study.objective.name).name, last_k, bounded)
    return Plan(study, folder, backend, space, strategy, measure, fidelity)


def _check_bounds(space: Space, backend: Backend) -> None:
    """KL against the reference is measured in every run only where the reference is always there."""
    for constraint in space.metric_constraints:
        if constraint.metric in _KL and backend.base.algorithm.reference != "always":
            raise ConfigError(
                f"constraint '{constraint.text}': runs without a KL penalty do not measure {constraint.metric}, so "
                "the bound could not be checked. Set reference: always in target.set."
            )


def check_space_can_run(plan: Plan) -> None:
    """Propose one configuration, so that a space without any ends here and not after the first run.

    Raises:
        ConfigError: nothing but the base can run.
    """
    if not plan.strategy.sampler.suggest(plan.space, History((), plan.study.maximize), 1):
        raise ConfigError("the space holds nothing but the base configuration: there is nothing to search.")


def places(study: Study, asked: int | None) -> int:
    """How many runs go side by side.

    Raises:
        ConfigError: less than one.
    """
    parallel = asked if asked is not None else study.parallel
    if parallel is None:
        return max(1, min(DEFAULT_PARALLEL, os.cpu_count() or 1))
    if parallel < 1:
        raise ConfigError(f"parallel = {parallel} must be at least 1.")
    return parallel
