"""What a report says beyond the runs."""

import math
from dataclasses import replace
from types import ModuleType

import pytest

from leverl.record.run_record import Outcome
from leverl.tune.analysis.analyse import analyse
from leverl.tune.analysis.course import POINTS, course
from leverl.tune.analysis.standings import agreement, standings
from leverl.tune.analysis.surface import values_along
from leverl.tune.analysis.trade_off import trade_offs
from leverl.tune.evidence.recommendation import recommend
from leverl.tune.model import BASE, CONFIRM, RACE, History, Prediction
from leverl.tune.space.axis import Axis
from leverl.tune.space.constraints import parse_constraints


def test_without_a_score_there_is_nothing_to_say(made: ModuleType) -> None:
    assert analyse(made.space(), History(())) is None
    failed = made.run_state(BASE, {}, None, outcome=Outcome.CRASHED)
    assert analyse(made.space(), History((failed,))) is None


def test_few_configurations_have_standings_but_no_model(made: ModuleType) -> None:
    found = analyse(made.space(), made.searched(3))
    assert found is not None
    assert found.model is None
    assert "needs 4 configurations" in found.without_model
    assert len(found.standings) == 3


def test_the_lever_that_matters_is_found_and_its_slice_peaks_at_the_truth(made: ModuleType) -> None:
    found = analyse(made.space(), made.searched())
    assert found is not None
    assert found.model is not None
    first, last = found.model.importance
    assert (first.lever, last.lever) == ("rate", "idle")
    assert first.low <= first.median <= first.high
    assert first.low > last.high
    rate = found.model.slices[0]
    assert rate.lever == "rate"
    best = max(rate.points, key=lambda point: point.mean)
    assert math.log10(float(best.value)) == pytest.approx(-3, abs=0.35)
    assert best.mean == pytest.approx(0.8, abs=0.04)
    assert all(point.sd > 0 for point in rate.points)
    assert found.model.surface is not None
    assert (found.model.surface.across, found.model.surface.up) == ("rate", "idle")


def test_left_out_configurations_lie_inside_their_intervals(made: ModuleType) -> None:
    found = analyse(made.space(), made.searched())
    assert found is not None
    assert found.model is not None
    assert found.model.coverage is not None
    assert found.model.coverage >= 0.8
    observed = {one.config_id: one.observed for one in found.model.left_out}
    assert observed[BASE] == pytest.approx(made.truth({}))


@pytest.mark.parametrize("maximize", [True, False])
def test_numbers_have_the_direction_of_the_objective(made: ModuleType, maximize: bool) -> None:
    history = made.searched(maximize=maximize)
    found = analyse(made.space(), history)
    assert found is not None
    assert found.model is not None
    sign = 1 if maximize else -1
    means = [sign * one.mean for one in found.standings]
    assert means == sorted(means, reverse=True)
    assert means[0] == pytest.approx(0.8, abs=0.05)
    assert found.standings[0].rank < found.standings[-1].rank
    best = max(found.model.slices[0].points, key=lambda point: sign * point.mean)
    assert sign * best.mean == pytest.approx(0.8, abs=0.05)
    assert sign * found.course[-1].mean == pytest.approx(0.8, abs=0.05)


def test_the_leader_of_the_standings_is_the_one_recommended(made: ModuleType) -> None:
    history = made.searched()
    found = analyse(made.space(), history)
    best = recommend(made.space(), history)
    assert found is not None
    assert best is not None
    assert found.leader == best.config_id
    own = next(one for one in found.standings if one.config_id == best.config_id)
    assert own.mean == pytest.approx(best.mean)
    assert own.probability_best == pytest.approx(best.probability_best)


def test_those_out_of_the_race_have_no_chance_given(made: ModuleType) -> None:
    history = made.searched()
    raced = [s.config_id for s in standings(made.space(), history)[:2]]
    fresh = [
        made.run_state(name, history.params(name), made.truth(history.params(name)), seed=seed, phase=RACE)
        for name in raced
        for seed in (101, 102)
    ]
    found = standings(made.space(), History((*history.runs, *fresh)))
    chances = {one.config_id: one.probability_best for one in found}
    assert sum(chance is not None for chance in chances.values()) == 2
    assert sum(chance for chance in chances.values() if chance is not None) == pytest.approx(1)


def test_the_course_ends_before_the_confirmation_and_has_few_points(made: ModuleType) -> None:
    history = made.searched(20)
    fresh = made.run_state("c001", history.params("c001"), 0.99, seed=301, phase=CONFIRM)
    found = course(made.space(), History((*history.runs, fresh)))
    assert len(found) == POINTS
    assert [lead.runs for lead in found] == sorted({lead.runs for lead in found})
    assert found[-1].runs == 20
    assert found[-1].spent["responses"] == 20 * 800
    last = recommend(made.space(), history)
    assert last is not None
    assert (found[-1].config_id, found[-1].mean) == (last.config_id, last.mean)


def test_a_base_that_leads_has_its_settings(made: ModuleType) -> None:
    history = History(made.searched(4).runs[:1])
    assert course(made.space(), history)[0].params == {"rate": 1e-4, "idle": 0.5}


def test_stopped_runs_count_by_their_prediction(made: ModuleType) -> None:
    history = made.searched(8)
    stopped = made.run_state(
        "c099", {"rate": 1e-3, "idle": 0.1}, None, outcome=Outcome.STOPPED, steps=25, seconds=12.0,
        prediction=Prediction(0.1, 0.02),
    )  # fmt: skip
    whole = History((*history.runs, stopped))
    found = {one.config_id: one for one in trade_offs(whole, standings(made.space(), whole))}
    assert found["c099"].seconds == pytest.approx(12.0)  # at full length, not the 3 s it ran
    assert found["c099"].steps_to_90 is None


def test_the_front_has_no_one_that_is_slower_and_worse(made: ModuleType) -> None:
    history = made.searched(12)
    found = trade_offs(history, standings(made.space(), history))
    front = [one for one in found if one.best_buy]
    assert front
    for one in found:
        beaten = any(
            other.score >= one.score and other.seconds <= one.seconds and other is not one  # type: ignore[operator]
            for other in found
        )
        assert one.best_buy is not beaten


def test_seeds_that_agree_and_seeds_that_do_not(made: ModuleType) -> None:
    def scored(seed: int, scores: list[float]) -> list[object]:
        return [
            made.run_state(f"c{n:03}", {"rate": 1e-3}, score, seed=seed) for n, score in enumerate(scores)
        ]

    alike = History((*scored(1, [0.1, 0.2, 0.3]), *scored(2, [0.2, 0.3, 0.9])))  # type: ignore[arg-type]
    turned = History((*scored(1, [0.1, 0.2, 0.3]), *scored(2, [0.9, 0.3, 0.2])))  # type: ignore[arg-type]
    assert agreement(alike)[0].tau == pytest.approx(1)
    assert agreement(turned)[0].tau == pytest.approx(-1)
    assert agreement(History(alike.runs[:4])) == ()


def test_bounds_are_checked_for_the_leader(made: ModuleType) -> None:
    _, bounds = parse_constraints(["kl_divergence <= 0.1"])
    bounded = replace(made.space(), metric_constraints=bounds)
    history = made.searched(6)
    runs = tuple(replace(state, bounded={"kl_divergence": 0.05}) for state in history.runs)
    found = analyse(bounded, History(runs))
    assert found is not None
    assert [(one.text, one.value, one.kept) for one in found.bounds] == [("kl_divergence <= 0.1", 0.05, True)]


def test_values_along_an_axis() -> None:
    assert values_along(Axis("n", kind="int", low=1, high=4), 9) == [1, 2, 3, 4]
    assert values_along(Axis("x", low=1e-4, high=1e-2, scale="log", other=0), 3) == pytest.approx(
        [0, 1e-4, 1e-3, 1e-2]
    )
    assert len(values_along(Axis("n", kind="int", low=1, high=1000), 9)) == 9


def test_a_lever_that_never_had_an_effect_has_no_importance(made: ModuleType) -> None:
    wide = replace(made.space(), axes=(*made.space().axes, Axis("inert", low=0.0, high=1.0)))
    found = analyse(wide, made.searched())
    assert found is not None
    assert found.model is not None
    assert {one.lever for one in found.model.importance} == {"rate", "idle"}
    assert [one.lever for one in found.model.slices] == ["rate", "idle"]
