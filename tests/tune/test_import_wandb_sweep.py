from pathlib import Path
from typing import Any

import pytest

from leverl.config.loader import read_yaml
from leverl.errors import ConfigError
from leverl.tune.importing.wandb_sweep import is_sweep, translate
from leverl.tune.plan import prepare
from leverl.tune.study_file import load_study

METRIC = {"name": "eval/score", "goal": "maximize"}

SWEEP = """
program: train.py
name: sweep
method: bayes
metric: {name: eval/score, goal: maximize, target: 0.9}
parameters:
  learning_rate: {distribution: log_uniform_values, min: 1e-6, max: 1e-4}
  kl_coef: {min: 0.01, max: 0.1}
  ppo_epochs: {min: 1, max: 4}
  mini_batch_size: {values: [64, 128]}
  temperature: {value: 0.9}
  dropout: {min: 0.0, max: 0.5}
early_terminate: {type: hyperband, min_iter: 3}
run_cap: 40
project: tests
"""


def parameter(word: str = "kl_coef", **content: Any) -> dict[str, Any]:
    return {"method": "random", "metric": METRIC, "parameters": {word: content}}


def space_of(content: dict[str, Any]) -> Any:
    (found,) = translate(content).study["space"].values()
    return found


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP)
    found = translate(read_yaml(path))
    assert found.study == {
        "name": "sweep",
        "target": {"leverl": "grpo", "set": {"temperature": 0.9}},
        "strategy": "bayes",
        "objective": {"name": "eval/score", "goal": "maximize"},
        "space": {
            "actor_learning_rate": {"min": 1e-6, "max": 1e-4, "log": True},
            "kl_coef": {"min": 0.01, "max": 0.1},
            "ppo_epochs": {"min": 1, "max": 4},
            "mini_batch_size": {"values": [64, 128]},
        },
        "budget": {"trials": 40},
    }
    left_out, notes = "\n".join(found.left_out), "\n".join(found.notes)
    for said in ("program:", "metric.target:", "parameter dropout: unknown", "min_iter = 3", "project:"):
        assert said in left_out
    for said in (
        "early_terminate:",
        "no target: the recipe grpo",
        "parameter learning_rate is actor_learning_rate",
    ):
        assert said in notes
    prepare(load_study(found.study), tmp_path / "study")  # a study that could start


def test_studies_are_told_from_sweeps() -> None:
    assert is_sweep({"method": "grid", "parameters": {}})
    assert is_sweep({"run_cap": 3})
    assert not is_sweep({"strategy": "grid", "space": {}, "name": "x"})


def test_our_words_beside_theirs_stay(tmp_path: Path) -> None:
    content = {
        **parameter(values=[0.1, 0.2]),
        "target": {"leverl": "rloo", "set": {"steps": 10}},
        "seeds": {"confirm": 4},
        "budget": {"hours": 2},
        "run_cap": 30,
    }
    found = translate(content)
    assert found.study["target"] == {"leverl": "rloo", "set": {"steps": 10}}
    assert found.study["seeds"] == {"confirm": 4}
    assert found.study["budget"] == {"hours": 2, "trials": 30}
    assert found.left_out == found.notes == ()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"min": 0.1, "max": 0.2}, {"min": 0.1, "max": 0.2}),
        ({"distribution": "uniform", "min": 0.1, "max": 0.2}, {"min": 0.1, "max": 0.2}),
        ({"distribution": "int_uniform", "min": 1, "max": 4}, {"min": 1, "max": 4}),
        ({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.1}, {"min": 0, "max": 1, "step": 0.1}),
        ({"distribution": "q_uniform", "min": 1, "max": 9}, {"min": 1, "max": 9, "step": 1}),
        ({"distribution": "q_uniform", "min": 10, "max": 100, "q": 16}, {"min": 16, "max": 96, "step": 16}),
        ({"distribution": "log_uniform_values", "min": 1e-4, "max": 0.1}, {"min": 1e-4, "max": 0.1, "log": True}),
        ({"distribution": "inv_log_uniform_values", "min": 1, "max": 9}, {"min": 1, "max": 9, "log": True}),
        ({"distribution": "log_uniform", "min": -9.21034, "max": -2.302585},
         {"min": pytest.approx(1e-4, rel=1e-5), "max": pytest.approx(0.1, rel=1e-5), "log": True}),
        ({"distribution": "q_log_uniform_values", "min": 1, "max": 64}, {"min": 1, "max": 64, "log": True}),
        ({"distribution": "q_log_uniform_values", "min": 16, "max": 64, "q": 16}, {"values": [16, 32, 48, 64]}),
        ({"distribution": "q_log_uniform_values", "min": 8, "max": 800, "q": 8}, {"min": 8, "max": 800, "log": True}),
        ({"distribution": "categorical", "values": [0.1, 0.2]}, {"values": [0.1, 0.2]}),
        ({"values": [0.1, 0.2], "probabilities": [0.3, 0.7]}, {"values": [0.1, 0.2]}),
    ],
)  # fmt: skip
def test_distributions(content: dict[str, Any], expected: dict[str, Any]) -> None:
    assert space_of(parameter(**content)) == expected


def test_constants_are_settings() -> None:
    content = parameter(values=[0.1, 0.2])
    content["parameters"] |= {"steps": {"value": 20}, "group_size": {"values": [4]}}
    assert translate(content).study["target"]["set"] == {"steps": 20, "group_size": 4}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"distribution": "normal", "mu": 0, "sigma": 1}, "distribution normal has no bounds"),
        ({"distribution": "q_beta", "a": 1, "b": 1}, "distribution q_beta has no bounds"),
        ({"distribution": "log_uniform_value", "min": 1, "max": 2}, "Did you mean 'log_uniform_values'?"),
        ({"parameters": {"a": {"value": 1}}}, "nested parameters have no counterpart"),
    ],
)
def test_what_has_no_counterpart_is_listed(content: dict[str, Any], reason: str) -> None:
    whole = parameter(values=[0.1, 0.2])
    whole["parameters"]["temperature"] = content
    found = translate(whole)
    assert list(found.study["space"]) == ["kl_coef"]
    assert any(line.startswith("parameter temperature:") and reason in line for line in found.left_out)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**parameter(values=[1]), "metric": {"name": "loss"}}, r"goal = None: write goal.*minimises"),
        ({**parameter(values=[1]), "metric": "loss"}, r"metric = 'loss' must hold name and goal"),
        ({**parameter(values=[1, 2]), "method": "bays"}, r"method = 'bays'.*Did you mean 'bayes'"),
        ({**parameter(values=[1, 2]), "strategy": "grid"}, r"'method' and 'strategy' mean the same"),
        ({**parameter(values=[1, 2]), "target": "grpo"}, r"target = 'grpo' must be"),
        (parameter(distribution="log_uniform", min=1e-6, max=1e-4), r"mean\s+1.000001 … 1.0001. Write log_uniform_v"),
        (parameter(min=1), r"kl_coef: max = None must be a number"),
        (parameter(distribution="uniform", min="1e-6", max=1), r"min = '1e-6' must be a number"),
        ({"method": "grid", "parameters": {}}, r"must name at least one parameter"),
        ({"method": "grid", "parameters": {"kl_coef": 3}}, r"kl_coef = 3 must hold value, values"),
        (parameter("dropout", min=0, max=1), r"none can be searched here.\nparameter dropout"),
        ({"method": "grid", "parameters": {"lr": {"min": 0, "max": 1}, "learning_rate": {"min": 0, "max": 1}}},
         r"learning_rate is actor_learning_rate, which is there already"),
    ],
)  # fmt: skip
def test_mistakes_are_refused(content: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        translate(content)
