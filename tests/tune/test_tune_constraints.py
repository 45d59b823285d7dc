import math
import re

import pytest

from leverl.errors import ConfigError
from leverl.tune.space.constraints import MetricConstraint, parse_constraints


def bounds(text: str) -> list[tuple[str, str, float]]:
    conditions, found = parse_constraints([text])
    assert conditions == ()
    return [(bound.metric, bound.operator, bound.bound) for bound in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kl_divergence <= 0.1", [("kl_divergence", "<=", 0.1)]),
        ("eval/score >= 0.5", [("eval/score", ">=", 0.5)]),
        ("eval/score>0.5", [("eval/score", ">", 0.5)]),
        ("  0.1 >= kl_divergence ", [("kl_divergence", "<=", 0.1)]),
        ("0.01 <= kl_divergence < 0.1", [("kl_divergence", ">=", 0.01), ("kl_divergence", "<", 0.1)]),
        ("eval/score > -1.5e-3", [("eval/score", ">", -0.0015)]),
        ("reward_mean >= 1", [("critic/score/mean", ">=", 1.0)]),
        ("val-core/openai/gsm8k/acc/mean@8 > 0.3", [("val-core/openai/gsm8k/acc/mean@8", ">", 0.3)]),
        ("timing_s/step < 60", [("timing_s/step", "<", 60.0)]),
    ],
)
def test_bounds_on_metrics(text: str, expected: list[tuple[str, str, float]]) -> None:
    assert bounds(text) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("batch_size / group_size >= 4", {"batch_size", "group_size"}),
        ("batch_size/group_size >= 4", {"batch_size", "group_size"}),
        ("rollout.batch_size/group_size >= 4", {"rollout.batch_size", "group_size"}),
        ("2*batch_size/2/group_size >= 4", {"batch_size", "group_size"}),
        ("kl <= 0.1", {"kl"}),  # names a lever and a metric: the lever
        ("lr < 1e-3", {"lr"}),
    ],
)
def test_conditions_on_levers(text: str, names: set[str]) -> None:
    conditions, found = parse_constraints([text])
    assert found == ()
    assert conditions[0].names == names


def test_a_word_that_could_be_both_is_the_metric_unless_spaces_make_it_a_quotient() -> None:
    assert bounds("response_length/clip_ratio < 0.1") == [("response_length/clip_ratio", "<", 0.1)]
    conditions, _ = parse_constraints(["response_length / clip_ratio < 100"])
    assert conditions[0].names == {"response_length", "clip_ratio"}


def test_both_kinds_keep_their_order() -> None:
    conditions, found = parse_constraints(["ppo_epochs <= 2", "kl_divergence < 1", "batch_size >= 64"])
    assert [condition.text for condition in conditions] == ["ppo_epochs <= 2", "batch_size >= 64"]
    assert [bound.text for bound in found] == ["kl_divergence < 1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kl_divergence == 0.1", "never hits a number exactly"),
        ("kl_divergence <= kl_coef", "'kl_coef' is no number"),
        ("kl_divergence <= 2 * kl_coef", "is no number"),
        ("kl_divergence <= eval/score", "with too much"),
        ("kl_divergence < 0.1 < 0.2", "with too much"),
        ("kl_divergence <= inf", "not finite"),
        ("2 * kl_divergence <= 0.1", "kl_divergence is a metric. A metric stands alone"),
        ("eval/score > 0.5 and ppo_epochs < 3", "with too much"),
        ("ppo_epochs < 3 and eval/score > 0.5", "eval/score is a metric"),
        ("(eval/score) > 0.5", "eval/score is a metric"),
        (
            "eval/kl <= 0.1",
            "eval/kl is no metric, and eval no lever to divide. Did you mean 'kl_divergence'?",
        ),
        ("eval/scor > 0.1", "Did you mean 'eval/score'?"),
        ("batch_sise/group_size > 1", "batch_sise no lever to divide. Did you mean 'batch_size'?"),
        ("kl_cof <= 0.1", "unknown setting 'kl_cof'. Did you mean 'kl_coef'?"),
    ],
)
def test_wrong_constraints_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"constraint '{re.escape(text)}'.*{re.escape(message)}"):
        parse_constraints([text])


def test_a_bound_holds() -> None:
    bound = MetricConstraint("kl_divergence", "<=", 0.1, "kl_divergence <= 0.1")
    assert bound.holds(0.1)
    assert not bound.holds(0.11)
    assert not bound.holds(math.nan)
