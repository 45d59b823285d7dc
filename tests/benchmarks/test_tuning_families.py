"""The tasks that tuners are compared on: the synthetic one, and made-up tables in place of the recorded ones."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from leverl.tune.model import Params, ParamValue


@pytest.fixture
def hpo_rl(load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The family over a made-up table: a run's score says which cell and which seed it is."""
    family = load("tasks.hpo_rl")
    rows = [
        {"environment": name, "log10_learning_rate": rate, "gamma": gamma, "clip_range": clip, "seed": seed}
        | {"evaluation": evaluation, "mean_return": float(rate + 6 + gamma + clip + 0.001 * seed)}
        for name, seeds in (("Enduro-v0", 5), ("Pong-v0", 3))
        for rate in range(-6, 0)
        for gamma in family.GAMMAS
        for clip in family.CLIPS
        for seed in range(seeds)
        for evaluation in range(1, 13)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / family.FILE)
    monkeypatch.setenv("LEVERL_BENCHMARK_DATA", str(tmp_path))
    return family


@pytest.fixture
def landscape(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> ModuleType:
    """The family over a made-up landscape of `sort`: truth seeds score .1 less than search seeds."""
    family = load("tasks.landscape")
    monkeypatch.setattr(family.grid, "DATA", tmp_path)
    order = family.cells()
    runs = [
        _run(cell, seed, "search", 0.01 * n) for n, cell in enumerate(order) for seed in (1000, 1001, 1002)
    ]
    judged = {*family.best_cells(runs, family.BEST), family.BASE}
    runs += [
        _run(cell, seed, "truth", 0.01 * order.index(cell) - 0.1)
        for cell in judged
        for seed in range(9000, 9005)
    ]
    runs[0] |= {"score": None, "score_se": None, "outcome": "failed"}
    curves = [
        {**run, "step": step, "responses": family.RESPONSES * step // 12, "score": step / 12}
        for run in runs
        for step in range(13)
        if run["score"] is not None or step < 3
    ]
    parquet.write_table(pa.Table.from_pylist(runs), tmp_path / "runs_sort.parquet")
    parquet.write_table(pa.Table.from_pylist(curves), tmp_path / "landscape_sort.parquet")
    return family


def _run(cell: Any, seed: int, split: str, score: float) -> dict[str, Any]:
    found = {**cell._asdict(), "seed": seed, "split": split, "outcome": "finished", "cpu_seconds": 1.0}
    return {**found, "score": score + 0.001 * (seed % 1000), "score_se": 0.02}


def test_synthetic_runs_repeat_and_seeds_differ(load: Callable[[str], ModuleType]) -> None:
    family = load("tasks.synthetic")
    one, same, other = (family.draw("hartmann", repeat) for repeat in (3, 3, 4))
    assert one.run(one.base, 7) == same.run(one.base, 7)
    assert len({one.run(one.base, seed).score for seed in range(20)}) == 20
    assert one.run(one.base, 7) != other.run(one.base, 7)
    assert one.order != other.order or one.mirrored != other.mirrored


def test_the_synthetic_truth_is_the_mean_and_the_best_is_one(load: Callable[[str], ModuleType]) -> None:
    family = load("tasks.synthetic")
    task = family.draw("hartmann", 0)
    params = dict(task.base)
    for place, value in enumerate(family.OPTIMUM):
        lever = task.order[place]
        params[task.axes[lever].name] = 1 - value if task.mirrored[place] else value
    assert task.truth(params) == pytest.approx(task.best, abs=1e-9)
    scores = [task.run(params, seed).score for seed in range(400)]
    assert np.mean(scores) == pytest.approx(1.0, abs=4 * 2 * family.NOISE / 20)
    for lever in task.order[family.LIVE :]:
        assert task.truth(params | {task.axes[lever].name: 0.123}) == task.truth(params)


def test_synthetic_runs_fail_in_one_corner(load: Callable[[str], ModuleType]) -> None:
    family = load("tasks.synthetic")
    task = family.draw("hartmann", 1)
    random = np.random.default_rng(0)
    drawn = [
        {axis.name: float(u) for axis, u in zip(task.axes, random.random(8), strict=True)}
        for _ in range(4000)
    ]
    failed = [params for params in drawn if task.run(params, 0).score is None]
    assert 0.04 < len(failed) / len(drawn) < 0.06
    assert all(task.truth(params) == 0.0 for params in failed)


def cells_of(grid: Sequence[Params]) -> set[tuple[tuple[str, ParamValue], ...]]:
    return {tuple(sorted(cell.items())) for cell in grid}


def test_grids_of_a_formula_have_54_different_cells(load: Callable[[str], ModuleType]) -> None:
    task = load("tasks.synthetic").draw("hartmann", 0)
    grids = [cells_of(task.grid(np.random.default_rng(seed))) for seed in range(20)]
    assert {len(grid) for grid in grids} == {54}
    assert grids[0] != grids[1]


def test_a_recorded_grid_is_the_whole_space_of_its_repeat(hpo_rl: ModuleType) -> None:
    random, spaces = np.random.default_rng(0), set()
    for repeat in range(12):
        task = hpo_rl.draw("enduro", repeat)
        values = (axis.choices() for axis in task.axes)
        space = [dict(zip(task.base, found, strict=True)) for found in itertools.product(*values)]
        assert len(space) == 54
        assert cells_of(task.grid(random)) == cells_of(space)
        assert task.base in space
        assert task.best == max(task.truth(cell) for cell in space)
        spaces.add(frozenset(cells_of(space)))
    assert len(spaces) > 6


@pytest.mark.parametrize(("name", "search", "seeds"), [("enduro", 3, 5), ("pong", 2, 3)])
def test_truth_comes_from_other_seeds_than_the_search(
    hpo_rl: ModuleType, name: str, search: int, seeds: int
) -> None:
    """In the made-up table a score grows by the same step from seed to seed, so that both sides show theirs."""
    low, high = (sum(ends) + 0.001 * (seeds - 1) / 2 for ends in ((0, 0.8, 0.2), (5, 1.0, 0.4)))
    splits = set()
    for repeat in range(12):
        task = hpo_rl.draw(name, repeat)
        rate, gamma, clip = (axis.choices()[0] for axis in task.axes)
        cell = hpo_rl.RATES.index(rate) + gamma + clip
        shown, truth = (x * (high - low) + low - cell for x in (task.scores[0], task.truths[0]))
        searched = {round(1000 * score) for score in shown}
        hidden = set(range(seeds)) - searched
        assert task.search_seeds == len(searched) == search
        assert 1000 * truth == pytest.approx(np.mean(list(hidden)))
        splits.add(frozenset(searched))
    assert len(splits) > 1


def test_resampled_seeds_differ_from_recorded_ones(hpo_rl: ModuleType) -> None:
    task = hpo_rl.draw("enduro", 0)
    recorded = [task.run(task.base, seed).score for seed in range(3)]
    more = [task.run(task.base, seed) for seed in range(3, 200)]
    assert more == [task.run(task.base, seed) for seed in range(3, 200)]
    assert len({run.score for run in more} - set(recorded)) > 1
    assert np.mean([run.score for run in more]) == pytest.approx(
        np.mean(recorded), abs=0.3 * np.std(recorded)
    )
    assert np.std([run.score for run in more]) == pytest.approx(np.std(recorded, ddof=1), rel=0.1)
    assert all(run.curve[-1] == pytest.approx(run.score) for run in more)  # these curves are flat
    assert task.run(task.base, 0).curve == pytest.approx([recorded[0]] * 12)


def test_a_landscape_keeps_truth_seeds_apart(landscape: ModuleType) -> None:
    assert set(landscape.missing()) == {"copy"}
    task = landscape.draw("sort", 0)
    best, fail, plain = (dict(landscape.cells()[n]._asdict()) for n in (-1, 0, 1))
    assert task.truth(best) == task.best == pytest.approx(0.53 - 0.1 + 0.002)
    assert task.truth(plain) == pytest.approx(0.01 + 0.001)
    assert task.truth(fail) == pytest.approx((0.001 + 0.002) / 3)
    assert max(task.run(best, seed).score for seed in range(3)) == pytest.approx(0.532)
    assert task.run(best, 0).error == pytest.approx(0.02)
    assert task.run(best, 0).curve == pytest.approx([step / 12 for step in range(1, 13)])
    assert [task.run(fail, seed).score is None for seed in range(3)].count(True) == 1
    assert len(task.grid(np.random.default_rng(0))) == 54


def test_an_incomplete_landscape_is_left_out(landscape: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "runs_sort.parquet"
    rows = parquet.read_table(path).to_pylist()
    parquet.write_table(pa.Table.from_pylist(rows[:-7]), path)
    assert landscape.missing()["sort"] == "incomplete: 7 of 65 truth runs are not recorded yet"
    parquet.write_table(pa.Table.from_pylist(rows[:100]), path)
    assert landscape.missing()["sort"] == "incomplete: 62 of 162 search runs are not recorded yet"
    with pytest.raises(ValueError, match="incomplete"):
        landscape.draw("sort", 0)


def test_absent_data_are_said(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LEVERL_BENCHMARK_DATA", str(tmp_path))
    families = load("tasks.catalogue")
    assert "synthetic" in families.available()
    assert "hpo_rl" not in families.available()
    assert "LEVERL_BENCHMARK_DATA" in families.absent()["hpo_rl/pong"]


def test_a_row_of_the_summary(load: Callable[[str], ModuleType], hpo_rl: ModuleType) -> None:
    script = load("families")
    row = script.row(hpo_rl.draw("pong", 0))
    assert row.startswith("| hpo_rl, pong | 3 | 54 | 2 | 1.000 |")
    assert row.count("|") == script.HEADER.splitlines()[0].count("|")
