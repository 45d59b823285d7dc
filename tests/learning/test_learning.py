"""Learning, over seeds: smoke tests, for many bugs leave curves looking fine (the exact checks are elsewhere).

Cases and settings are those of benchmarks/learning.py; measured.json holds what it measured over 5 seeds, and the
gates below leave room around that.
"""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
MEASURED = json.loads((Path(__file__).parent / "measured.json").read_text())
SEEDS = (0, 1, 2)

# (largest number of steps to 0.95 held-out accuracy, smallest final accuracy), each seed
GATES = {
    "echo-grpo": (90, 0.99),  # measured: 54 ± 3 steps, at most 65; final 1.0 on 5 of 5 seeds
    "echo-rloo": (90, 0.99),  # 41 ± 4, at most 50; 1.0
    "echo-ppo": (90, 0.99),  # 54 ± 3, at most 65; 1.0
    "copy-grpo": (190, 0.97),  # 138 ± 5, at most 150; 0.996 or more
    "copy-rloo": (190, 0.97),  # 128 ± 4, at most 140; 1.0
    "copy-ppo": (190, 0.97),  # 138 ± 5, at most 150; 1.0
}


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("learning", ROOT / "benchmarks" / "learning.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", GATES)
def test_the_recorded_measurements_lie_inside_the_gates(case: str) -> None:
    steps, final = GATES[case]
    runs = MEASURED[case].values()
    assert len(runs) >= 5
    assert all(run["steps"] <= steps and run["final"] >= final for run in runs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", GATES)
def test_echo_and_copy_are_learnt(case: str, seed: int) -> None:
    steps, final = GATES[case]
    run: dict[str, Any] = benchmark().measure(case, seed)
    assert run["final"] >= final
    assert run["steps"] is not None
    assert run["steps"] <= steps


def rate_scan(prefix: str) -> dict[float, float]:
    """Mean final accuracy by learning rate, as measured."""
    cases = {case: runs for case, runs in MEASURED.items() if case.startswith(prefix)}
    return {
        float(case.removeprefix(prefix)): sum(run["final"] for run in runs.values()) / len(runs)
        for case, runs in cases.items()
    }


def plateau(scan: dict[float, float]) -> tuple[float, float]:
    """The rates next to the optimum of the scan, on both sides, that reach less than three quarters of it."""
    best = max(scan, key=lambda rate: scan[rate])
    poor = [rate for rate in scan if scan[rate] < 0.75 * scan[best]]
    return max(rate for rate in poor if rate < best), min(rate for rate in poor if rate > best)


@pytest.mark.parametrize("prefix", ["sort-lr-", "demo-lr-"])
def test_the_measured_scan_of_the_learning_rate_has_an_interior_optimum(prefix: str) -> None:
    scan = rate_scan(prefix)
    best = max(scan, key=lambda rate: scan[rate])
    assert min(scan) < best < max(scan)
    assert scan[best] > 0.2 + max(scan[min(scan)], scan[max(scan)])


def test_the_scan_of_the_learning_rate_on_sort_is_still_what_was_measured() -> None:
    low, best, high = (
        [benchmark().measure(f"sort-lr-{rate:g}", seed)["final"] for seed in (0, 1)]
        for rate in (1e-4, 1e-3, 1e-2)
    )
    assert min(best) > max(*low, *high)


def test_the_winner_of_the_packaged_study_lies_on_the_plateau(tmp_path: Path) -> None:
    import leverl
    from leverl.tune.view import read_study

    winner = leverl.tune("demo", name="study", out=tmp_path)
    view = read_study(winner.best_yaml.parent)
    rate = winner.params.get("actor_learning_rate", view.axes[0].base)
    assert isinstance(rate, float)
    low, high = plateau(rate_scan("demo-lr-"))
    assert low < rate < high
    assert winner.comparison is not None or winner.config_id == "c000"
    assert leverl.train(winner.best_yaml, {"steps": 1, "eval_every": 1}, name="best", out=tmp_path).score
