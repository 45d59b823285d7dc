"""What one iteration must be, seen from outside: ratios, sources of log-probs, reference, skipped updates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from leverl.config import loader
from leverl.engine.data.batch import Batch
from leverl.engine.data.source import PromptSource, read_prompt_set
from leverl.engine.runtime import local
from leverl.engine.train.dataflow import ppo_iteration
from leverl.engine.train.run import Result
from leverl.engine.train.stopwatch import Stopwatch
from leverl.errors import NonFiniteLoss
from leverl.record.metrics import read_lines
from leverl.record.observer import Silent
from leverl.record.run_record import Outcome

Train = Callable[..., Result]

SETTINGS = {
    "embedded_hidden_size": 32,
    "embedded_layers": 1,
    "embedded_heads": 2,
    "task": "copy",
    "length": 2,
    "batch_size": 32,
    "group_size": 4,
    "mini_batch_size": 16,
    "max_response_length": 4,
}


class Iterations:
    """A run without a folder."""

    def __init__(self, recipe: str = "grpo", **settings: Any) -> None:
        small = {k: v for k, v in SETTINGS.items() if not (recipe == "ppo" and k == "group_size")}
        self.config = loader.load(recipe, {**small, **settings}).config
        prompts = read_prompt_set(self.config.data, embedded=True)
        self.roles = local.launch(self.config, prompts.train)
        self.source = PromptSource(
            prompts.train, self.roles.actor.policy.tokenizer, max_prompt_length=64, seed=0
        )
        self.step = 0

    def next(self) -> tuple[Batch, dict[str, Any]]:
        self.step += 1
        prompts = self.source.next(self.config.rollout.prompts_per_iteration)
        return ppo_iteration(prompts, self.step, self.roles, self.config, Stopwatch(Silent()), 0)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("cut", [{}, {"top_p": 0.9}, {"top_k": 5}], ids=["whole", "top_p", "top_k"])
@pytest.mark.parametrize("source", ["rollout", "recompute"])
def test_d45_the_first_ratio_of_every_iteration_is_one(
    temperature: float, cut: dict[str, Any], source: str
) -> None:
    run = Iterations(temperature=temperature, old_log_probs=source, actor_learning_rate=1e-2, **cut)
    first = [run.next()[1]["ratio/first"] for _ in range(4)]  # from the second on the policy is not uniform
    assert max(first) <= 1e-5


@pytest.mark.parametrize("source", ["rollout", "recompute"])
def test_d54_the_distance_between_trainer_and_sampler_is_always_logged(source: str) -> None:
    _, metrics = Iterations(old_log_probs=source).next()
    assert 0 < metrics["rollout/mismatch_mean"] <= metrics["rollout/mismatch_max"] <= 1e-5
    assert metrics["rollout/mismatch_k3"] <= 1e-6
    assert metrics["rollout/ess"] == pytest.approx(1.0, abs=1e-6)


def test_d54_a_sampler_that_disagrees_ends_the_run_at_the_first_step(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leverl.engine.roles.rollout import Rollout

    real = Rollout.generate

    def colder(self: Rollout, *arguments: Any) -> Batch:
        batch = real(self, *arguments)
        return batch.with_(rollout_log_probs=batch.rollout_log_probs * 1.2)

    monkeypatch.setattr(Rollout, "generate", colder)
    result = train("run")
    assert result.outcome is Outcome.CRASHED
    assert "trainer and sampler disagree" in result.record.message


def test_d56_where_the_old_log_probs_come_from_is_the_users_choice() -> None:
    run = Iterations(old_log_probs="rollout")
    batch, _ = run.next()
    assert batch.old_log_probs is batch.rollout_log_probs
    run = Iterations(old_log_probs="recompute")
    batch, _ = run.next()
    assert batch.old_log_probs is not batch.rollout_log_probs
    assert torch.allclose(batch.require("old_log_probs"), batch.rollout_log_probs, atol=1e-5)


@pytest.mark.parametrize("recipe", ["grpo", "ppo"])
def test_c44_the_reference_never_changes_and_the_first_kl_is_zero(recipe: str) -> None:
    run = Iterations(recipe, actor_learning_rate=1e-2)
    assert run.roles.reference is not None
    before = {name: t.clone() for name, t in run.roles.reference.policy.model.state_dict().items()}
    kls = [run.next()[1]["kl_divergence"] for _ in range(10)]
    assert kls[0] == pytest.approx(0.0, abs=1e-6)
    assert kls[-1] > 0.01
    for name, tensor in run.roles.reference.policy.model.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_kl_is_absent_not_zero_without_a_reference() -> None:
    _, metrics = Iterations(kl_in="off").next()
    assert "kl_divergence" not in metrics
    _, metrics = Iterations(kl_in="off", reference="always").next()
    assert metrics["kl_divergence"] == pytest.approx(0.0, abs=1e-6)


def test_b35_a_batch_that_teaches_nothing_changes_nothing_and_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Iterations(kl_in="off", actor_weight_decay=0.1)
    run.next()
    score = run.roles.reward._training
    monkeypatch.setattr(run.roles.reward, "_training", lambda **row: 0.0 * score(**row))
    before = {name: t.clone() for name, t in run.roles.actor.policy.model.state_dict().items()}
    _, metrics = run.next()
    assert metrics["group/dead_share"] == 1.0
    assert metrics["train/skipped_updates"] == 2
    for name, tensor in run.roles.actor.policy.model.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_h85_unscored_responses_are_not_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Iterations()
    score = run.roles.reward._training
    monkeypatch.setattr(
        run.roles.reward,
        "_training",
        lambda **row: None if row["extra_info"]["index"] % 2 else score(**row),
    )
    batch, metrics = run.next()
    unscored = torch.tensor([batch.prompts[int(g)].extra_info["index"] % 2 == 1 for g in batch.group])
    assert metrics["rollout/unscored"] == pytest.approx(float(unscored.float().mean()))
    assert metrics["rollout_success_rate"] == pytest.approx(1 - metrics["rollout/unscored"])
    assert not batch.loss_mask[unscored].any()
    assert sum(metrics["ratio/histogram"]) == int(batch.loss_mask.sum())


@pytest.mark.parametrize("recipe", ["grpo", "rloo"])
def test_b27_advantages_of_a_group_sum_to_zero(recipe: str) -> None:
    batch, _ = Iterations(recipe, kl_coef=0.3).next()
    first = batch.require("advantages")[:, 0].view(-1, 4)
    assert torch.allclose(first.sum(dim=1), torch.zeros(len(first)), atol=1e-5)


def test_kl_in_the_reward_is_summed_over_the_response_before_the_group_is_normalised() -> None:
    run = Iterations("rloo", kl_coef=0.3, actor_learning_rate=1e-2)
    for _ in range(3):
        batch, metrics = run.next()
    delta = batch.require("old_log_probs") - batch.require("ref_log_probs")
    penalised = batch.require("scores") - 0.3 * torch.where(batch.mask, delta, 0.0).sum(dim=1)
    groups = penalised.view(-1, 4)
    others = (groups.sum(dim=1, keepdim=True) - groups) / 3
    assert torch.allclose(batch.require("advantages")[:, 0].view(-1, 4), groups - others, atol=1e-5)
    assert metrics["critic/rewards/mean"] == pytest.approx(float(penalised.mean()), abs=1e-5)
    assert metrics["critic/score/mean"] == pytest.approx(float(batch.require("scores").mean()), abs=1e-6)


def test_d71_the_sampler_has_the_actors_weights_after_each_iteration() -> None:
    run = Iterations()
    for step in (1, 2):
        batch, _ = run.next()
        assert batch.weight_version == step - 1
        assert run.roles.rollout.engine.version == step


@pytest.mark.parametrize("term", ["policy", "kl", "entropy"])
def test_a21_every_term_of_the_loss_moves_the_policy(term: str) -> None:
    settings: dict[str, Any] = {
        "policy": {"kl_in": "off"},
        "kl": {"kl_coef": 1.0},
        "entropy": {"kl_in": "off", "entropy_coef": 0.5},
    }[term]
    run = Iterations(actor_learning_rate=1e-2, **settings)
    if term != "policy":
        run.next()  # away from the reference, so that the KL has a gradient
        run.roles.reward._training = lambda **row: 0.0  # and no gradient from scores
    before = {name: t.clone() for name, t in run.roles.actor.policy.model.state_dict().items()}
    run.next()
    changed = [
        name
        for name, tensor in run.roles.actor.policy.model.state_dict().items()
        if not torch.equal(tensor, before[name])
    ]
    assert "lm_head.weight" in changed


def test_a20_the_kl_term_pulls_the_policy_back_to_the_reference() -> None:
    run = Iterations(actor_learning_rate=1e-2, kl_coef=5.0)
    score = run.roles.reward._training
    for _ in range(5):
        run.next()
    run.roles.reward._training = lambda **row: 0.0
    away = run.next()[1]["kl_divergence"]
    for _ in range(10):
        metrics = run.next()[1]
    assert score is not None
    assert metrics["kl_divergence"] < 0.5 * away


def test_a_non_finite_loss_ends_the_run_and_leaves_the_weights_alone(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leverl.engine.roles import actor

    real = actor.clipped_policy_loss

    def poisoned(log_probs: Any, *arguments: Any, **options: Any) -> Any:
        terms = real(log_probs, *arguments, **options)
        poisoned.calls += 1  # type: ignore[attr-defined]
        if poisoned.calls > 5:  # type: ignore[attr-defined]
            return terms._replace(per_token=terms.per_token * float("nan"))
        return terms

    poisoned.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(actor, "clipped_policy_loss", poisoned)
    result = train("run", save_every=1)
    assert result.outcome is Outcome.NON_FINITE
    assert result.record.step == 2
    assert "actor: loss nan" in result.record.message
    assert result.score is None, "a failure is a fact, never a score"
    assert result.checkpoint is not None
    assert result.checkpoint.name == "step-000002"


def test_a_non_finite_gradient_changes_no_parameter() -> None:
    run = Iterations()
    parameter = next(run.roles.actor.policy.model.parameters())
    before = parameter.detach().clone()
    parameter.grad = torch.full_like(parameter, float("inf"))
    with pytest.raises(NonFiniteLoss):
        run.roles.actor.optimizer.step(torch.zeros(()))
    assert torch.equal(parameter, before)


def test_metrics_say_what_a_step_was(train: Train) -> None:
    from leverl.vocabulary.metrics import metric

    result = train("run", "ppo")
    lines = dict(read_lines(Path(result.folder) / "metrics.jsonl"))
    assert sorted(lines) == list(range(7))
    for name in {name for data in lines.values() for name in data}:
        metric(name)  # every logged name is in the vocabulary
    last = lines[6]
    for name in (
        "critic/score/mean", "kl_divergence", "kl_divergence_k3", "actor/pg_clipfrac", "actor/entropy",
        "critic/vf_loss", "response_length/p99", "rollout_success_rate", "perf/memory_gb", "timing_s/gen",
    ):  # fmt: skip
        assert name in last, name
    assert last["train/responses"] == 6 * 32
    shares = last["ratio/below"] + last["ratio/inside"] + last["ratio/above"]
    assert shares == pytest.approx(1.0)
    assert [step for step, data in lines.items() if "eval/score" in data] == [0, 2, 4, 6]
