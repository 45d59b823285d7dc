"""Studies and run folders made up for the reports: every kind of ending, no training."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from leverl.record.layout import RunFolder
from leverl.record.metrics import MetricsWriter
from leverl.record.run_record import Outcome, RunRecord, Score
from leverl.record.series import Series
from leverl.tune.evidence.recommendation import recommend
from leverl.tune.model import (
    CONFIRM,
    RACE,
    SEARCH,
    Comparison,
    Cost,
    History,
    LeverAxis,
    Params,
    Prediction,
    Run,
    RunState,
    StudyView,
    Winner,
)
from leverl.tune.space import space as spaces
from leverl.tune.space.axis import Axis
from leverl.tune.space.space import Space
from leverl.vocabulary.ratio_bins import RATIO_BINS

HOSTILE = (
    "</script><script>alert('x')</script><b onmouseover=\"x\">&amp; `|` [a](javascript:x) {{7*7}} "
    "<!--leverl:library-->"
)
STEPS = 200

AXES = (
    LeverAxis("actor_learning_rate", "log", 1e-6, 1e-2, (), 1e-3),
    LeverAxis("kl_coef", "log", 1e-4, 1e-1, (0,), 1e-3),
    LeverAxis("ppo_epochs", "int", 1, 4, (), 1),
    LeverAxis("kl_estimator", "categorical", None, None, ("k2", "k3"), "k2"),
)


def make_space() -> Space:
    """The space behind AXES; nothing has to be trained."""
    axes = (
        Axis("actor_learning_rate", low=1e-6, high=1e-2, scale="log"),
        Axis("kl_coef", low=1e-4, high=1e-1, scale="log", other=0),
        Axis("ppo_epochs", kind="int", low=1, high=4),
        Axis("kl_estimator", kind="categorical", values=("k2", "k3")),
    )
    return spaces.free(axes, base={axis.name: axis.base for axis in AXES if axis.base is not None})


@pytest.fixture(scope="session")
def space() -> Space:
    return make_space()


def _quality(params: Params) -> float:
    rate = float(params.get("actor_learning_rate", 1e-3))
    return 0.78 * math.exp(-((math.log10(rate) + 2.4) ** 2) / 1.1) - 0.02 * float(params.get("ppo_epochs", 1))


def _curve(level: float, until: int, seed: int, spread: float) -> Series:
    noise = np.random.default_rng(seed)
    steps = tuple(range(0, until + 1, 10))
    values = [
        0.08 + (level - 0.08) * (1 - math.exp(-4 * step / STEPS)) + spread * float(noise.normal())
        for step in steps
    ]
    return Series(steps, tuple(values))


def _write_metrics(folder: Path, until: int, level: float, seed: int) -> None:
    noise = np.random.default_rng(seed)
    with MetricsWriter(RunFolder(folder).metrics) as writer:
        for step in range(1, until + 1, 4):
            done = step / STEPS
            writer.write(
                step,
                {
                    "kl_divergence": 0.05 * level * done + 0.001 * float(noise.normal()),
                    "response_length/mean": 5.5 - done + 0.1 * float(noise.normal()),
                },
            )


def run_state(
    folder: Path,
    config_id: str,
    params: Params,
    seed: int,
    phase: str,
    *,
    outcome: Outcome | None = Outcome.FINISHED,
    message: str = "",
    step: int = STEPS,
    metrics: bool = True,
) -> RunState:
    """One run of a study with a plausible curve."""
    run_id = f"{config_id[1:]}-s{seed}"
    level = _quality(params) + 0.03 * float(np.random.default_rng([seed, int(config_id[1:])]).normal())
    ran_on = outcome in (Outcome.FINISHED, Outcome.STOPPED, Outcome.INTERRUPTED, None)
    evaluations = _curve(level, step, seed + 100 * int(config_id[1:]), 0.015) if ran_on else Series((), ())
    scored = outcome in (Outcome.FINISHED, Outcome.STOPPED)
    if metrics and ran_on:
        _write_metrics(folder / "trials" / run_id, step, level, seed)
    return RunState(
        run=Run(run_id, config_id, params, seed, STEPS, phase),
        folder=folder / "trials" / run_id,
        outcome=outcome,
        score=Score(sum(evaluations.values[-3:]) / 3, 0.021, 3) if outcome is Outcome.FINISHED else None,
        prediction=Prediction(level, 0.06) if outcome is Outcome.STOPPED else None,
        evaluations=evaluations,
        kl=0.03 * level if scored else None,
        length=4.6 if scored else None,
        steps_to_90=100 + 10 * (int(config_id[1:]) % 7) if scored else None,
        cost=_cost(step, params),
        message=message,
    )


def _cost(step: int, params: Params) -> Cost:
    """More passes over a batch take longer."""
    seconds = step * (0.2 + 0.1 * float(params.get("ppo_epochs", 1)))
    return Cost(step, step * 256, step * 256 * 9, seconds)


def _search_runs(folder: Path, count: int, metrics: bool) -> list[RunState]:
    endings = {
        5: (Outcome.STOPPED, "stopped at step 60: 0.18 is below the median 0.44 (P(beats leader) 1 %)", 60),
        8: (Outcome.OUT_OF_MEMORY, "out of memory (batch 512 × 2048 tokens): avoided from now on", 3),
        11: (Outcome.NON_FINITE, "grad_norm became NaN at step 41", 41),
        14: (Outcome.CRASHED, f"ZeroDivisionError in {HOSTILE}", 12),
        17: (Outcome.TIMED_OUT, "no step for 600 s", 80),
        20: (Outcome.LOST, "the process vanished; started again", 25),
        23: (Outcome.INTERRUPTED, "Ctrl-C", 40),
        26: (Outcome.STOPPED, "stopped at step 100: cannot reach the leader", 100),
    }
    noise = np.random.default_rng(7)
    runs = [run_state(folder, "c000", {}, 1, SEARCH, metrics=metrics)]
    for index in range(1, count):
        estimator = "k3" if noise.random() < 0.5 else "k2"
        params: dict[str, float | int | str | bool] = {
            "actor_learning_rate": float(10 ** noise.uniform(-5.5, -2)),
            "kl_coef": 0 if index % 6 == 0 else float(10 ** noise.uniform(-4, -1)),
            "ppo_epochs": int(noise.integers(1, 5)),
        }
        if params["kl_coef"]:
            params["kl_estimator"] = estimator
        outcome, message, step = endings.get(index, (Outcome.FINISHED, "", STEPS))
        runs.append(
            run_state(
                folder,
                f"c{index:03}",
                params,
                1,
                SEARCH,
                outcome=outcome,
                message=message,
                step=step,
                metrics=metrics,
            )
        )
    return runs


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., StudyView]:
    """`make_study(count=30, ending="win" | "no gain" | "open" | "empty" | "one seed")`."""

    def build(count: int = 24, ending: str = "win", name: str = "lr-kl", metrics: bool = False) -> StudyView:
        return build_study(tmp_path, count, ending, name, metrics)

    return build


def build_study(
    folder: Path, count: int, ending: str, name: str = "lr-kl", metrics: bool = False
) -> StudyView:
    runs = [] if ending == "empty" else _search_runs(folder, count, metrics)
    winner = None
    if ending in ("win", "no gain", "one seed"):
        runs, winner = _confirmed(folder, runs, ending, name, metrics)
    if ending == "open":
        params = {"actor_learning_rate": 2e-3, "kl_coef": 0.01, "ppo_epochs": 2, "kl_estimator": "k2"}
        for extra in range(2):
            runs.append(
                run_state(
                    folder, f"c{count + extra:03}", params, 1, SEARCH, outcome=None, step=60 + 50 * extra
                )
            )
    history = History(tuple(runs))
    return StudyView(
        name=name,
        folder=folder,
        target="grpo",
        base_settings={"task": "sort", "steps": STEPS},
        strategy="bayes",
        sampler="optuna GPSampler",
        objective="eval/score",
        axes=AXES,
        history=history,
        planned={SEARCH: count + 6, RACE: 6, CONFIRM: 6} if ending in ("open", "empty") else {SEARCH: count},
        steps=STEPS,
        phase="done" if winner else SEARCH,
        budget_seconds=6 * 3600.0,
        seconds=5.8 * 3600,
        winner=winner,
        recommendation=recommend(make_space(), history, model=len(runs) < 100),
    )


def _chosen(runs: list[RunState], best: list[RunState]) -> Run:
    """The finalist that the race recommends; the base leaves the choice to the search."""
    found = recommend(make_space(), History(tuple(runs)), model=len(runs) < 100)
    return next((s.run for s in best if found and s.run.config_id == found.config_id), best[0].run)


def _confirmed(
    folder: Path, runs: list[RunState], ending: str, name: str, metrics: bool
) -> tuple[list[RunState], Winner]:
    finished = [s for s in runs if s.outcome is Outcome.FINISHED and s.run.config_id != "c000" and s.score]
    best = sorted(finished, key=lambda state: -(state.score.mean if state.score else 0))[:4]
    for seed in (101, 102):
        runs += [run_state(folder, s.run.config_id, s.run.params, seed, RACE, metrics=metrics) for s in best]
    top = _chosen(runs, best)
    seeds = (201,) if ending == "one seed" else (201, 202, 203)
    for seed in seeds:
        runs.append(run_state(folder, top.config_id, top.params, seed, CONFIRM, metrics=metrics))
        runs.append(run_state(folder, "c000", {}, seed, CONFIRM, metrics=metrics))
    scores = {
        config: tuple(
            s.score.mean for s in runs if s.run.config_id == config and s.run.phase == CONFIRM and s.score
        )
        for config in (top.config_id, "c000")
    }
    difference = sum(scores[top.config_id]) / len(seeds) - sum(scores["c000"]) / len(seeds)
    gain = ending == "win"
    if not gain:
        difference = 0.015
    interval = {"win": (difference - 0.08, difference + 0.08), "no gain": (-0.02, 0.05), "one seed": None}[
        ending
    ]
    comparison = Comparison(
        seeds, scores[top.config_id], scores["c000"], difference, interval, gain, top.config_id
    )
    verdict = {
        "win": f"Use {top.config_id}: 0.71, +0.19 over the base (95 % CI +0.11 … +0.27, 3 fresh seeds).",
        "no gain": "No difference shown (95 % CI −0.02 … +0.05): keep the base.",
        "one seed": "No difference shown (1 fresh seed gives no interval): keep the base.",
    }[ending]
    best_yaml = folder / "best.yaml"
    best_yaml.write_text("extends: grpo\nactor_learning_rate: 2.1e-3\n", encoding="utf-8")
    config_id = top.config_id if gain else "c000"
    winner = Winner(
        name, config_id, top.params if gain else {}, comparison, verdict, best_yaml, folder / "report.html"
    )
    return runs, winner


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """`make_run(outcome=…, steps=…)`: the folder of a run."""

    def build(
        outcome: Outcome | None = Outcome.FINISHED,
        steps: int = 120,
        name: str = "grpo-sort",
        hostile: bool = False,
    ) -> Path:
        return build_run(tmp_path / name, outcome, steps, hostile)

    return build


def build_run(path: Path, outcome: Outcome | None, steps: int, hostile: bool = False) -> Path:
    folder = RunFolder(path)
    noise = np.random.default_rng(3)
    with MetricsWriter(folder.metrics) as writer:
        for step in range(steps + 1):
            writer.write(step, step_metrics(step, steps, noise))
    for step in range(0, steps + 1, 20):
        _write_samples(folder, step, hostile)
    folder.config.write_text(
        "seed: 0\nmodel: {path: embedded}\nactor: {learning_rate: 0.001}\nalgorithm: {name: grpo}\n",
        encoding="utf-8",
    )
    score = Score(0.61, 0.03, 3) if outcome in (Outcome.FINISHED, Outcome.STOPPED) else None
    record = RunRecord(
        "x", 0, steps, HOSTILE if hostile else "grpo", outcome=outcome, step=steps, score=score,
        message="" if score else "grad_norm became NaN", started="2026-11-30T11:30:00+00:00", seconds=51.7,
        token="abcdef123456", versions={"leverl": "0.1.0", "torch": "2.9"},
    )  # fmt: skip
    record.save(folder.record)
    return path


def step_metrics(step: int, steps: int, noise: np.random.Generator) -> dict[str, float | int | list[int]]:
    """Metrics of one step of a run that learns."""
    done = step / max(1, steps)
    edges = np.log(np.array(RATIO_BINS))
    draws = noise.normal(0, 0.05 + 0.1 * done, 600)
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(RATIO_BINS) + 1)
    found: dict[str, float | int | list[int]] = {
        "critic/score/mean": 0.2 + 0.5 * done + 0.03 * float(noise.normal()),
        "critic/score/std": 0.3,
        "group/dead_share": 0.1 + 0.3 * done,
        "kl_divergence": 0.03 * done + 0.002 * float(noise.normal()),
        "kl_divergence_k3": 0.03 * done + 0.001,
        "actor/entropy": 2.0 - 1.2 * done,
        "actor/grad_norm": 0.8 + 0.3 * float(noise.random()) + (9 if step == 50 else 0),
        "actor/pg_clipfrac": 0.04 * done,
        "ratio/below": 0.02 * done,
        "ratio/inside": 1 - 0.05 * done,
        "ratio/above": 0.03 * done,
        "response_length/mean": 5.4 - done,
        "response_length/p99": 6.0,
        "rollout/truncated": 0.2 * (1 - done),
        "timing_s/gen": 0.2,
        "timing_s/update_actor": 0.12,
        "timing_s/sync": 0.01,
        "timing_s/step": 0.36,
        "perf/tokens_per_second": 3100.0 + 50 * float(noise.normal()),
        "ratio/histogram": [int(count) for count in counts],
    }
    if step % 20 == 0:
        found |= {
            "eval/score": 0.1 + 0.5 * done,
            "eval/score_se": 0.03,
            "eval/length": 4.5,
            "eval/truncated": 0.0,
        }
        found["timing_s/eval"] = 0.3
    return found


def _sample(
    prompt: str, response: str, score: float | None, truth: str, truncated: bool
) -> dict[str, object]:
    return {
        "prompt": prompt,
        "response": response,
        "score": score,
        "ground_truth": truth,
        "truncated": truncated,
    }


def _write_samples(folder: RunFolder, step: int, hostile: bool) -> None:
    folder.samples.mkdir(parents=True, exist_ok=True)
    rows = [
        _sample("312", HOSTILE if hostile else "123", 1.0, "123", False),
        _sample("645", "4566666", None, "456", True),
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"prompt": "cut'
    folder.samples_of(step).write_text(text, encoding="utf-8")
