"""Which runs are ended early, in made-up studies."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from leverl.errors import ConfigError
from leverl.record.run_record import Outcome, Score
from leverl.record.series import Series
from leverl.tune.model import BASE, CONFIRM, GRID, RACE, SEARCH, Cost, History, Run, RunState
from leverl.tune.stopping.rules import Incumbent, StopRules, scores_seen, start_up

UNTIL = 200
RULES = StopRules()
LEADER = Incumbent(0.7, 0.02)


def curve(final: float, *, start: float = 0.0, mid: float = 0.2) -> list[float]:
    """21 evaluations of a saturating run, with a ripple; `mid` is where half of the growth is done."""
    shares = [i / 20 for i in range(21)]
    growth = [0.0 if share == 0 else (1 + mid**3) / (1 + (mid / share) ** 3) for share in shares]
    return [start + (final - start) * g + 0.01 * (-1) ** i for i, g in enumerate(growth)]


def run(
    config_id: str,
    values: Sequence[float],
    *,
    done: float = 1.0,
    phase: str = SEARCH,
    seed: int = 1000,
    until: int = UNTIL,
    outcome: Outcome | None = Outcome.FINISHED,
) -> RunState:
    """A run with the first `done` of its evaluations; it runs until all of them are there."""
    count = round(done * (len(values) - 1)) + 1
    steps = tuple(i * until // (len(values) - 1) for i in range(count))
    ended = outcome if done == 1.0 else None
    return RunState(
        Run(f"{config_id[1:]}-s{seed}", config_id, {}, seed, until, phase),
        Path(config_id),
        ended,
        Score(sum(values[-3:]) / 3, 0.01, 3) if ended is Outcome.FINISHED else None,
        evaluations=Series(steps, tuple(values[:count])),
        cost=Cost(steps[-1]),
    )


STARTUP = (
    run(BASE, curve(0.6)),
    run("c001", curve(0.5)),
    run("c002", curve(0.7)),
    run("c003", curve(0.4)),
)
POOR = run("c004", curve(0.1), done=0.5)


def stopped(*states: RunState, rules: StopRules = RULES, leader: Incumbent | None = LEADER) -> list[str]:
    return [stop.run_id for stop in rules.decide(History(states), leader)]


def test_a_run_that_is_out_of_the_race_is_stopped_with_its_reason() -> None:
    (stop,) = RULES.decide(History((*STARTUP, POOR)), LEADER)
    assert stop.run_id == "004-s1000"
    assert stop.reason == (
        "stopped at 100/200: 0.0957 is below the start-up median 0.511; P(beats the leader) 1 %"
    )


def test_all_running_runs_are_judged() -> None:
    good, other = run("c005", curve(0.75), done=0.5), run("c006", curve(0.05), done=0.6, phase=GRID)
    assert stopped(*STARTUP, POOR, good, other) == ["004-s1000", "006-s1000"]


def test_nothing_is_stopped_before_its_share_of_the_steps() -> None:
    early = run("c004", [0.0] * 21, done=0.15)
    assert stopped(*STARTUP, early, rules=StopRules(probability=0.4)) == []
    assert stopped(*STARTUP, run("c004", [0.0] * 21, done=0.2), rules=StopRules(probability=0.4)) != []
    assert stopped(*STARTUP, POOR, rules=StopRules(after=0.6)) == []


def test_the_base_the_race_and_the_confirmation_are_never_stopped() -> None:
    collapsed = [0.0, 0.2, 0.4, 0.6, 0.6, 0.6, *[0.0] * 15]
    protected = [
        run(BASE, collapsed, done=0.8, seed=1001),
        run("c004", collapsed, done=0.8, phase=RACE, seed=2000),
        run("c005", collapsed, done=0.8, phase=CONFIRM, seed=3000),
    ]
    assert stopped(*STARTUP, *protected) == []
    assert stopped(*STARTUP, run("c006", collapsed, done=0.8)) == ["006-s1000"]  # what would happen to others


def test_start_up_configurations_are_never_stopped_for_their_curve() -> None:
    replicate = run("c003", curve(0.0), done=0.5, seed=1001)
    assert stopped(*STARTUP, replicate) == []
    assert stopped(*STARTUP[:3], run("c003", curve(0.0), done=0.5)) == []


def test_without_a_full_start_up_nothing_is_stopped_for_its_curve() -> None:
    assert stopped(*STARTUP[:3], POOR) == []
    failed = replace(STARTUP[1], outcome=Outcome.OUT_OF_MEMORY, score=None)
    assert stopped(STARTUP[0], failed, *STARTUP[2:], POOR) == []
    assert stopped(STARTUP[0], failed, *STARTUP[2:], run("c005", curve(0.5)), POOR) == ["004-s1000"]


def test_without_a_leader_only_guards_stop() -> None:
    assert stopped(*STARTUP, POOR, leader=None) == []
    fallen = run("c005", [0.0, 0.3, 0.6, 0.6, 0.6, *[0.0] * 16], done=0.7)
    (stop,) = RULES.decide(History((*STARTUP, fallen)), None)
    assert stop.reason.startswith("collapsed: eval/score 0 after a peak of 0.6 at step 20")


def test_a_moving_median_would_stop_what_the_fixed_start_up_does_not() -> None:
    """The trap: peers of a converged search are all good, so half of the good runs are below their median."""
    better = [run(f"c{i:03d}", curve(0.88 + i / 1000)) for i in range(10, 40)]
    middling = run("c050", curve(0.65), done=0.5)  # above the start-up median, below all later runs
    leader = Incumbent(0.92, 0.01)
    history = History((*STARTUP, *better, middling))
    assert start_up(history) == STARTUP
    assert RULES.decide(history, leader) == []
    chance = RULES.chance(middling, scores_seen(history) or pytest.fail("no scores"), leader)
    assert chance is not None
    assert chance < RULES.probability  # by its curve alone it would have been stopped
    moving = RULES.standing(middling, tuple(better))
    assert moving is not None
    assert moving.behind


def test_the_reference_waits_for_start_up_runs_that_still_run() -> None:
    waiting = run("c003", curve(0.4), done=0.5)
    fifth = run("c005", curve(0.9))
    assert start_up(History((*STARTUP[:3], waiting, fifth))) == ()
    assert start_up(History((*STARTUP, fifth))) == STARTUP


def test_the_reference_is_of_the_search_one_run_for_each_configuration() -> None:
    again, raced = run(BASE, curve(0.6), seed=1001), run("c002", curve(0.7), phase=RACE, seed=2000)
    assert start_up(History((STARTUP[0], again, raced, *STARTUP[1:]))) == STARTUP


def test_stopped_runs_are_no_reference() -> None:
    halted = run("c001", curve(0.5), outcome=Outcome.STOPPED)
    assert start_up(History((STARTUP[0], halted, *STARTUP[2:]))) == ()


def test_a_low_score_says_nothing_where_good_runs_begin_late() -> None:
    late = [0.0] * 9 + [0.06 * i for i in range(1, 13)]
    flat = run("c010", late, done=0.4)
    early = [run(BASE, curve(0.45)), *(run(f"c{i:03d}", curve(0.4)) for i in (1, 2, 3))]
    assert stopped(*early, flat) == ["010-s1000"]  # nobody knew
    assert stopped(*early, run("c009", late), flat) == []  # one such run has ended well


def test_a_run_level_with_the_start_up_median_at_the_floor_is_stopped() -> None:
    flat = [run(BASE, curve(0.7)), *(run(f"c{i:03d}", [0.0] * 21) for i in (1, 2, 3))]
    (stop,) = RULES.decide(History((*flat, run("c004", [0.0] * 21, done=0.5))), LEADER)
    assert "0 is no better than the start-up median 0" in stop.reason


def test_runs_of_other_lengths_are_compared_at_the_same_share_of_their_steps() -> None:
    long = run("c004", curve(0.1), done=0.5, until=800)
    (stop,) = RULES.decide(History((*STARTUP, long)), LEADER)
    assert stop.reason.startswith("stopped at 400/800: 0.0957 is below the start-up median 0.511;")


def test_a_doubtful_leader_stops_fewer() -> None:
    middling = run("c004", curve(0.45), done=0.5)
    assert stopped(*STARTUP, middling) == ["004-s1000"]
    assert stopped(*STARTUP, middling, leader=Incumbent(0.7, 0.02, seed_sd=0.3)) == []


def test_minimising_is_maximising_what_is_negated() -> None:
    def negated(state: RunState) -> RunState:
        values = tuple(-value for value in state.evaluations.values)
        score = replace(state.score, mean=-state.score.mean) if state.score else None
        return replace(state, evaluations=Series(state.evaluations.steps, values), score=score)

    states = (*STARTUP, POOR, run("c005", curve(0.75), done=0.5), run("c006", curve(0.45), done=0.5))
    rules = StopRules(maximize=False, objective="loss")
    history = History(tuple(map(negated, states)), maximize=False)
    one = RULES.decide(History(states), LEADER)
    two = rules.decide(history, Incumbent(-0.7, 0.02))
    assert [stop.run_id for stop in two] == [stop.run_id for stop in one] == ["004-s1000", "006-s1000"]
    assert "is above the start-up median" in two[0].reason
    seen = scores_seen(history, maximize=False)
    assert seen == scores_seen(History(states))


def test_each_part_can_be_switched_off() -> None:
    fallen = run("c005", [0.0, 0.3, 0.6, 0.6, 0.6, *[0.0] * 16], done=0.7)
    assert stopped(*STARTUP, POOR, fallen) == ["004-s1000", "005-s1000"]
    assert stopped(*STARTUP, POOR, rules=StopRules(curves=False)) == []
    assert stopped(*STARTUP, POOR, fallen, rules=StopRules(curves=False)) == ["005-s1000"]
    (stop,) = StopRules(guards=False).decide(History((*STARTUP, fallen)), LEADER)
    assert stop.reason.startswith("stopped at 140/200")
    assert stopped(*STARTUP, POOR, fallen, rules=StopRules(curves=False, guards=False)) == []


def test_a_study_that_has_just_begun_stops_nothing() -> None:
    assert stopped() == []
    assert stopped(replace(POOR, evaluations=Series((), ()))) == []


@pytest.mark.parametrize("change", [{"after": 0.0}, {"after": 1.0}, {"probability": 0.5}, {"reference": 3}])
def test_numbers_out_of_range_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(change))}={next(iter(change.values())):g}"):
        StopRules(**change)  # type: ignore[arg-type]
