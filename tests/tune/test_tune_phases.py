"""Phases and verdicts on made-up histories: no process, no file."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leverl.errors import TrainingFailed
from leverl.record.run_record import Outcome
from leverl.tune.model import CONFIRM, SEARCH, SELECT, Finish, History, Start
from leverl.tune.phases.confirm import Confirm
from leverl.tune.phases.search import Search
from leverl.tune.phases.select import Select, chosen
from leverl.tune.plan import prepare
from leverl.tune.ranking import leader, ranked, standing
from leverl.tune.samplers.random import RandomSampler
from leverl.tune.statistics import mean, paired_t, standard_error
from leverl.tune.strategy import DONE, Strategy
from leverl.tune.study import load_study
from leverl.tune.verdict import conclude

P1, P2, P3 = ({"ppo_epochs": n} for n in (2, 3, 4))


def strategy(tools: ModuleType, **changes: Any) -> Strategy:
    return prepare(load_study(tools.study(**changes)), Path("s")).strategy


def ids(decisions: Any) -> list[str]:
    return [decision.run.id for decision in decisions if isinstance(decision, Start)]


def search(tools: ModuleType, **changes: Any) -> Search:
    phase = strategy(tools, **changes).phases[0]
    assert isinstance(phase, Search)
    return phase


def test_the_base_is_the_first_run(tools: ModuleType) -> None:
    starts = search(tools).next(History(()), 2)
    assert ids(starts) == ["000-s1000", "001-s1000"]
    first = starts[0]
    assert isinstance(first, Start)
    assert (first.run.config_id, dict(first.run.params), first.run.phase) == ("c000", {}, SEARCH)


def test_search_stops_at_its_budget(tools: ModuleType) -> None:
    phase = search(tools)  # 10 runs, 6 of them kept for the proof
    states = [tools.state(f"c{n:03d}", {"ppo_epochs": 1 + n} if n else {}, 0.5) for n in range(3)]
    assert len(ids(phase.next(tools.history(*states), 4))) == 1
    states.append(tools.state("c003", {"ppo_epochs": 4}, outcome=None))
    assert list(phase.next(tools.history(*states), 1)) == []
    states[-1] = tools.state("c003", {"ppo_epochs": 4}, 0.4)
    assert isinstance(phase.next(tools.history(*states), 2)[0], Finish)


def test_every_configuration_gets_every_search_seed(tools: ModuleType) -> None:
    phase = search(tools, seeds={"search": 2, "select": 1, "confirm": 2}, budget={"trials": 14})
    assert ids(phase.next(History(()), 1)) == ["000-s1000"]
    base = tools.state("c000", {}, outcome=None)
    assert ids(phase.next(tools.history(base), 3)) == ["000-s1001", "001-s1000", "001-s1001"]


def test_search_is_over_once_selection_began(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, 0.5), tools.state("c000", {}, 0.5, seed=2000, phase=SELECT)]
    assert isinstance(search(tools).next(tools.history(*states), 2)[0], Finish)


def finalists(tools: ModuleType) -> list[Any]:
    return [
        tools.state("c000", {}, 0.5),
        tools.state("c001", P1, 0.8),
        tools.state("c002", P2, None, outcome=Outcome.OUT_OF_MEMORY),
        tools.state("c003", P3, 0.7),
    ]


def test_candidates_run_on_fresh_seeds(tools: ModuleType) -> None:
    phase = Select(2, (2000, 2001), 4)
    states = finalists(tools)
    assert ids(phase.next(tools.history(*states), 3)) == ["001-s2000", "003-s2000", "001-s2001"]
    assert {
        start.run.phase for start in phase.next(tools.history(*states), 3) if isinstance(start, Start)
    } == {SELECT}


def test_the_leader_is_chosen_on_selection_seeds_alone(tools: ModuleType) -> None:
    states = finalists(tools)
    assert chosen(tools.history(*states)).config_id == "c001"
    states += [
        tools.state("c001", P1, 0.55, seed=2000, phase=SELECT),
        tools.state("c003", P3, 0.75, seed=2000, phase=SELECT),
    ]
    assert chosen(tools.history(*states)).config_id == "c003"


def test_one_candidate_needs_no_selection(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, None, outcome=Outcome.NON_FINITE), tools.state("c001", P1, 0.8)]
    assert isinstance(Select(3, (2000,), 4).next(tools.history(*states), 2)[0], Finish)
    assert ids(Confirm((3000,), 4).next(tools.history(*states), 2)) == ["001-s3000", "000-s3000"]


def test_confirmation_pairs_leader_and_base(tools: ModuleType) -> None:
    phase, states = Confirm((3000, 3001), 4), finalists(tools)
    assert ids(phase.next(tools.history(*states), 3)) == ["001-s3000", "000-s3000", "001-s3001"]


def test_a_leading_base_needs_no_confirmation(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, 0.9), tools.state("c001", P1, 0.8)]
    history = tools.history(*states)
    assert isinstance(Confirm((3000,), 4).next(history, 2)[0], Finish)
    found = conclude(history, finished=True)
    assert (found.config_id, found.comparison) == ("c000", None)
    assert found.verdict.startswith("No gain shown over the base")


def test_ties_go_to_the_lower_kl_then_to_the_lower_cost(tools: ModuleType) -> None:
    def two(a: dict[str, Any], b: dict[str, Any]) -> str:
        states = [tools.state("c001", P1, 0.800, **a), tools.state("c002", P2, 0.795, **b)]
        return leader(tools.history(*states)).config_id

    assert two({"kl": 0.05}, {"kl": 0.02}) == "c002"  # 0.005 apart, standard error 0.01
    assert two({"kl": 0.02}, {"kl": 0.05}) == "c001"
    assert two({"seconds": 9.0}, {"seconds": 2.0}) == "c002"
    assert two({"responses": 200}, {"responses": 100, "seconds": 9.0}) == "c002"
    far = [tools.state("c001", P1, 0.80, kl=0.05), tools.state("c002", P2, 0.70, kl=0.02)]
    assert leader(tools.history(*far)).config_id == "c001"


def test_failures_are_no_scores(tools: ModuleType) -> None:
    states = [
        tools.state("c001", P1, 0.9, seed=2000),
        tools.state("c001", P1, None, seed=2001, outcome=Outcome.NON_FINITE),
        tools.state("c002", P2, 0.6, seed=2000),
        tools.state("c002", P2, None, seed=2001, outcome=Outcome.LOST),
    ]
    history = tools.history(*states)
    assert standing(history, "c001").mean == 0.9
    assert [found.config_id for found in ranked(history)] == ["c002", "c001"]  # one that fails comes last


def test_minimising_turns_everything_round(tools: ModuleType) -> None:
    states = [tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.2)]
    states += [tools.state("c000", {}, 0.5 + 0.01 * s, seed=3000 + s, phase=CONFIRM) for s in range(3)]
    states += [tools.state("c001", P1, 0.2, seed=3000 + s, phase=CONFIRM) for s in range(3)]
    history = tools.history(*states, maximize=False)
    assert chosen(history).config_id == "c001"
    found = conclude(history, finished=True)
    assert found.config_id == "c001"
    assert found.comparison.difference == pytest.approx(0.31)


def confirmed(tools: ModuleType, ours: list[float | None], base: list[float | None]) -> History:
    states = [tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.8)]
    for config_id, params, scores in (("c001", P1, ours), ("c000", {}, base)):
        for number, score in enumerate(scores):
            outcome = Outcome.FINISHED if score is not None else Outcome.NON_FINITE
            states.append(
                tools.state(config_id, params, score, seed=3000 + number, phase=CONFIRM, outcome=outcome)
            )
    return tools.history(*states)


def test_a_gain_needs_an_interval_above_zero(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.80, 0.82, 0.81], [0.50, 0.52, 0.53]), finished=True)
    assert (found.config_id, found.comparison.gain) == ("c001", True)
    assert found.comparison.seeds == (3000, 3001, 3002)
    assert found.comparison.difference == pytest.approx(0.29333, abs=1e-4)
    low, high = found.comparison.interval
    # differences .30 .30 .28: mean .29333, s = .011547, t(2, .975) = 4.30265
    assert (low, high) == (pytest.approx(0.26465, abs=1e-4), pytest.approx(0.32202, abs=1e-4))
    assert found.verdict.startswith("Use c001: 0.81 against 0.517 of the base (+0.293, 95 % interval +0.265")


def test_no_gain_is_an_ending(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.50, 0.56, 0.51], [0.50, 0.52, 0.53]), finished=True)
    assert (found.config_id, found.comparison.gain, found.comparison.config_id) == ("c000", False, "c001")
    assert found.verdict.startswith("No gain shown over the base (c001: +0.00667")
    assert found.verdict.endswith("keep the base.")


def test_one_pair_proves_nothing(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.9], [0.1]), finished=True)
    assert (found.config_id, found.comparison.interval) == ("c000", None)


def test_a_leader_that_fails_on_a_fresh_seed_has_no_gain(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.80, 0.82, None], [0.50, 0.52, 0.53]), finished=True)
    assert found.config_id == "c000"
    assert "failed on 1 of 3 fresh seeds (non_finite)" in found.verdict


def test_a_base_that_always_fails(tools: ModuleType) -> None:
    found = conclude(confirmed(tools, [0.80, 0.82], [None, None]), finished=True)
    assert (found.config_id, found.comparison) == ("c001", None)
    assert "the base has no score on these (non_finite)" in found.verdict


def test_an_early_end_names_the_best_without_claiming_a_gain(tools: ModuleType) -> None:
    found = conclude(
        tools.history(tools.state("c000", {}, 0.5), tools.state("c001", P1, 0.8)), finished=False
    )
    assert (found.config_id, found.comparison) == ("c001", None)
    assert "Budget used up before confirmation: c001 leads the search (0.8 ± 0.01, 1 seed)" in found.verdict
    assert "not shown" in found.verdict


def test_nothing_scored_is_a_failure(tools: ModuleType) -> None:
    with pytest.raises(TrainingFailed, match="no run has a score"):
        conclude(tools.history(tools.state("c000", {}, None, outcome=Outcome.CRASHED)), finished=True)


def test_time_is_kept_for_the_proof(tools: ModuleType) -> None:
    found = strategy(tools, budget={"hours": 1})
    states = [tools.state("c000", {}, 0.5, seconds=100.0), tools.state("c001", P1, 0.8, seconds=100.0)]
    history = tools.history(*states)
    # 2 × 1 selection and 2 × 2 confirmation runs of 100 s on two places: 300 s
    plenty = found.next(history, 2, parallel=2, seconds_left=400.0)
    assert (plenty.phase, len(plenty.starts)) == (SEARCH, 2)
    short = found.next(history, 2, parallel=2, seconds_left=250.0)
    assert (short.phase, ids(short.starts)) == (SELECT, ["001-s2000", "000-s2000"])
    over = found.next(history, 2, parallel=2, seconds_left=-1.0)
    assert (over.phase, over.out_of_time) == (DONE, True)


def test_running_runs_are_waited_for_at_the_end_of_time(tools: ModuleType) -> None:
    found = strategy(tools, budget={"hours": 1})
    states = [tools.state("c000", {}, 0.5), tools.state("c001", P1, outcome=None)]
    step = found.next(tools.history(*states), 1, parallel=2, seconds_left=-1.0)
    assert (step.phase, step.starts) == (SEARCH, ())


def test_a_study_that_is_complete_is_not_out_of_time(tools: ModuleType) -> None:
    found = strategy(tools, budget={"hours": 1})
    states = [tools.state("c000", {}, 0.9), tools.state("c001", P1, 0.8)]
    states += [
        tools.state(c, p, s, seed=2000, phase=SELECT) for c, p, s in (("c000", {}, 0.9), ("c001", P1, 0.7))
    ]
    step = found.next(tools.history(*states), 2, parallel=2, seconds_left=-1.0)
    assert (step.phase, step.out_of_time) == (DONE, False)


def test_planned_runs(tools: ModuleType) -> None:
    assert strategy(tools).planned(History(())) == {SEARCH: 4, SELECT: 2, CONFIRM: 4}
    grid = strategy(tools, strategy="grid", space={"ppo_epochs": [1, 2, 3]}, budget={})
    assert grid.planned(History(()))[SEARCH] == 3  # the base is one of the cells


def test_a_strategy_needs_nothing_but_the_history(tools: ModuleType) -> None:
    """The same history gives the same step, whichever object is asked: a study can be resumed anywhere."""
    history = tools.history(tools.state("c000", {}, 0.5))
    one, two = strategy(tools), strategy(tools)
    assert isinstance(one.sampler, RandomSampler)
    for free in (1, 2, 1):
        step = one.next(history, free, parallel=2, seconds_left=None)
        assert step == two.next(history, free, parallel=2, seconds_left=None)


def test_statistics() -> None:
    assert mean([1.0, 2.0, 6.0]) == 3.0
    assert standard_error([1.0]) is None
    assert standard_error([1.0, 2.0, 3.0]) == pytest.approx(0.57735, abs=1e-5)
    assert paired_t([1.0], [0.5]).interval is None
    assert paired_t([2.0, 4.0], [1.0, 1.0]).interval == (
        pytest.approx(-10.7062, abs=1e-3),
        pytest.approx(14.7062, abs=1e-3),
    )
