"""Metrics of the update: policy, ratio, distance to the reference, critic."""

from leverl.vocabulary.metric import Metric

_ACTOR: tuple[Metric, ...] = (
    Metric(
        name="actor/pg_loss",
        unit="",
        direction="none",
        text="Clipped policy loss, without KL and entropy terms. Its height says nothing about progress.",
        zh="策略损失",
        aliases=("policy_loss", "loss/policy_avg"),
    ),
    Metric(
        name="actor/loss",
        unit="",
        direction="none",
        text="The whole loss of the policy: clipped policy loss, KL and entropy terms. Starts near 0 and "
        "may rise.",
        zh="Actor 总损失",
        aliases=("loss",),
    ),
    Metric(
        name="actor/pg_clipfrac",
        unit="share of tokens",
        direction="none",
        text="Tokens where clipping binds, that is, changes the loss. Exactly 0 with one update per rollout.",
        zh="裁剪生效比例",
        aliases=(
            "policy_ratio_share",
            "clipfrac",
            "clip_ratio/region_mean",
            "policy/clipfrac_avg",
            "ppo_clip_ratio",
        ),
    ),
    Metric(
        name="actor/pg_clipfrac_lower",
        unit="share of tokens",
        direction="none",
        text="Tokens held back by dual_clip: a negative advantage and a very large ratio. Not the lower "
        "clip bound.",
        zh="双重裁剪生效比例",
    ),
    Metric(
        name="actor/ppo_kl",
        unit="nats per token",
        direction="none",
        text="Distance of the updated policy from the one before the iteration (old-policy KL). Not the "
        "distance to the reference; a k1 estimate, so it may be negative.",
        zh="新旧策略 KL",
        aliases=("ppo_kl", "approx_kl", "policy/approxkl_avg"),
    ),
    Metric(
        name="actor/kl_loss",
        unit="nats per token",
        direction="none",
        text="The KL penalty inside the loss before its coefficient (kl_in=loss), by kl_estimator, averaged "
        "over the updates of the iteration.",
        zh="KL 损失",
        aliases=("kl_loss",),
    ),
    Metric(
        name="actor/reward_kl_penalty",
        unit="nats per token",
        direction="none",
        text="The KL penalty inside the reward before its coefficient (kl_in=reward).",
        zh="奖励中的 KL 惩罚",
        aliases=("critic/kl",),
    ),
    Metric(
        name="actor/entropy",
        unit="nats per token",
        direction="none",
        text="How undecided the policy is. Falls as it learns; a fall to a tenth of its start without a "
        "rising score is a collapse. TRL's objective/entropy is another quantity, summed over tokens.",
        zh="策略熵",
        aliases=("entropy", "entropy_loss", "actor/entropy_loss", "policy/entropy_avg"),
    ),
    Metric(
        name="actor/grad_norm",
        unit="",
        direction="none",
        text="Norm of the policy's gradient before clipping; watch spikes on a log scale.",
        zh="Actor 梯度范数",
        aliases=("grad_norm", "actor_grad_norm"),
    ),
    Metric(
        name="actor/lr",
        unit="",
        direction="none",
        text="Learning rate of the policy at the end of the iteration.",
        zh="Actor 学习率",
        aliases=("lr", "learning_rate", "actor_lr"),
    ),
)

_RATIO: tuple[Metric, ...] = (
    Metric(
        name="ratio/below",
        unit="share of tokens",
        direction="none",
        text="Tokens whose ratio to the sampling policy is under 1 − clip_range, whatever their advantage.",
        zh="比率低于下界的占比",
    ),
    Metric(
        name="ratio/inside",
        unit="share of tokens",
        direction="none",
        text="Tokens whose ratio lies within the clip interval. The article's ideal of 70 % is no target: "
        "healthy runs with one or few updates are near 100 %.",
        zh="比率在区间内的占比",
    ),
    Metric(
        name="ratio/above",
        unit="share of tokens",
        direction="none",
        text="Tokens whose ratio is over 1 + the upper clip range, whatever their advantage.",
        zh="比率高于上界的占比",
    ),
    Metric(
        name="ratio/mean",
        unit="",
        direction="none",
        text="Mean ratio; hovers at 1. Values like 2 or 0.1 mean that updates are far too large.",
        zh="平均策略比率",
        aliases=("val/ratio",),
    ),
    Metric(
        name="ratio/histogram",
        unit="tokens",
        direction="none",
        text="Histogram of the ratio: counts over fixed bins, log-spaced around 1 (the article's "
        "policy_ratio).",
        zh="策略比率直方图",
        aliases=("policy_ratio",),
    ),
    Metric(
        name="ratio/first",
        unit="",
        direction="down",
        text="Largest |ratio − 1| in the first mini-batch, before any update: what is not 0 there is "
        "mismatch or a bug.",
        zh="首个小批量的最大比率偏差",
    ),
)

_REFERENCE: tuple[Metric, ...] = (
    Metric(
        name="kl_divergence",
        unit="nats per token",
        direction="none",
        text="Distance of the policy that sampled from the reference policy, before the update (k1 "
        "estimate), whatever the penalty. Absent without a reference, never 0. TRL's kl is the k3 estimate "
        "during the update and is absent when beta is 0.",
        zh="KL 散度",
        aliases=("kl", "ref_kl"),
    ),
    Metric(
        name="kl_divergence_k3",
        unit="nats per token",
        direction="none",
        text="The same distance by the k3 estimate: never negative, less noisy.",
        zh="KL 散度（k3 估计）",
    ),
    Metric(
        name="objective/kl",
        unit="nats per response",
        direction="none",
        text="TRL's PPO: distance to the reference summed over the tokens of a response. Divide by the "
        "response length before comparing it with kl_divergence.",
        zh="整条回复的 KL 散度",
    ),
)

_CRITIC: tuple[Metric, ...] = (
    Metric(
        name="critic/lr",
        unit="",
        direction="none",
        text="Learning rate of the value model at the end of the iteration.",
        zh="Critic 学习率",
        aliases=("critic_lr",),
    ),
    Metric(
        name="critic/vf_loss",
        unit="",
        direction="down",
        text="Clipped value loss. Rises while the rewards start to rise, then should fall.",
        zh="价值损失",
        aliases=("value_loss", "critic_loss", "loss/value_avg"),
    ),
    Metric(
        name="critic/vf_clipfrac",
        unit="share of tokens",
        direction="none",
        text="Tokens where clipping of the value binds.",
        zh="价值裁剪比例",
        aliases=("val/clipfrac_avg",),
    ),
    Metric(
        name="critic/vf_explained_var",
        unit="",
        direction="up",
        text="Share of the returns' variance that the critic predicts: 1 perfect, 0 useless, below 0 worse "
        "than a constant.",
        zh="价值解释方差",
        aliases=("explained_variance",),
    ),
    Metric(
        name="critic/grad_norm",
        unit="",
        direction="none",
        text="Norm of the value model's gradient before clipping.",
        zh="Critic 梯度范数",
        aliases=("critic_grad_norm",),
    ),
    Metric(
        name="critic/values/mean",
        unit="reward",
        direction="none",
        text="Mean predicted value; should stay within the range of critic/returns.",
        zh="平均价值估计",
    ),
)

METRICS: tuple[Metric, ...] = (*_ACTOR, *_RATIO, *_REFERENCE, *_CRITIC)
