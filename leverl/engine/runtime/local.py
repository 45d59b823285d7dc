"""The local runtime: every role lives in this process, and its methods are called directly."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leverl.config.combinations import needs_reference
from leverl.config.schema import Config
from leverl.engine.algo.specs import ALGORITHMS
from leverl.engine.data.prompt import Prompt
from leverl.engine.data.seeding import derive_seed
from leverl.engine.inference.native import NativeEngine
from leverl.engine.inference.protocol import SamplingParams
from leverl.engine.policy.embedded import EmbeddedSpec, embedded_path
from leverl.engine.policy.load import Policy, load_policy
from leverl.engine.policy.value import ValueModel
from leverl.engine.rewards.protocol import load_reward
from leverl.engine.roles.actor import Actor
from leverl.engine.roles.critic import Critic
from leverl.engine.roles.reference import Reference
from leverl.engine.roles.reward import Reward
from leverl.engine.roles.rollout import Rollout


@dataclass(frozen=True)
class Roles:
    """The workers of a run; `reference` and `critic` are there when the algorithm needs them."""

    actor: Actor
    rollout: Rollout
    reward: Reward
    reference: Reference | None
    critic: Critic | None


def base_model(config: Config, lessons: Sequence[Prompt]) -> str:
    """Path of the base model; the embedded one is built first if need be, from `lessons` if warmed up."""
    if config.model.path != "embedded":
        return config.model.path
    shape = EmbeddedSpec(**config.model.embedded.model_dump())
    return str(embedded_path(shape, lessons if shape.warm_start_steps else ()))


def load(config: Config, path: str | Path) -> Policy:
    """The policy at `path`, as the configuration wants it."""
    model = config.model
    return load_policy(
        str(path), dtype=model.dtype, device=model.device, trust_remote_code=model.trust_remote_code
    )


def launch(
    config: Config,
    lessons: Sequence[Prompt] = (),
    *,
    weights: Path | None = None,
    critic_weights: Path | None = None,
) -> Roles:
    """Build all roles of a run.

    Args:
        lessons: prompts with answers, for an embedded model that is warmed up.
        weights: folder of a checkpointed policy; None starts from the base model. The reference is always the
            base model.
        critic_weights: folder of a checkpointed critic; None gives it a new head.
    """
    base = base_model(config, lessons)
    policy = load(config, weights or base)
    spec = ALGORITHMS[config.algorithm.name]
    return Roles(
        actor=Actor(policy, config),
        rollout=rollout_of(config, policy),
        reward=reward_of(config, policy),
        reference=_reference(config, base) if needs_reference(config) else None,
        critic=_critic(config, policy, critic_weights) if spec.needs_critic else None,
    )


def rollout_of(config: Config, policy: Policy) -> Rollout:
    sizes = config.rollout
    params = SamplingParams(
        max_new_tokens=sizes.max_response_length,
        temperature=sizes.temperature,
        top_p=sizes.top_p,
        top_k=sizes.top_k,
        stop_ids=policy.eos_ids,
    )
    return Rollout(NativeEngine(policy), sizes.group_size, params, sizes.rollout_micro_batch_size)


def reward_of(config: Config, policy: Policy) -> Reward:
    """Training may get partial credit (`dense`); held-out responses are then scored exactly."""
    training = load_reward(config.reward)
    exact = config.reward.model_copy(update={"kind": "exact"})
    evaluation = load_reward(exact) if config.reward.kind == "dense" else training
    return Reward(training, evaluation, policy.tokenizer, config.reward.max_error_rate)


def _reference(config: Config, base: str) -> Reference:
    return Reference(load(config, base), config.rollout.temperature, config.actor.micro_batch_tokens)


def _critic(config: Config, policy: Policy, weights: Path | None) -> Critic:
    """A critic that goes on from `weights`, or starts from the policy's backbone with a new head."""
    if weights is None:
        model = ValueModel.from_policy(policy, derive_seed(config.seed, "value head"))
    else:
        model = ValueModel.load(weights, dtype=config.model.dtype, device=str(policy.device))
    return Critic(model, config, policy.device)
