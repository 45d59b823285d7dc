"""Variance components of seeds."""

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from leverl.backends.protocol import Resolved
from leverl.record.run_record import Score
from leverl.tune.evidence.belief import search_knowledge
from leverl.tune.evidence.seed_noise import seed_noise
from leverl.tune.model import RACE
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space

AXES = (Axis("ppo_epochs", "", "int", 1, 9),)
SPACE = Space(AXES, (), {"ppo_epochs": 1}, lambda params: Resolved(None, params))  # type: ignore[arg-type]


def layout(
    common: float, groups: int, seeds: int, generator: np.random.Generator
) -> list[tuple[str, int, float]]:
    level = 5 * generator.standard_normal(groups)
    shared = np.sqrt(common) * generator.standard_normal(seeds)
    scores = level[:, None] + shared + generator.standard_normal((groups, seeds))
    return [(f"c{g}", s, float(scores[g, s])) for g in range(groups) for s in range(seeds)]


def test_the_residual_of_a_balanced_layout() -> None:
    # y = group + seed + rest with rest = ±0.5: residual sum of squares 4 · 0.25 on one degree of freedom
    runs = [("a", 1, 1.0), ("a", 2, 4.0), ("b", 1, 11.0), ("b", 2, 12.0)]
    found = seed_noise(runs, 1.0)
    assert (found.df, found.measured) == (1, pytest.approx(1.0))


def test_without_replicates_the_guess_is_all_there_is() -> None:
    found = seed_noise([("a", 1, 3.0), ("b", 1, 7.0)], 0.5)
    assert found.common + found.residual == pytest.approx(0.5)
    assert found.common < 0.25 * found.residual
    assert (found.df, found.measured) == (0, None)
    assert found.sd == pytest.approx(0.5**0.5)


def test_one_group_cannot_tell_seed_from_rest() -> None:
    found = seed_noise([("a", 1, 0.0), ("a", 2, 6.0), ("a", 3, -6.0)], 1.0)
    assert (found.df, found.measured) == (0, None)
    assert found.residual > 5.0 > found.common  # it counts as noise all the same


@pytest.mark.parametrize(("common", "low", "high"), [(0.0, 0.0, 0.15), (4.0, 0.8, 4.0)])
def test_components_on_average(common: float, low: float, high: float) -> None:
    generator = np.random.default_rng(0)
    found = [seed_noise(layout(common, 4, 4, generator), 1.0 + common) for _ in range(300)]
    assert np.mean([one.measured for one in found]) == pytest.approx(1.0, abs=0.1)
    assert low < np.mean([one.common for one in found]) < high
    assert all(one.common >= 0 and one.residual > 0 for one in found)
    assert found[0].df == 9


def test_replicates_outweigh_a_wrong_guess() -> None:
    runs = layout(0.0, 6, 4, np.random.default_rng(1))
    assert 0.5 < seed_noise(runs, 0.01).residual < seed_noise(runs, 10.0).residual < 4.0


def test_scores_that_do_not_vary() -> None:
    found = seed_noise([("a", 1, 0.5), ("a", 2, 0.5), ("b", 1, 0.7), ("b", 2, 0.7)], 0.0)
    assert found.sd == pytest.approx(0.0, abs=1e-100)


def test_replicates_that_agree_with_the_guess_leave_it_as_it_is() -> None:
    found = seed_noise([("a", 1, 0.0), ("a", 2, 2**0.5)], 1.0)  # their variance is 1
    assert found.common + found.residual == pytest.approx(1.0)


def test_dead_runs_of_the_search_do_not_make_the_race_certain(tools: ModuleType) -> None:
    """0 ± 0 everywhere in the search says nothing of how runs that learn scatter; their evaluations do."""
    states = [tools.state("c000", {}, 0.0, seed=seed) for seed in (1000, 1001)]
    states += [tools.state(f"c{n:03d}", {"ppo_epochs": n + 1}, 0.0) for n in (1, 2, 3)]
    states = [replace(state, score=Score(0.0, 0.0, 3)) for state in states]
    for name, score, error in (("c001", 0.23, 0.05), ("c002", 0.0, 0.0)):
        raced = tools.state(name, {"ppo_epochs": int(name[-1]) + 1}, score, seed=2000, phase=RACE)
        states.append(replace(raced, score=Score(score, error, 3)))
    history = tools.history(*states)
    knowledge = search_knowledge(SPACE, history, model=False)
    assert knowledge is not None
    assert knowledge.noise(history, ("c001", "c002")).sd > 0.01
