import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState, create_trial

from leverl.backends.leverl import create
from leverl.errors import ConfigError, EnvironmentProblem
from leverl.record.run_record import Outcome
from leverl.tune.importing.optuna import read_optuna
from leverl.tune.importing.words import lever_called
from leverl.tune.model import History
from leverl.tune.samplers import _told
from leverl.tune.space.space import Space, build
from leverl.tune.store.imported import (
    IMPORT,
    IMPORTED,
    Imported,
    ImportedTrial,
    prior_runs,
    read_imported,
    write_imported,
)
from leverl.tune.surrogate.from_history import measurements

RATE = FloatDistribution(1e-6, 1e-3, log=True)
EPOCHS = IntDistribution(1, 4)


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def trial(
    value: float | None = None,
    state: TrialState = TrialState.COMPLETE,
    distributions: dict[str, BaseDistribution] | None = None,
    **params: Any,
) -> FrozenTrial:
    known = {"lr": RATE, "ppo_epochs": EPOCHS} | (distributions or {})
    return create_trial(
        state=state, value=value, params=params, distributions={name: known[name] for name in params}
    )


def store(path: Path, *trials: FrozenTrial, name: str = "old", **options: Any) -> str:
    """The URL of a database with a study of these trials."""
    url = f"sqlite:///{path / 'old.db'}"
    storage = optuna.storages.RDBStorage(url)
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        **({"direction": "maximize"} if "directions" not in options else options),
    )
    study.add_trials(trials)
    storage.remove_session()
    storage.engine.dispose()
    return url


def space_of(**content: Any) -> Space:
    backend = create("grpo", {})
    return build(content, (), backend.base, backend.resolve)


def test_complete_trials_become_scores_and_failed_ones_facts(tmp_path: Path) -> None:
    url = store(
        tmp_path,
        trial(0.5, lr=1e-5, ppo_epochs=1),
        trial(state=TrialState.FAIL, lr=1e-4, ppo_epochs=2),
        trial(0.6, lr=1e-5),
    )
    found = read_optuna(url)
    assert (found.study, found.maximize, found.left_out) == ("old", True, ())
    assert found.trials == (
        ImportedTrial(0, {"actor_learning_rate": 1e-5, "ppo_epochs": 1}, 0.5),
        ImportedTrial(
            1, {"actor_learning_rate": 1e-4, "ppo_epochs": 2}, None, "failed in the imported study"
        ),
        ImportedTrial(2, {"actor_learning_rate": 1e-5}, 0.6),
    )
    assert found.space == {
        "actor_learning_rate": {"min": 1e-6, "max": 1e-3, "log": True},
        "ppo_epochs": {"min": 1, "max": 4},
    }
    assert found.names == {"lr": "actor_learning_rate", "ppo_epochs": "ppo_epochs"}


def test_what_does_not_fit_is_listed_with_the_reason(tmp_path: Path) -> None:
    broken = trial(0.4, lr=1e-5)
    broken.set_constraint("memory", 1.0)
    others: dict[str, BaseDistribution] = {
        "dropout": FloatDistribution(0, 1),
        "ppo_mini_batch_size": IntDistribution(8, 64),
        "steps": IntDistribution(10, 90),
        "actor_learning_rate": RATE,
        "clip_grad": FloatDistribution(0.1, 2),
        "temperature": CategoricalDistribution([0.7, None]),
    }
    odd = trial(0.5, None or TrialState.COMPLETE, others, **{
        "lr": 1e-5, "dropout": 0.1, "ppo_mini_batch_size": 16, "steps": 50, "actor_learning_rate": 1e-4,
        "clip_grad": 1.0, "temperature": 0.7,
    })  # fmt: skip
    url = store(
        tmp_path,
        odd,
        trial(state=TrialState.PRUNED, lr=1e-5),
        trial(state=TrialState.PRUNED, lr=1e-5),
        trial(state=TrialState.RUNNING, lr=1e-5),
        trial(float("inf"), lr=1e-5),
        broken,
        trial(0.3, distributions=others, dropout=0.2),
    )
    found = read_optuna(url)
    assert [one.number for one in found.trials] == [0, 5]
    text = "\n".join(found.left_out)
    for reason in (
        "parameter dropout: unknown setting 'dropout'",
        "parameter ppo_mini_batch_size: counts prompts",
        "parameter steps: steps cannot be searched",
        "parameter actor_learning_rate: is actor_learning_rate, which another parameter is already",
        "parameter clip_grad: could be actor_grad_clip or critic_grad_clip",
        "parameter temperature: temperature: None cannot be searched",
        "2 trials (1, 2): pruned",
        "trial 3: running",
        "trial 4: value inf is not finite",
        "trial 5: broke a constraint",
        "trial 6: none of the parameters",
        "stays in the values of the trials, as noise",
    ):
        assert reason in text


def test_ranges_steps_choices_and_constants(tmp_path: Path) -> None:
    distributions: dict[str, BaseDistribution] = {
        "kl_coef": FloatDistribution(0, 0.1, step=0.02),
        "mini_batch_size": IntDistribution(64, 256, step=64),
        "algorithm": CategoricalDistribution(["grpo", "rloo"]),
        "group_size": CategoricalDistribution([4]),
        "temperature": FloatDistribution(0.9, 0.9),
    }
    url = store(
        tmp_path,
        trial(0.1, TrialState.COMPLETE, distributions, kl_coef=0.04, mini_batch_size=128, algorithm="rloo",
              group_size=4, temperature=0.9),
    )  # fmt: skip
    found = read_optuna(url)
    assert found.space == {
        "kl_coef": {"min": 0.0, "max": 0.1, "step": 0.02},
        "mini_batch_size": {"min": 64, "max": 256, "step": 64},
        "algorithm": {"values": ["grpo", "rloo"]},
    }
    assert found.fixed == {"group_size": 4, "temperature": 0.9}
    assert space_of(**found.space).fill(found.trials[0].params) is not None


def test_ranges_that_moved_are_joined(tmp_path: Path) -> None:
    wide, low = FloatDistribution(1e-5, 1e-2, log=True), FloatDistribution(1e-7, 1e-5, log=True)
    url = store(
        tmp_path,
        trial(0.1, distributions={"lr": wide}, lr=1e-3),
        trial(0.2, distributions={"lr": low}, lr=1e-6),
    )
    assert read_optuna(url).space == {"actor_learning_rate": {"min": 1e-7, "max": 1e-2, "log": True}}
    steps, other = FloatDistribution(0, 0.1, step=0.02), FloatDistribution(0, 0.1, step=0.05)
    url = store(
        tmp_path,
        trial(0.1, distributions={"kl_coef": steps}, kl_coef=0.04, ppo_epochs=1),
        trial(0.2, distributions={"kl_coef": other}, kl_coef=0.05, ppo_epochs=1),
        name="two",
    )
    assert (
        "parameter kl_coef: its ranges differ in scale or step between trials."
        in read_optuna(url, "two").left_out
    )


def test_storages_and_studies_that_are_not_there(tmp_path: Path) -> None:
    url = store(tmp_path, trial(0.5, lr=1e-5))
    store(tmp_path, trial(0.5, lr=1e-5), name="older")
    store(tmp_path, name="two goals", directions=["minimize", "maximize"])
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
        connection.commit()
    text = tmp_path / "text.txt"
    text.write_text("hello\nworld\n")
    before = other.read_bytes()
    for storage, name, said in (
        (url, None, r"holds 3 studies. Choose one with --study: old, older, two goals"),
        (url, "odl", r"no study 'odl'. Did you mean 'old'\? It holds: old, older"),
        (url, "two goals", r"has 2 objectives \(minimize, maximize\)"),
        (f"sqlite:///{tmp_path}/none.db", None, r"there is no file .*none.db"),
        (f"sqlite:///{text}", None, r"is no SQLite database"),
        (str(other), None, r"holds no studies of Optuna \(its tables: notes\)"),
        (str(text), None, r"neither an SQLite database nor a journal"),
        ("nothing", None, r"neither a file nor a URL"),
        ("://", None, r"is no URL of a database"),
    ):
        with pytest.raises(ConfigError, match=said):
            read_optuna(storage, name)
    assert not (tmp_path / "none.db").exists()
    assert other.read_bytes() == before  # nothing is created in a database of somebody else
    with pytest.raises(EnvironmentProblem, match=r"driver for mysql://me:\*\*\*@host/db is missing"):
        read_optuna("mysql://me:secret@host/db")


def test_a_study_without_anything_that_fits_is_refused(tmp_path: Path) -> None:
    url = store(tmp_path, trial(0.5, distributions={"dropout": FloatDistribution(0, 1)}, dropout=0.5))
    with pytest.raises(ConfigError, match=r"no parameter of study 'old' can be searched.*\n.*dropout"):
        read_optuna(url)
    with pytest.raises(ConfigError, match="has no trials with parameters"):
        read_optuna(store(tmp_path, name="empty"), "empty")


def test_the_imported_database_is_not_changed(tmp_path: Path) -> None:
    url = store(tmp_path, trial(0.5, lr=1e-5))
    before = (tmp_path / "old.db").read_bytes()
    (tmp_path / "old.db").chmod(0o444)
    read_optuna(url)
    assert (tmp_path / "old.db").read_bytes() == before


def test_journals_are_read(tmp_path: Path) -> None:
    path = tmp_path / "old.log"
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(JournalFileBackend(str(path))), study_name="j"
    )
    study.add_trial(trial(0.5, lr=1e-5))
    found = read_optuna(str(path))
    assert (found.study, found.maximize, len(found.trials)) == ("j", False, 1)


@pytest.mark.parametrize(
    ("word", "lever"),
    [
        ("lr", "actor_learning_rate"),
        ("algorithm.kl_coef", "kl_coef"),
        ("actor_rollout_ref.actor.optim.lr", "actor_learning_rate"),
        ("+actor_rollout_ref.actor.clip_ratio_c", "dual_clip"),
        ("adv_estimator", "algorithm"),
    ],
)
def test_levers_are_known_by_names_aliases_paths_and_keys_of_verl(word: str, lever: str) -> None:
    assert lever_called(word).name == lever


def imported(**changes: Any) -> Imported:
    trials = (
        ImportedTrial(0, {"actor_learning_rate": 1e-5, "ppo_epochs": 1}, 0.5),
        ImportedTrial(1, {"actor_learning_rate": 1e-5, "ppo_epochs": 1}, 0.6),
        ImportedTrial(
            2, {"actor_learning_rate": 1e-4, "ppo_epochs": 2}, None, "failed in the imported study"
        ),
        ImportedTrial(3, {"actor_learning_rate": 0.5, "ppo_epochs": 1}, 0.9),
    )
    return Imported(**{"source": "old.db", "study": "old", "maximize": True, "trials": trials, **changes})


def test_what_was_written_is_read(tmp_path: Path) -> None:
    content = imported(left_out=("trial 7: running",), fixed={"group_size": 4}, names={"lr": "x"})
    assert read_imported(tmp_path) is None
    write_imported(tmp_path, content)
    assert read_imported(tmp_path) == content
    (tmp_path / IMPORTED).write_text(json.dumps({"source": "x"}))
    with pytest.raises(ConfigError, match=r"imported.json cannot be read.*delete the file"):
        read_imported(tmp_path)


def test_imported_trials_are_prior_runs_of_a_phase_of_their_own() -> None:
    space = space_of(actor_learning_rate={"min": 1e-6, "max": 1e-3, "log": True}, ppo_epochs=[1, 2])
    runs = prior_runs(imported(), space, maximize=True)
    assert [(run.run.config_id, run.run.phase, run.run.seed) for run in runs] == [
        ("i000", IMPORT, -1),
        ("i000", IMPORT, -1),
        ("i001", IMPORT, -1),
    ]  # fmt: skip - the trial outside the range is not there
    assert [run.score and run.score.mean for run in runs] == [0.5, 0.6, None]
    assert runs[2].outcome is Outcome.CRASHED
    assert runs[0].run.params == {"actor_learning_rate": 1e-5, "ppo_epochs": 1}


def test_samplers_take_prior_runs_as_knowledge() -> None:
    space = space_of(actor_learning_rate={"min": 1e-6, "max": 1e-3, "log": True}, ppo_epochs=[1, 2])
    history = History(prior_runs(imported(), space, maximize=True))
    found = [(one.value, one.state, one.cost) for one in measurements(space, history)]
    assert found == [(0.5, "finished", None), (0.6, "finished", None), (None, "failed", None)]
    told = _told.told(space, history)
    assert [(one.value, one.infeasible) for one in told] == [(pytest.approx(0.55), False), (None, True)]


def test_levers_that_are_not_searched_any_more_are_dropped() -> None:
    runs = prior_runs(imported(), space_of(ppo_epochs=[1, 2]), maximize=True)
    assert [dict(run.run.params) for run in runs] == [{"ppo_epochs": n} for n in (1, 1, 2, 1)]
    assert prior_runs(imported(), space_of(kl_coef=[0.1, 0.2]), maximize=True) == ()


def test_an_opposite_goal_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"had goal maximize, and objective.goal is minimize"):
        prior_runs(imported(), space_of(ppo_epochs=[1, 2]), maximize=False)
