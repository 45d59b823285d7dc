"""The algorithms as data."""

import re

import pytest

from leverl.engine.algo.specs import ALGORITHMS


def test_names_are_keys() -> None:
    assert list(ALGORITHMS) == ["grpo", "rloo", "ppo"]
    assert all(spec.name == name for name, spec in ALGORITHMS.items())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_names_its_source_and_what_that_leaves_open(name: str) -> None:
    assert re.search(r"arXiv:\d{4}\.\d{5}", ALGORITHMS[name].citation)
    assert ALGORITHMS[name].unspecified


def test_needs_follow_from_the_advantage() -> None:
    for spec in ALGORITHMS.values():
        assert spec.needs_critic == (spec.advantage == "gae")
        assert spec.needs_group == (spec.advantage in {"group", "leave_one_out"})


def test_where_the_kl_goes_by_default() -> None:
    assert {name: spec.default_kl_in for name, spec in ALGORITHMS.items()} == {
        "grpo": "loss",
        "rloo": "reward",
        "ppo": "reward",
    }
