"""Statistics, verdicts and resuming of benchmarks/tuning/regret.py, on made-up results; no peer need be installed."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

FAMILIES = ("hpo", "own", "rl", "synthetic")


@pytest.fixture
def shards(load: Callable[[str], Any]) -> Callable[..., list[Any]]:
    """Made-up shards: method → regret after 27 and after 54 runs, with the same spread over repeats for all."""
    shard = load("results.shards").Shard

    def made(
        regrets: Mapping[str, tuple[float, float]], families: Sequence[str] = FAMILIES, repeats: int = 6
    ) -> list[Any]:
        found = []
        for family in families:
            for method, values in regrets.items():
                grid = method.startswith("grid")
                for repeat in range(repeats):
                    readings = tuple(
                        {"budget": budget, "runs": budget, "run_lengths": budget, "cpu_seconds": 0.5 * budget}
                        | {"regret": value + 0.01 * repeat}
                        for budget, value in zip((27, 54), values, strict=True)
                    )
                    found.append(shard(family, "one", method, repeat, readings[1:] if grid else readings))
        return found

    return made


GOOD = {
    "leverl": (0.02, 0.01),
    "grid": (0.05, 0.05),
    "grid ×3": (0.01, 0.01),
    "random": (0.06, 0.03),
    "Ax": (0.03, 0.01),
}


def test_ranks_share_ties(load: Callable[[str], Any]) -> None:
    found = load("results.statistics").ranks([0.3, 0.1, 0.1, 0.1 + 1e-12, 0.2])
    assert found.tolist() == [5.0, 2.0, 2.0, 2.0, 4.0]


def test_the_bootstrap_interval_is_that_of_the_mean_over_tasks(load: Callable[[str], Any]) -> None:
    statistics = load("results.statistics")
    generator = np.random.default_rng(1)
    samples = [generator.normal(1.0, 0.3, 40), generator.normal(3.0, 0.1, 40)]
    found = statistics.bootstrap(samples)
    error = np.sqrt(sum(values.var(ddof=1) / 40 for values in samples)) / 2
    assert found.mean == pytest.approx((samples[0].mean() + samples[1].mean()) / 2)
    assert found.low == pytest.approx(found.mean - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(found.mean + 1.96 * error, abs=0.15 * error)
    assert statistics.bootstrap(samples) == found


def test_differences_are_paired_by_repeat(load: Callable[[str], Any], shards: Callable[..., Any]) -> None:
    statistics = load("results.statistics")
    short = shards({"Ax": (0.03, 0.01)}, ("rl",), repeats=4)
    regrets = statistics.Regrets([*shards({"leverl": (0.02, 0.01)}, ("rl",)), *short])
    one, two = statistics.Entry("leverl", 27), statistics.Entry("Ax", 27)
    (found,) = statistics.differences(regrets, one, two, regrets.tasks)
    assert found == pytest.approx([-0.01] * 4)
    assert statistics.wins([found]) == (4, 0, 0)
    assert statistics.wins([np.array([0.0, 0.2, -0.1, 1e-12])]) == (1, 2, 1)


def test_ranks_count_families_alike(load: Callable[[str], Any], shards: Callable[..., Any]) -> None:
    statistics = load("results.statistics")
    three = [shards({"leverl": (0.1, 0.1), "Ax": (0.2, 0.2)}, (f"{name}",)) for name in ("a", "b")]
    lost = shards({"leverl": (0.2, 0.2), "Ax": (0.1, 0.1)}, ("c",))
    regrets = statistics.Regrets([*three[0], *three[1], *lost])
    assert statistics.average_ranks(regrets, ["leverl", "Ax"], 27) == pytest.approx(
        {"leverl": 4 / 3, "Ax": 5 / 3}
    )
    assert statistics.average_ranks(regrets, ["leverl", "Ax"], 27, "c") == {"leverl": 2.0, "Ax": 1.0}
    assert statistics.average_ranks(regrets, ["leverl", "SMAC"], 27) == {}


def test_claims_that_hold(load: Callable[[str], Any], shards: Callable[..., Any]) -> None:
    summary, statistics = load("results.summary"), load("results.statistics")
    grid, three_seeds, half, whole = summary.claims(statistics.Regrets(shards(GOOD)))
    assert "families: holds." in grid
    assert "below in 4 of 4, in 4 of them with the whole interval" in grid
    assert "- rl: -0.0300 [-0.0300, -0.0300]" in grid
    assert "more than 0.01: holds." in three_seeds
    assert "best peer's: holds.** leverl 1.00, Ax 2.00 (of 3)" in half
    assert "No peer has less regret" in half
    assert "leverl 1.50, Ax 1.50" in whole


def test_claims_that_do_not_hold_say_by_how_much(
    load: Callable[[str], Any], shards: Callable[..., Any]
) -> None:
    summary, statistics = load("results.summary"), load("results.statistics")
    bad = {**GOOD, "leverl": (0.08, 0.04)}
    made = [*shards(GOOD, FAMILIES[:2]), *shards(bad, FAMILIES[2:])]
    grid, three_seeds, half, _ = summary.claims(statistics.Regrets(made))
    assert "families: does not hold." in grid
    assert "below in 2 of 4" in grid
    assert "- rl: +0.0300 [+0.0300, +0.0300]: not below" in grid
    assert "does not hold." in three_seeds
    assert "- rl: +0.0300 [+0.0300, +0.0300]: 0.0200 more than that" in three_seeds
    assert "does not hold." in half
    assert "- rl/one: Ax has less by 0.0500 [+0.0500, +0.0500]" in half


def test_too_few_families_are_no_verdict(load: Callable[[str], Any], shards: Callable[..., Any]) -> None:
    summary, statistics = load("results.summary"), load("results.statistics")
    grid = summary.claims(statistics.Regrets(shards(GOOD, ("rl", "own"))))[0]
    assert "not to be judged yet, 2 families are measured" in grid


def test_the_report_shows_runs_that_were_not_used(
    load: Callable[[str], Any], shards: Callable[..., Any]
) -> None:
    made = shards(GOOD)
    for shard in made:
        if shard.method == "leverl":
            shard.readings[1]["run_lengths"] = 44
    text = load("results.summary").report(made)
    assert "| leverl | 0.0450 ± 0.0076 | 0.0350 ± 0.0076 (44 runs) |  | 6 | 0.500 |" in text
    assert "| grid ×3 |  |  | 0.0350 ± 0.0076 (54 runs) | 6 | 0.500 |" in text
    assert "| rl | 27 | Ax | -0.0100 [-0.0100, -0.0100] | 6, 0, 0 |" in text


class Flat:
    """Two configurations; the second is better, and fails on its first seed."""

    name, family, search_seeds, best = "flat", "made-up", 2, 1.0

    def __init__(self) -> None:
        from leverl.tune.space.axis import Axis

        self.axes = (Axis("x", kind="categorical", values=(2, 1)),)
        self.base = {"x": 1}

    def run(self, params: Mapping[str, Any], seed: int) -> Any:
        failed = params["x"] == 2 and seed == 0
        return SimpleNamespace(score=None if failed else 0.1 * seed, curve=())

    def truth(self, params: Mapping[str, Any]) -> float:
        return 1.0 if params["x"] == 2 else 0.25

    def grid(self, generator: np.random.Generator) -> list[dict[str, int]]:
        return [{"x": 1}, {"x": 2}]


def test_every_method_names_a_module_that_is_there(load: Callable[[str], Any]) -> None:
    """Their modules are imported only when they are used, so that nothing else would say that one is missing."""
    for method in load("methods.catalogue").METHODS.values():
        assert find_spec(method.module), method.name


def test_no_method_sees_a_run_twice(load: Callable[[str], Any]) -> None:
    runs = load("methods.method").Runs(Flat())
    assert [runs.next({"x": x}).score for x in (1, 2, 1, 2)] == [0.0, None, 0.1, 0.1]
    assert runs.count == 4


def test_levels_are_in_order_for_peers(load: Callable[[str], Any]) -> None:
    (found,) = load("methods.dimensions").dimensions(Flat())
    assert found.levels == (1, 2)
    assert found.ordered
    assert found.place(2) == 1


def test_an_axis_that_peers_lack_is_refused(load: Callable[[str], Any]) -> None:
    from leverl.tune.space.axis import Axis

    task = SimpleNamespace(axes=(Axis("kl", low=1e-4, high=1e-1, scale="log", other=0.0),))
    with pytest.raises(ValueError, match="kl: no peer has words for this axis"):
        load("methods.dimensions").dimensions(task)


def test_a_path_ends_where_a_peer_has_nothing_more(load: Callable[[str], Any]) -> None:
    methods = load("methods.method")

    class Short:
        left = 3

        def ask(self) -> dict[str, int] | None:
            self.left -= 1
            return {"x": 1} if self.left >= 0 else None

        def tell(self, score: float | None) -> None: ...

        def recommend(self) -> None: ...

    found = methods.follow(Short, Flat(), (2, 5, 9))
    assert [(reading.budget, reading.runs) for reading in found] == [(2, 2), (5, 3), (9, 3)]
    assert all(reading.params == {"x": 1} for reading in found)  # the base, where nothing is recommended


def test_a_grid_never_takes_a_cell_that_failed(load: Callable[[str], Any]) -> None:
    read = load("methods.grid").read
    (single,), (several,) = read(Flat(), 0), read(Flat(), 0, seeds=3)
    assert (single.runs, single.params) == (2, {"x": 1})
    assert (several.runs, several.params) == (4, {"x": 1})  # two seeds are recorded


def test_shards_are_read_as_they_were_written(load: Callable[[str], Any], tmp_path: Path) -> None:
    shards, reading = load("results.shards"), load("methods.method").Reading
    method = load("methods.catalogue").METHODS["grid ×3"]
    path = shards.place_of(tmp_path, "made-up", "flat", method.name, 7)
    shards.write(path, Flat(), method, 7, [reading(27, 20, 19.5, {"x": 1}, 0.5)])
    (found,) = shards.read(tmp_path)
    assert (found.family, found.task, found.method, found.repeat) == ("made-up", "flat", "grid ×3", 7)
    assert found.at(27) == found.at(None)
    assert found.at(54) is None
    assert found.readings[0]["regret"] == 0.75
    assert "leverl" in json.loads(path.read_text())["versions"]
