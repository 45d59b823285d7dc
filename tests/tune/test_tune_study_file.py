from pathlib import Path
from typing import Any

import pytest

from leverl.errors import ConfigError
from leverl.tune.model import CONFIRM, RACE, SEARCH
from leverl.tune.plan import check_space_can_run, places, prepare
from leverl.tune.study_file import dump_study, load_study, studies

MINIMAL: dict[str, Any] = {
    "name": "s",
    "target": {"leverl": "grpo"},
    "space": {"ppo_epochs": [1, 2]},
    "budget": {"trials": 20},
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budgt": {}}, "unknown key 'budgt'. Did you mean 'budget'"),
        ({"budget": {"trial": 3}}, "unknown key 'budget.trial'. Did you mean 'trials'"),
        ({"target": {"verl": "x"}}, "unknown key 'target.verl'.*Known: leverl, set"),
        ({"target": {"leverl": "grop"}}, "Did you mean 'grpo'"),
        ({"target": {"leverl": "grpo", "set": {"stepss": 3}}}, "stepss"),
        ({"strategy": "bayesian"}, "unknown strategy 'bayesian'"),
        ({"objective": {"name": "eval/scor"}}, "Did you mean 'eval/score'"),
        ({"objective": {"goal": "maximise"}}, "objective.goal = 'maximise'"),
        ({"seeds": {"confirm": 0}}, "seeds.confirm = 0"),
        ({"budget": {}}, "needs an end: set budget.trials"),
        ({"budget": {"trials": 5}}, "budget.trials ≥ 14"),
        ({"budget": {"trials": "30"}}, "budget.trials = '30'"),
        ({"name": "a/b"}, "plain folder name"),
        ({"stopping": {"after": 1.5}}, "stopping.after = 1.5"),
        ({"seeds": {"confirm": 1}}, "seeds.confirm = 1"),
        ({"race": {"finalists": 9}}, "race.finalists = 9"),
        ({"metric": {"name": "eval/score"}}, "goal"),
        ({"parallel": 0}, "parallel = 0"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    content = {**MINIMAL, **changes}
    with pytest.raises(ConfigError, match=message):
        prepare(load_study(content), Path("s"))


def test_words_of_wandb_are_understood() -> None:
    study = load_study(
        {
            "name": "s",
            "target": {"leverl": "grpo"},
            "method": "random",
            "metric": {"name": "eval/score", "goal": "minimize"},
            "parameters": {
                "actor_learning_rate": {"distribution": "log_uniform_values", "min": 1e-5, "max": 1e-3}
            },
            "run_cap": 25,
        }
    )
    assert (study.strategy, study.maximize, study.budget.trials) == ("random", False, 25)
    axis = prepare(study, Path("s")).space.axes[0]
    assert (axis.log, axis.low, axis.high) == (True, 1e-5, 1e-3)


def test_two_words_for_one_thing() -> None:
    with pytest.raises(ConfigError, match="mean the same"):
        load_study({**MINIMAL, "parameters": {}})


def test_goal_is_maximize_unless_said() -> None:
    assert load_study({**MINIMAL, "objective": {"name": "eval/score"}}).maximize


def test_overrides_change_the_study_or_its_base() -> None:
    study = load_study(
        {**MINIMAL, "target": {"leverl": "grpo", "set": {"train.steps": 7}}},
        ["budget.trials=40", "seeds.confirm=4", "strategy=random", "steps=9", "kl_coef=0.01"],
        name="t",
    )
    assert (study.name, study.budget.trials, study.seeds.confirm, study.strategy) == ("t", 40, 4, "random")
    assert study.target.set == {"steps": 9, "kl_coef": 0.01}


def test_numbers_without_a_dot_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "lr.yaml"
    path.write_text(
        "target: {leverl: grpo}\nspace:\n  actor_learning_rate: {min: 1e-6, max: 1e-4, log: true}\n"
        "budget: {trials: 20, hours: 1}\n"
    )
    study = load_study(path)
    assert study.name == "lr"
    assert prepare(study, tmp_path).space.axes[0].low == 1e-6


def test_a_target_file_is_found_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("extends: grpo\nkl_coef: 0.02\n")
    path = tmp_path / "study.yaml"
    path.write_text("target: {leverl: base.yaml}\nspace: {ppo_epochs: [1, 2]}\nbudget: {trials: 20}\n")
    study = load_study(path)
    assert study.target.leverl == str(tmp_path / "base.yaml")
    assert prepare(study, tmp_path).backend.base.algorithm.kl_coef == 0.02


def test_a_dumped_study_is_the_same_study(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    for source in (MINIMAL, "demo"):
        study = load_study(source)
        path.write_text(dump_study(study))
        assert load_study(path) == study


def test_seeds_of_phases_and_studies_never_meet() -> None:
    seen: set[int] = set()
    for seed in (0, 1, 7):
        study = load_study(
            {
                **MINIMAL,
                "seed": seed,
                "seeds": {"search": 500, "race": 500, "confirm": 500},
                "budget": {"trials": 9999},
            }
        )
        for phase in (SEARCH, RACE, CONFIRM):
            seeds = study.seeds_of(phase)
            assert len(seeds) == (1000 if phase == CONFIRM else 500)
            assert not seen & set(seeds)
            seen |= set(seeds)


@pytest.mark.parametrize("name", studies())
def test_packaged_studies_work_out(name: str) -> None:
    study = load_study(name)
    plan = prepare(study, Path(name))
    check_space_can_run(plan)
    assert plan.strategy.planned(prepare_history(plan))[SEARCH] > 6


def prepare_history(plan: Any) -> Any:
    from leverl.tune.model import History

    return History((), plan.study.maximize)


def test_a_space_of_the_base_alone() -> None:
    plan = prepare(load_study({**MINIMAL, "space": {"ppo_epochs": [1]}}), Path("s"))
    with pytest.raises(ConfigError, match="nothing but the base"):
        check_space_can_run(plan)


def test_unknown_studies() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'demo'"):
        load_study("demoo")


def test_places() -> None:
    study = load_study({**MINIMAL, "parallel": 3})
    assert places(study, None) == 3
    assert places(study, 5) == 5
    assert 1 <= places(load_study(MINIMAL), None) <= 2
    with pytest.raises(ConfigError, match="at least 1"):
        places(study, 0)
