from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import qmc

from leverl.tune.model import Params
from leverl.tune.space.axis import Axis
from leverl.tune.space.priors import Prior
from leverl.tune.space.space import key
from leverl.tune.surrogate.measurement import Measurement
from leverl.tune.surrogate.model import fit
from leverl.tune.surrogate.propose import propose

AXES = (Axis("a", low=0.0, high=1.0), Axis("b", low=0.0, high=1.0))
LATTICE = (
    Axis("a", kind="categorical", values=(0.0, 0.25, 0.5, 0.75, 1.0)),
    Axis("b", kind="categorical", values=(0.0, 0.5, 1.0)),
)
CELLS = [{"a": a, "b": b} for a in LATTICE[0].values for b in LATTICE[1].values]


def ask(found: list[Measurement], n: int = 1, axes: tuple[Axis, ...] = AXES, **more: Any) -> list[Params]:
    admit: Callable[[Params], Params | None] = more.pop("admit", lambda params: params)

    def candidates(generator: np.random.Generator, count: int) -> list[Params]:
        drawn = ({axis.name: axis.at(generator.random()) for axis in axes} for _ in range(count))
        return [admitted for params in drawn if (admitted := admit(params)) is not None]

    return propose(axes, found, admit=admit, candidates=candidates, seed=more.pop("seed", 0), n=n, **more)


def done(params: Params, value: float, **more: Any) -> Measurement:
    return Measurement(params, value, more.pop("variance", 0.0), more.pop("state", "finished"), **more)


def hill(params: Params) -> float:
    """Best at a = 0.7, b = 0.3."""
    return -((float(params["a"]) - 0.7) ** 2) - (float(params["b"]) - 0.3) ** 2


def spread(count: int, score: Callable[[Params], float] = hill, **more: Any) -> list[Measurement]:
    points = qmc.Sobol(d=2, scramble=True, rng=np.random.default_rng(1)).random(32)[:count]
    return [done(p, score(p), **more) for p in ({"a": float(a), "b": float(b)} for a, b in points)]


def test_the_same_runs_give_the_same_proposals() -> None:
    found = spread(8)
    assert ask(found, 2) == ask(found, 2)
    assert ask(found) != ask(found, seed=1)
    assert ask([], 3) == ask([], 3) != ask([], 3, seed=1)


def test_nobody_elses_random_numbers_are_touched() -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    threads = torch.get_num_threads()
    ask(spread(8), 2)
    assert torch.equal(torch_before, torch.get_rng_state())
    numpy_after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(one, two) for one, two in zip(numpy_before, numpy_after, strict=True))
    assert torch.get_num_threads() == threads


def test_it_starts_spread_out() -> None:
    proposals = ask([], 8, startup=8)
    quarters = {(int(p["a"] > 0.5), int(p["b"] > 0.5)) for p in proposals}
    assert len(quarters) == 4
    assert proposals[0] == ask([], 1)[0]


def test_then_it_goes_where_it_is_good() -> None:
    found = spread(8)
    for _ in range(4):
        (params,) = ask(found)
        found.append(done(params, hill(params)))
    assert max(hill(one.params) for one in found[8:]) > -0.005


def test_a_wide_space_starts_with_a_third_of_the_budget_at_most() -> None:
    """With three tenths spent the model decides, though 3 of 20 start-up points are done."""
    found = [
        done({"a": 0.1, "b": 0.1}, 0.0),
        done({"a": 0.7, "b": 0.3}, 1.0),
        done({"a": 0.9, "b": 0.9}, 0.0),
    ]
    assert ask(found, startup=20, spent=0.3) != ask(found, startup=20, spent=0.29)


def test_runs_in_flight_are_never_proposed_again() -> None:
    found, flying = [done(p, hill(p)) for p in CELLS[::2]], CELLS[1::2]
    pending = [Measurement(p, None, 0.0, "pending") for p in flying[1:]]
    again = ask([*found, *pending], 1, LATTICE, cells=CELLS, replicates=False)
    assert again == [flying[0]]
    pending.append(Measurement(flying[0], None, 0.0, "pending"))
    assert ask([*found, *pending], 1, LATTICE, cells=CELLS, replicates=False) == []


def test_proposals_of_one_call_differ_and_follow_from_each_other() -> None:
    found = spread(8)
    four = ask(found, 4)
    assert len({key(params) for params in four}) == 4
    first = Measurement(four[0], None, 0.0, "pending")
    assert ask([*found, first]) == [four[1]]
    gaps = [
        abs(float(x["a"]) - float(y["a"])) + abs(float(x["b"]) - float(y["b"])) for x, y in pairwise(four)
    ]
    assert min(gaps) > 1e-3


def test_a_finite_space_ends() -> None:
    proposals = ask([done(CELLS[0], 0.0)], 40, LATTICE, cells=CELLS)
    assert len({key(p) for p in proposals}) == len(proposals) == len(CELLS) - 1


def test_what_cannot_run_is_not_proposed_and_idle_levers_are_dropped() -> None:
    def admit(params: Params) -> Params | None:
        if float(params["a"]) > 0.8:
            return None
        return params if float(params["a"]) > 0.4 else {"a": params["a"]}

    found = [done(admitted, hill(m.params)) for m in spread(12) if (admitted := admit(m.params)) is not None]
    for params in [*ask(found, 4, admit=admit), *ask([], 4, admit=admit)]:
        assert admit({"b": 0.5, **params}) is not None
        assert ("b" in params) == (float(params["a"]) > 0.4)


def test_a_reward_that_rises_towards_a_wall_of_memory() -> None:
    """Told as failures that are forgotten, nine in ten of the later proposals would fail."""
    found, failed = [], []
    for number in range(25):
        (params,) = ask(found, startup=5)
        a, b = float(params["a"]), float(params["b"])
        if a + 0.3 * b > 0.8:
            found.append(Measurement(params, None, 0.0, "failed"))
        else:
            found.append(done(params, a + 0.1 * b))
        if number >= 5:
            failed.append(found[-1].value is None)
    assert sum(failed) <= 6  # of 20
    assert max(m.value for m in found if m.value is not None) > 0.75  # of 0.8


def test_the_posterior_mean_beats_the_highest_score() -> None:
    """A quarter of the variance is noise; regret of both recommendations over 24 seeds."""
    by_model, by_score = [], []
    for seed in range(24):
        generator = np.random.default_rng(seed)
        points = generator.random((24, 2))
        found = [{"a": float(a), "b": float(b)} for a, b in points]
        runs = [done(p, hill(p) + 0.1 * generator.standard_normal()) for p in found]
        surrogate = fit(AXES, runs, seed=0)
        assert surrogate is not None
        best = max(hill(p) for p in found)
        by_model.append(best - hill(found[int(surrogate.posterior(found).mean.argmax())]))
        by_score.append(best - hill(max(runs, key=lambda m: m.value or 0.0).params))
    assert np.mean(by_model) < 0.8 * np.mean(by_score)


def test_without_noise_nothing_runs_twice() -> None:
    found = spread(10)
    for _ in range(4):
        (params,) = ask(found)
        assert key(params) not in {key(one.params) for one in found}
        found.append(done(params, hill(params)))


def test_with_much_noise_a_second_seed_can_be_worth_more() -> None:
    """The two best are not told apart yet, and all points away from the one new cell."""
    axis = Axis("a", kind="categorical", values=tuple(np.linspace(0, 1, 9).tolist()))
    cells = [{"a": value} for value in axis.values]
    generator = np.random.default_rng(0)
    found = [
        done(cell, -3 * abs(float(cell["a"]) - 0.8125) + 0.4 * generator.standard_normal())
        for cell in cells[1:]
        for _ in range(2)
    ]
    (params,) = ask(found, 1, (axis,), cells=cells)
    assert params in cells[5:]
    assert ask(found, 1, (axis,), cells=cells, replicates=False) == [cells[0]]


def test_four_runs_of_a_configuration_are_enough() -> None:
    generator = np.random.default_rng(0)
    found = [done(p, hill(p) + 0.3 * generator.standard_normal()) for p in CELLS for _ in range(4)]
    assert ask(found, 1, LATTICE, cells=CELLS) == []


def test_a_promising_run_that_was_stopped_is_continued() -> None:
    """The best prediction is vague; all else is known and worse."""
    found = [done(p, hill(p)) for p in CELLS if p != {"a": 0.75, "b": 0.5}]
    found += [done(found[0].params, found[0].value or 0.0)]  # a replicate: there is no seed noise
    vague = done({"a": 0.75, "b": 0.5}, 0.1, variance=0.05, state="predicted")
    assert ask([*found, vague], 1, LATTICE, cells=CELLS) == [vague.params]


def test_a_belief_counts_at_first_and_fades() -> None:
    believed = (Axis("a", low=0.0, high=1.0, prior=Prior(0.9, 0.15)), AXES[1])
    few = spread(4, lambda params: 0.0)
    drawn = [float(ask(few, 1, believed, seed=seed)[0]["a"]) for seed in range(5)]
    assert np.median(drawn) == pytest.approx(0.9, abs=0.15)
    places = [{"a": float(value), "b": 0.3} for value in np.linspace(0, 1, 40)]
    many = [done(place, hill(place)) for place in places]
    assert float(ask(many, 1, believed, seed=1)[0]["a"]) == pytest.approx(0.7, abs=0.1)


def test_cheap_runs_come_first_while_there_is_budget() -> None:
    """Two new cells, one dear and slightly better."""
    known = [p for p in CELLS if p["a"] != 0.5]
    found = [
        done(p, -abs(float(p["a"]) - 0.5) + 0.02 * float(p["b"]), cost=100 ** float(p["b"])) for p in known
    ]
    new = [CELLS[6], CELLS[8]]
    early, late, indifferent = (
        ask(found, 1, LATTICE, cells=new, spent=spent, counts_time=counts, replicates=False)
        for spent, counts in ((0.0, True), (1.0, True), (0.0, False))
    )
    assert (early, late, indifferent) == ([new[0]], [new[1]], [new[1]])  # a budget of runs has no price
