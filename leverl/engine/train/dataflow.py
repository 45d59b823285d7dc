"""One iteration of the PPO family, as it reads in a paper.

The roles may be objects in this process or groups of workers elsewhere; nothing here knows.
"""

from leverl.config.schema import Config
from leverl.engine.data.batch import Batch
from leverl.engine.data.prompt import Prompt
from leverl.engine.roles.meter import Metrics
from leverl.engine.runtime.local import Roles
from leverl.engine.sync import plain as weights
from leverl.engine.train.estimate import advantages
from leverl.engine.train.measure import measure
from leverl.engine.train.stopwatch import Stopwatch


def ppo_iteration(
    prompts: list[Prompt], step: int, roles: Roles, config: Config, clock: Stopwatch, *seed: int | str
) -> tuple[Batch, Metrics]:
    """Sample, score, estimate, update, hand the new weights to the sampler.

    Args:
        prompts: P prompts. step: number of this iteration, from 1. seed: what all randomness of the run
            follows from, together with `step`.

    Returns:
        The batch with everything that was computed for it, and the step's metrics.
    """
    with clock("gen"):
        batch = roles.rollout.generate(prompts, step, *seed)
    with clock("reward"):
        batch = roles.reward.score(batch)
    with clock("old_log_prob"):
        batch = old_log_probs(batch, roles, config)
    if roles.reference is not None:
        with clock("ref"):
            batch = roles.reference.log_probs(batch)
    if roles.critic is not None:
        with clock("values"):
            batch = roles.critic.values(batch)
    batch = advantages(batch, config.algorithm)
    metrics = measure(batch, config)
    if roles.critic is not None:
        with clock("update_critic"):
            metrics |= roles.critic.update(batch, *seed)
    with clock("update_actor"):
        metrics |= roles.actor.update(batch, *seed)
    with clock("sync"):
        weights.push(roles.actor.policy.model, roles.rollout.engine, version=step)
    return batch, metrics


def old_log_probs(batch: Batch, roles: Roles, config: Config) -> Batch:
    """The pi_old of the ratio: what the sampler reported, or recomputed by the trainer.

    The native sampler's are exact and save a forward pass; recomputing shows how exact they are.
    """
    if config.algorithm.old_log_probs == "recompute":
        return roles.actor.log_probs(batch)
    return batch.with_(old_log_probs=batch.rollout_log_probs)
