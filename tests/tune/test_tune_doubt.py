"""How much of what a search has seen may be luck."""

import math
from types import ModuleType

import pytest

from leverl.record.run_record import Outcome
from leverl.tune.evidence.doubt import doubt
from leverl.tune.model import CONFIRM, RACE, History, RunState

SCORES = (0.1, 0.3, 0.5, 0.7, 0.9)  # quartiles .3 and .7: a standard deviation of .2965


def searched(tools: ModuleType, *again: float) -> list[RunState]:
    """Five configurations, of which the first ones have another run, with these scores."""
    runs = [tools.state(f"c{n:03d}", {}, score) for n, score in enumerate(SCORES)]
    return runs + [tools.state(f"c{n:03d}", {}, score, seed=1001) for n, score in enumerate(again)]


def test_nothing_is_sure_before_anything_is_known(tools: ModuleType) -> None:
    assert doubt(History(())) == 1.0
    assert doubt(tools.history(*searched(tools)[:3])) == 1.0
    assert doubt(tools.history(*searched(tools))) == 1.0  # no replicate: the first guess
    flat = [tools.state(f"c{n:03d}", {}, 0.5) for n in range(6)]
    assert doubt(tools.history(*flat)) == 1.0


def test_replicates_that_agree_take_doubt_away(tools: ModuleType) -> None:
    found = [doubt(tools.history(*searched(tools, *SCORES[:count]))) for count in (1, 3)]
    assert found == pytest.approx([math.sqrt(1 / 2), math.sqrt(1 / 4)])


def test_its_size_by_hand(tools: ModuleType) -> None:
    """Two replicates .02 away: means .11 and .31, squares 2 × 2 × .01², quartiles .31 and .7."""
    between = (0.7 - 0.31) / 1.349
    within = (4 * 0.01**2 + (between / 2) ** 2) / 3
    expected = math.sqrt(within) / (between / 2)
    assert doubt(tools.history(*searched(tools, 0.12, 0.32))) == pytest.approx(expected)


def test_large_noise_is_full_doubt_and_hopeless_ones_change_little(tools: ModuleType) -> None:
    assert doubt(tools.history(*searched(tools, 0.9, 0.9))) == 1.0
    few = searched(tools, *SCORES[:3])
    hopeless = tools.state("c009", {}, -1000.0)
    assert doubt(tools.history(*few, hopeless)) == pytest.approx(0.5, abs=0.15)


def test_only_scores_of_the_search_count(tools: ModuleType) -> None:
    runs = searched(tools, *SCORES[:3])
    others = [
        tools.state("c000", {}, 0.9, seed=2000, phase=RACE),
        tools.state("c000", {}, 0.9, seed=3000, phase=CONFIRM),
        tools.state("c004", {}, None, seed=1001, outcome=Outcome.CRASHED),
    ]
    assert doubt(tools.history(*runs, *others)) == doubt(tools.history(*runs))
