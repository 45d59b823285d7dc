"""Checklist G: what a resumed, forked or interrupted run must be."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import leverl
from leverl.engine.train import checkpoint as checkpoints
from leverl.engine.train.run import Result
from leverl.errors import CheckpointError, ConfigError
from leverl.record.metrics import read_lines
from leverl.record.observer import Silent
from leverl.record.run_record import Outcome, load_record

Train = Callable[..., Result]

MEASURED = ("timing_s/", "perf/")


class StopAt(Silent):
    """Sends this process a signal once a step is complete."""

    def __init__(self, step: int, number: int = signal.SIGTERM) -> None:
        self.step, self.number = step, number

    def stepped(self, step: int, metrics: Any, samples: Any) -> None:
        if step == self.step:
            os.kill(os.getpid(), self.number)


def curve(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """The metrics without what a clock measured."""
    return [
        (step, {name: value for name, value in data.items() if not name.startswith(MEASURED)})
        for step, data in read_lines(folder / "metrics.jsonl")
    ]


def weights(result: Result) -> dict[str, torch.Tensor]:
    assert result.checkpoint is not None
    return load_file(result.checkpoint / "model" / "model.safetensors")


def assert_same_run(one: Result, other: Result) -> None:
    assert curve(one.folder) == curve(other.folder)
    assert_same_weights(one, other)
    for step in (2, 4, 6):
        name = f"samples/{step:06d}.jsonl"
        assert (one.folder / name).read_text() == (other.folder / name).read_text()


def assert_same_weights(one: Result, other: Result) -> None:
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


@pytest.mark.parametrize("recipe", ["grpo", "rloo", "ppo"])
@pytest.mark.parametrize("stop", [1, 3, 5])
def test_g77_a_resumed_run_is_bit_equal_to_an_uninterrupted_one(
    train: Train, tmp_path: Path, recipe: str, stop: int
) -> None:
    whole = train("whole", recipe)
    part = train("part", recipe, observer=StopAt(stop))
    assert part.outcome is Outcome.INTERRUPTED
    assert part.record.step == stop
    resumed = leverl.train(part.folder, resume=True)
    assert resumed.outcome is Outcome.FINISHED
    assert_same_run(whole, resumed)


def test_g77_two_runs_with_the_same_seed_are_bit_equal_and_another_seed_is_not(train: Train) -> None:
    one, same, other = train("one"), train("same"), train("other", seed=1)
    assert_same_run(one, same)
    assert curve(one.folder)[1:] != curve(other.folder)[1:]


def test_g77_global_generators_are_neither_read_nor_changed(train: Train) -> None:
    torch.rand(3)
    state = torch.get_rng_state()
    one = train("one")
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(1)
    assert_same_run(one, train("two"))


def test_g78_resume_at_the_edge_of_an_epoch_goes_on_with_the_next(train: Train, tmp_path: Path) -> None:
    # 8 prompts a step, 24 prompts: step 3 ends exactly at the edge.
    whole = train("whole", train_size=24)
    part = train("part", train_size=24, observer=StopAt(3))
    assert_same_run(whole, leverl.train(part.folder, resume=True))


def test_g80_learning_rates_of_a_resumed_run_are_those_of_the_whole_one(train: Train, tmp_path: Path) -> None:
    schedule = {"actor_schedule": "cosine", "actor_warmup_steps": 2}
    whole = train("whole", **schedule)
    part = train("part", **schedule, observer=StopAt(3))
    resumed = leverl.train(part.folder, resume=True)
    rates = [data["actor/lr"] for _, data in curve(resumed.folder)[1:]]
    assert rates == [data["actor/lr"] for _, data in curve(whole.folder)[1:]]
    assert len(set(rates)) > 3


def test_g79_a_fork_uses_the_changed_learning_rate_and_lists_it(train: Train, tmp_path: Path) -> None:
    parent = train("parent")
    fork = leverl.train(
        overrides={"actor_learning_rate": 2e-4, "steps": 8},
        from_checkpoint=parent.folder,
        name="fork",
        out=tmp_path,
    )
    assert fork.record.changed == {"actor.learning_rate": [0.0005, 0.0002], "train.steps": [6, 8]}
    assert fork.record.parent == str(parent.checkpoint)
    steps = curve(fork.folder)
    assert [step for step, _ in steps] == [7, 8]
    assert all(data["actor/lr"] == 2e-4 for _, data in steps)
    assert steps[0][1]["train/updates"] == 14, "the optimizer's count goes on"
    rate_in_optimizer = checkpoints.load(fork.checkpoint or Path()).trainer_state()["actor"]["adamw"]
    assert rate_in_optimizer["param_groups"][0]["lr"] == 2e-4


def test_g79_a_fork_draws_other_samples_than_its_parent_would_have(train: Train, tmp_path: Path) -> None:
    longer, parent = train("longer", steps=8), train("parent")
    fork = leverl.train(overrides={"steps": 8}, from_checkpoint=parent.folder, name="fork", out=tmp_path)
    assert curve(fork.folder)[0] != curve(longer.folder)[7]


def test_g79_missing_trainer_state_is_an_error_never_a_fresh_optimizer(train: Train) -> None:
    parent = train("parent")
    assert parent.checkpoint is not None
    (parent.checkpoint / "trainer.pt").unlink()
    with pytest.raises(CheckpointError, match=r"trainer\.pt should have \d+ bytes, found None"):
        checkpoints.load(parent.checkpoint)


def test_g81_a_cut_checkpoint_is_passed_over_for_the_one_before(train: Train) -> None:
    result = train("run")
    assert result.checkpoint is not None
    file = result.checkpoint / "model" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    found = checkpoints.latest(result.folder / "checkpoints")
    assert found is not None
    assert found.counters.step == 4


def test_g81_keep_one_always_leaves_one_whole_checkpoint(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = torch.save, []

    def failing(*arguments: Any, **options: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(*arguments, **options)

    monkeypatch.setattr(torch, "save", failing)
    with pytest.raises(OSError, match="No space left"):
        train("run", keep=1)
    found = checkpoints.latest(tmp_path / "run" / "checkpoints")
    assert found is not None
    assert found.counters.step == 2
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-000002"]
    monkeypatch.setattr(torch, "save", real)
    record = load_record(tmp_path / "run" / "run.json")
    assert record is not None
    assert record.outcome is Outcome.CRASHED
    resumed = leverl.train(tmp_path / "run", resume=True)
    assert resumed.outcome is Outcome.FINISHED


def test_g81_keep_limits_the_number_of_checkpoints(train: Train) -> None:
    result = train("run", keep=2)
    assert sorted(path.name for path in (result.folder / "checkpoints").iterdir()) == [
        "step-000004",
        "step-000006",
    ]


def test_g82_a_finished_run_is_not_resumed_but_forked_from_its_true_step(train: Train) -> None:
    result = train("run")
    with pytest.raises(ConfigError, match=r"is finished \(6 steps\).*--from"):
        leverl.train(result.folder, resume=True)


def test_resume_before_the_first_checkpoint_begins_again(train: Train, tmp_path: Path) -> None:
    whole = train("whole")
    part = train("part", observer=StopAt(1))
    for path in (part.folder / "checkpoints").iterdir():
        (path / "checkpoint.json").unlink()
    assert_same_run(whole, leverl.train(part.folder, resume=True))


class StopWhileEvaluating(Silent):
    """Sends this process a signal during the evaluation before the first step."""

    def phase(self, name: str) -> None:
        if name == "evaluating":
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_run_stopped_before_its_first_step_measures_step_zero_once(train: Train) -> None:
    whole = train("whole")
    part = train("part", observer=StopWhileEvaluating())
    assert (part.outcome, part.record.step) == (Outcome.INTERRUPTED, 0)
    assert_same_run(whole, leverl.train(part.folder, resume=True))


def test_g81_saving_the_same_step_again_leaves_the_whole_checkpoint_alone(train: Train) -> None:
    result = train("run", keep=1)
    assert result.checkpoint is not None
    before = (result.checkpoint / "checkpoint.json").stat().st_mtime_ns
    record = json.loads((result.folder / "run.json").read_text())
    (result.folder / "run.json").write_text(json.dumps({**record, "outcome": "lost"}))
    again = leverl.train(result.folder, resume=True)
    assert again.outcome is Outcome.FINISHED
    assert (result.checkpoint / "checkpoint.json").stat().st_mtime_ns == before


def test_resume_refuses_changes_and_a_living_run(train: Train, tmp_path: Path) -> None:
    result = train("run")
    with pytest.raises(ConfigError, match="keeps its configuration"):
        leverl.train(result.folder, {"steps": 9}, resume=True)
    record = json.loads((result.folder / "run.json").read_text())
    (result.folder / "run.json").write_text(json.dumps({**record, "outcome": None}))
    with pytest.raises(ConfigError, match=f"being trained by process {os.getpid()}"):
        leverl.train(result.folder, resume=True)


def test_fork_refuses_another_model_and_an_end_that_is_past(train: Train, tmp_path: Path) -> None:
    result = train("run")
    with pytest.raises(ConfigError, match="keeps the model"):
        leverl.train(
            overrides={"embedded_hidden_size": 64, "steps": 9}, from_checkpoint=result.folder, out=tmp_path
        )
    with pytest.raises(ConfigError, match="is at step 6 already"):
        leverl.train(overrides={"steps": 5}, from_checkpoint=result.folder, out=tmp_path)
