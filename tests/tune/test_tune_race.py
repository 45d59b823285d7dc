"""The race on made-up histories: who runs, on which seed, and when it is over."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from leverl.backends.protocol import Resolved
from leverl.record.run_record import Outcome
from leverl.tune.evidence.posterior import Belief, Observation
from leverl.tune.evidence.recommendation import recommend
from leverl.tune.evidence.seed_noise import SeedNoise
from leverl.tune.evidence.top_two import allocate
from leverl.tune.model import CONFIRM, RACE, SEARCH, Finish, History, Prediction, RunState, Start
from leverl.tune.phases.race import Race, finalists_of
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space

SEEDS = (2000, 2001, 2002, 2003)
SPACE = Space((Axis("x"),), (), {"x": 0.0}, lambda params: Resolved(None, params))  # type: ignore[arg-type]


def race(**more: Any) -> Race:
    settings: dict[str, Any] = {"finalists": 3, "seeds": SEEDS, "until": lambda params: 4, "model": False}
    return Race(SPACE, **{**settings, **more})


def ids(decisions: Sequence[Any]) -> list[str]:
    return [decision.run.id for decision in decisions if isinstance(decision, Start)]


def summary(decisions: Sequence[Any]) -> str:
    (only,) = decisions
    assert isinstance(only, Finish)
    return only.summary


@pytest.fixture
def run(tools: ModuleType) -> Callable[..., RunState]:
    def make(number: int, score: float | None, seed: int = 1000, **more: Any) -> RunState:
        phase = RACE if 2000 <= seed < 3000 else CONFIRM if seed >= 3000 else SEARCH
        params = {"x": number / 100} if number else {}
        state: RunState = tools.state(f"c{number:03d}", params, score, seed=seed, phase=phase, **more)
        return state

    return make


@pytest.fixture
def searched(run: Callable[..., RunState]) -> list[RunState]:
    """Seven configurations, some twice: .05 apart from seed to seed, c003 and c001 ahead."""
    scores = {0: 0.50, 1: 0.78, 2: 0.60, 3: 0.80, 4: 0.55, 5: 0.30, 6: 0.40}
    states = [run(number, score) for number, score in scores.items()]
    return states + [run(n, scores[n] + d, 1001) for n, d in ((0, 0.05), (2, -0.06), (5, 0.04))]


def test_it_opens_with_each_finalist_on_the_first_seed(searched: list[RunState]) -> None:
    starts = race().next(History(tuple(searched)), 3)
    assert ids(starts)[:2] == ["003-s2000", "001-s2000"]
    first = starts[0]
    assert isinstance(first, Start)
    assert (first.run.phase, first.run.until, dict(first.run.params)) == (RACE, 4, {"x": 0.03})
    assert ids(race().next(History(tuple(searched)), 1)) == ["003-s2000"]
    assert ids(race().next(History(tuple(searched)), 0)) == []


def test_steps_depend_on_the_configuration(searched: list[RunState]) -> None:
    starts = race(until=lambda params: 7 if params["x"] == 0.03 else 9).next(History(tuple(searched)), 2)
    assert [start.run.until for start in starts if isinstance(start, Start)] == [7, 9]


def test_the_hopeless_do_not_enter(searched: list[RunState]) -> None:
    assert finalists_of(SPACE, History(tuple(searched)), 6, model=False) == ("c003", "c001")


def test_finalists_are_fixed_once_it_has_begun(
    searched: list[RunState], run: Callable[..., RunState]
) -> None:
    wide = [state for state in searched if state.run.seed == 1000]  # no replicates: much may be noise
    names = finalists_of(SPACE, History(tuple(wide)), 3, model=False)
    assert names == ("c003", "c001", "c002")
    began = [
        *wide,
        run(3, 0.1, 2000),
        run(1, None, 2000, outcome=Outcome.NON_FINITE),
        run(2, None, 2000, outcome=None),
    ]
    assert finalists_of(SPACE, History(tuple(began)), 3, model=False) == names
    retried = [*began, run(6, 9.0, 1001)]  # a retried run of the search ends late
    assert set(finalists_of(SPACE, History(tuple(retried)), 3, model=False)) == set(names)


def test_a_stopped_run_can_be_a_finalist_and_the_base_too(run: Callable[..., RunState]) -> None:
    stopped = replace(run(1, None, outcome=Outcome.STOPPED), prediction=Prediction(0.9, 0.05))
    history = History((run(0, 0.8), stopped, run(2, 0.2), run(3, 0.1)))
    assert finalists_of(SPACE, history, 2, model=False) == ("c001", "c000")
    assert ids(race().next(history, 2)) == ["001-s2000", "000-s2000"]


def test_a_wild_prediction_counts_less_than_a_score(run: Callable[..., RunState]) -> None:
    stopped = replace(run(1, None, outcome=Outcome.STOPPED), prediction=Prediction(0.9, 2.0))
    history = History((run(0, 0.8), stopped, run(2, 0.7), run(3, 0.6), run(4, 0.5)))
    assert finalists_of(SPACE, history, 1, model=False) == ("c000",)


def test_one_that_failed_in_the_search_comes_last(run: Callable[..., RunState]) -> None:
    failed = [run(1, 0.9), run(1, None, 1001, outcome=Outcome.OUT_OF_MEMORY)]
    history = History((run(0, 0.5), *failed, run(2, 0.4)))
    assert finalists_of(SPACE, history, 3, model=False) == ("c000", "c002")
    alone = History((run(0, 0.5), *failed))
    assert finalists_of(SPACE, alone, 3, model=False) == ("c000", "c001")
    lost = History((run(0, 0.5), run(1, 0.9), run(1, None, 1001, outcome=Outcome.LOST)))
    assert finalists_of(SPACE, lost, 3, model=False) == ("c001", "c000")


def test_only_what_is_allowed_races(searched: list[RunState]) -> None:
    history = History(tuple(searched))
    phase = race(allowed=lambda _, name: name != "c003")
    assert ids(phase.next(history, 1)) == ["001-s2000"]
    assert (
        summary(race(allowed=lambda _, name: name == "c001").next(history, 1)) == "nothing to choose between"
    )


def test_leader_and_challenger_go_on_side_by_side(
    searched: list[RunState], run: Callable[..., RunState]
) -> None:
    wide = [state for state in searched if state.run.seed == 1000]
    opened = [*wide, run(3, 0.81, 2000), run(1, 0.80, 2000), run(2, 0.40, 2000)]
    assert ids(race().next(History(tuple(opened)), 2)) == ["003-s2001", "001-s2001"]
    half = [*opened, run(3, 0.79, 2001)]
    assert ids(race().next(History(tuple(half)), 1)) == ["001-s2001"]
    running = [*opened, run(3, None, 2001, outcome=None)]
    assert ids(race().next(History(tuple(running)), 1)) == ["001-s2001"]


def test_it_ends_when_the_leader_is_the_best_for_sure(
    searched: list[RunState], run: Callable[..., RunState]
) -> None:
    decided = [*searched, run(3, 0.90, 2000), run(1, 0.50, 2000)]
    assert summary(race().next(History(tuple(decided)), 2)).startswith("c003 is the best of 2 finalists, P 1")
    waiting = [*decided, run(3, None, 2001, outcome=None)]
    assert race().next(History(tuple(waiting)), 1) == []


def test_it_does_not_end_before_every_finalist_has_run(
    searched: list[RunState], run: Callable[..., RunState]
) -> None:
    half = [*searched, run(3, 5.0, 2000), run(1, None, 2000, outcome=None)]
    assert race(seeds=SEEDS[:1]).next(History(tuple(half)), 1) == []
    assert ids(race().next(History(tuple(half[:-1])), 1)) == ["001-s2000"]


def test_it_ends_when_it_does_not_matter(searched: list[RunState], run: Callable[..., RunState]) -> None:
    close = [*searched, run(3, 0.80, 2000), run(1, 0.80, 2000)]
    assert ids(race().next(History(tuple(close)), 1)) != []
    over = race(epsilon=0.1).next(History(tuple(close)), 1)
    assert summary(over) == "no finalist is expected to be better by more than 0.1, after 2 runs"


def test_it_ends_when_no_run_is_left(searched: list[RunState], run: Callable[..., RunState]) -> None:
    close = [*searched, run(3, 0.80, 2000), run(1, 0.81, 2000)]
    history = History(tuple(close))
    assert summary(race(runs=2).next(history, 2)) == "2 runs of 2 finalists, none is left"
    assert summary(race(seeds=SEEDS[:1]).next(history, 2)) == "2 runs of 2 finalists, none is left"
    assert len(ids(race(runs=3).next(history, 2))) == 1
    assert race(runs=4).next(History((*close, run(3, None, 2001, outcome=None))), 0) == []


def test_the_confirmation_ends_it(searched: list[RunState], run: Callable[..., RunState]) -> None:
    assert summary(race().next(History((*searched, run(3, 0.8, 3000))), 2)) == "race done"


def test_a_finalist_that_fails_is_out(searched: list[RunState], run: Callable[..., RunState]) -> None:
    wide = [state for state in searched if state.run.seed == 1000]
    failed = run(3, None, 2000, outcome=Outcome.NON_FINITE)
    opened = [*wide, failed, run(1, 0.70, 2000), run(2, 0.69, 2000)]
    assert {name[:3] for name in ids(race().next(History(tuple(opened)), 2))} == {"001", "002"}
    found = recommend(SPACE, History(tuple(opened)), model=False)
    assert found is not None
    assert found.config_id == "c001"
    pair = [*searched, failed, run(1, 0.1, 2000)]
    assert summary(race().next(History(tuple(pair)), 2)) == "c001 is the finalist that failed least"
    both = [*searched, failed, run(1, None, 2000, outcome=Outcome.NON_FINITE)]
    assert set(ids(race().next(History(tuple(both)), 2))) == {"003-s2001", "001-s2001"}


def test_a_lost_run_is_no_failure(searched: list[RunState], run: Callable[..., RunState]) -> None:
    lost = [*searched, run(3, None, 2000, outcome=Outcome.LOST), run(1, 0.80, 2000)]
    assert ids(race().next(History(tuple(lost)), 1)) == ["003-s2001"]


def test_minimising_turns_it_round(searched: list[RunState]) -> None:
    assert ids(race().next(History(tuple(searched), maximize=False), 1)) == ["005-s2000"]


# Allocation


def equal_belief(*means: float) -> Belief:
    return Belief(tuple(f"c{n}" for n in range(len(means))), np.array(means), np.eye(len(means)))


NOISE = SeedNoise(common=0.5, residual=1.0)


def unused(belief: Belief, *used: tuple[str, int]) -> dict[str, list[int]]:
    return {name: [seed for seed in SEEDS if (name, seed) not in used] for name in belief.ids}


def test_the_one_known_less_runs_next() -> None:
    belief = equal_belief(1.0, 0.9, -5.0)
    runs = [
        Observation("c0", 2000, 1.0, 1.0),
        Observation("c0", 2001, 1.0, 1.0),
        Observation("c1", 2000, 0.9, 1.0),
    ]
    left = unused(belief, ("c0", 2000), ("c0", 2001), ("c1", 2000))
    assert allocate(belief, runs, NOISE, left, 1) == [("c1", 2001)]


def test_a_common_seed_is_worth_more_than_a_new_one() -> None:
    """Both have run once; c1 can pair with the leader's second seed, which is pending."""
    belief = equal_belief(1.0, 0.9)
    runs = [Observation(name, 2000, 1.0, 1.0) for name in belief.ids] + [Observation("c0", 2001, None, 1.0)]
    left = unused(belief, ("c0", 2000), ("c1", 2000), ("c0", 2001))
    assert allocate(belief, runs, SeedNoise(5.0, 0.1), left, 1) == [("c1", 2001)]


def test_the_challenger_changes_when_runs_are_promised() -> None:
    """Three equals: after leader and first challenger were given runs, the second challenger gets some too."""
    found = allocate(equal_belief(1.0, 0.9, 0.9), [], NOISE, unused(equal_belief(1, 0.9, 0.9)), 6)
    counts = {name: sum(one == name for one, _ in found) for name in ("c0", "c1", "c2")}
    assert counts["c0"] >= 2
    assert min(counts.values()) >= 1
    for name in counts:
        seeds = [seed for one, seed in found if one == name]
        assert seeds == list(SEEDS[: len(seeds)])  # the i-th run is on the i-th seed


def test_seeds_come_to_an_end() -> None:
    belief = equal_belief(1.0, 0.9)
    assert len(allocate(belief, [], NOISE, unused(belief), 99)) == 8
    left = {"c0": [], "c1": [2003]}
    assert allocate(belief, [], NOISE, left, 3) == [("c1", 2003)]


# As a whole


class World:
    """Configurations with true means, and scores with noise that depends on configuration and seed alone."""

    def __init__(self, seed: int, count: int, spread: float) -> None:
        self.means = spread * np.random.default_rng(seed).standard_normal(count)
        self._seed = seed

    def score(self, number: int, seed: int) -> float:
        noise = np.random.default_rng([self._seed, number, seed]).standard_normal()
        return float(self.means[number] + noise)


def search_of(world: World, run: Callable[..., RunState]) -> list[RunState]:
    singles = [run(n, world.score(n, 1000)) for n in range(len(world.means))]
    return singles + [run(n, world.score(n, 1001), 1001) for n in range(3)]


def finish(state: RunState, world: World, run: Callable[..., RunState]) -> RunState:
    number = int(state.run.config_id[1:])
    return run(number, world.score(number, state.run.seed), state.run.seed)


@pytest.mark.parametrize("seed", range(4))
def test_it_can_be_resumed_anywhere_in_any_order_of_completion(
    seed: int, run: Callable[..., RunState]
) -> None:
    world, generator = World(seed, 8, 0.7), np.random.default_rng(seed)
    states = search_of(world, run)
    names = finalists_of(SPACE, History(tuple(states)), 3, model=False)
    for _ in range(60):
        history, free = History(tuple(states)), int(generator.integers(1, 4))
        found = race().next(history, free)
        again = replace(history, runs=tuple(replace(state) for state in history.runs))
        assert race().next(again, free) == found
        assert finalists_of(SPACE, history, 3, model=False) == names
        running = [place for place, state in enumerate(states) if state.outcome is None]
        if found and isinstance(found[0], Finish):
            assert not running
            break
        for start in found:
            assert isinstance(start, Start)
            states.append(run(int(start.run.config_id[1:]), None, start.run.seed, outcome=None))
        waiting = [place for place, state in enumerate(states) if state.outcome is None]
        ended = waiting[int(generator.integers(len(waiting)))]
        states[ended] = finish(states[ended], world, run)
    else:
        pytest.fail("the race did not end")
    used = [(state.run.config_id, state.run.seed) for state in states if state.run.phase == RACE]
    assert len(used) == len(set(used)) <= 12
    for name in names:
        assert [s for n, s in used if n == name] == list(SEEDS[: sum(n == name for n, _ in used)])


def test_it_finds_the_best_more_often_than_the_best_single_score(run: Callable[..., RunState]) -> None:
    """Ten configurations as far apart as their seeds; 8 race runs at most. Loss in seed standard deviations."""
    by_score, by_race, runs = [], [], 0
    for seed in range(200):
        world = World(seed, 10, 1.0)
        states = search_of(world, run)
        singles = [world.score(number, 1000) for number in range(10)]
        by_score.append(world.means.max() - world.means[int(np.argmax(singles))])
        phase = race(runs=8)
        while ids(found := phase.next(History(tuple(states)), 2)):
            new = [run(int(s.run.config_id[1:]), None, s.run.seed) for s in found if isinstance(s, Start)]
            states += [finish(state, world, run) for state in new]
        best = recommend(SPACE, History(tuple(states)), model=False)
        assert best is not None
        by_race.append(world.means.max() - world.means[int(best.config_id[1:])])
        runs += len(states) - 13
    assert runs <= 8 * 200
    hits = [float(np.mean(np.array(losses) == 0)) for losses in (by_score, by_race)]
    assert hits[1] > hits[0] + 0.1, hits
    assert np.mean(by_race) < 0.7 * np.mean(by_score), (np.mean(by_race), np.mean(by_score))
