"""What was spent, saved and lost."""

from types import ModuleType

import pytest

from leverl.record.run_record import Outcome
from leverl.tune.ledger import balance, total
from leverl.tune.model import BASE, RACE, Cost, History, Prediction

RATE = {"rate": 1e-3}


def whole(made: ModuleType) -> History:
    return History(
        (
            made.run_state(BASE, {}, 0.5),
            made.run_state(
                "c001", RATE, None, outcome=Outcome.STOPPED, steps=25, prediction=Prediction(0.1, 0.1)
            ),
            made.run_state("c002", RATE, None, outcome=Outcome.OUT_OF_MEMORY, steps=3),
            made.run_state("c003", RATE, None, outcome=Outcome.LOST, steps=50),
            made.run_state("c004", RATE, None, outcome=None, steps=10),
            made.run_state("c005", RATE, None, outcome=Outcome.FINISHED),
            made.run_state("c001", RATE, 0.4, phase=RACE),
        )
    )


def test_all_that_was_spent_is_somewhere(made: ModuleType) -> None:
    found = balance(whole(made))
    assert found.runs == 7
    assert found.spent == total(whole(made))
    assert found.spent.steps == 388
    assert sum(cost.steps for cost in found.phases.values()) == 388
    assert found.useful.steps + found.running.steps + sum(c.steps for c in found.lost.values()) == 388


def test_savings_are_the_rest_of_stopped_runs_at_their_own_pace(made: ModuleType) -> None:
    found = balance(whole(made))
    assert found.stopped == 1
    assert found.saved == Cost(75, 600, 6000, pytest.approx(7.5), pytest.approx(15.0))
    assert found.saved_share == pytest.approx(75 / (388 + 75))


def test_losses_have_their_causes(made: ModuleType) -> None:
    found = balance(whole(made))
    assert found.lost_runs == {"out of memory": 1, "lost": 1, "no score": 1}
    assert found.lost["lost"].steps == 50
    assert found.lost_share == pytest.approx(153 / 388)


def test_a_run_stopped_before_its_first_step_saves_what_is_not_known(made: ModuleType) -> None:
    state = made.run_state("c001", RATE, None, outcome=Outcome.STOPPED, steps=0)
    assert balance(History((state,))).saved == Cost()
    assert balance(History(())).saved_share == 0.0
