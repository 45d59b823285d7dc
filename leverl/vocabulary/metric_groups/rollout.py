"""Metrics of the rollout: rewards, groups, lengths, failures, sampler against trainer.

As in verl, the prefix `critic/` of rewards and advantages does not mean that there is a critic.
"""

from leverl.vocabulary.metric import Metric

_REWARDS: tuple[Metric, ...] = (
    Metric(
        name="critic/score/mean",
        unit="reward",
        direction="up",
        text="Mean score of the sampled responses, before any KL penalty. Never judge a setting by it "
        "alone: it can be hacked; see eval/score.",
        zh="平均奖励",
        aliases=("reward_mean", "reward_score", "reward", "score", "objective/scores"),
    ),
    Metric(
        name="critic/score/max", unit="reward", direction="up", text="Best score of the batch.", zh="最高奖励"
    ),
    Metric(
        name="critic/score/min",
        unit="reward",
        direction="up",
        text="Worst score of the batch.",
        zh="最低奖励",
    ),
    Metric(
        name="critic/score/std",
        unit="reward",
        direction="none",
        text="Standard deviation of the scores over the whole batch. Its square cannot exceed 0.25 for "
        "scores of 0 and 1.",
        zh="奖励标准差",
    ),
    Metric(
        name="critic/rewards/mean",
        unit="reward",
        direction="up",
        text="Mean reward after the KL penalty. Not comparable between values of kl_coef when kl_in=reward.",
        zh="扣除 KL 后的平均奖励",
        aliases=("objective/rlhf_reward",),
    ),
    Metric(
        name="critic/advantages/mean",
        unit="",
        direction="none",
        text="Mean advantage over tokens; near 0 by construction. Clearly below 0: wrong responses are the "
        "longer ones.",
        zh="平均优势",
    ),
    Metric(
        name="critic/advantages/max",
        unit="",
        direction="none",
        text="Largest advantage; at most (G−1)/√G for grpo with groups of G. Max and min both 0: all groups "
        "are dead.",
        zh="最大优势",
    ),
    Metric(
        name="critic/advantages/min", unit="", direction="none", text="Smallest advantage.", zh="最小优势"
    ),
    Metric(
        name="critic/returns/mean",
        unit="reward",
        direction="up",
        text="Mean return over tokens: what the critic is to predict.",
        zh="平均回报",
    ),
    Metric(
        name="group/reward_std",
        unit="reward",
        direction="none",
        text="Standard deviation of the scores within a prompt's group, averaged over groups: the signal "
        "there is.",
        zh="组内奖励标准差",
        aliases=("reward_std",),
    ),
    Metric(
        name="group/dead_share",
        unit="share of groups",
        direction="down",
        text="Groups whose responses all score alike, which teach nothing: too easy, too hard, or "
        "group_size too small.",
        zh="零方差组占比",
        aliases=("frac_reward_zero_std", "dead_groups"),
    ),
    Metric(
        name="reward_extra/*",
        unit="",
        direction="none",
        text="Mean of a further value that the reward function returned beside its score, for example "
        "helpfulness or harmlessness.",
        zh="附加奖励指标",
        aliases=("rewards/*",),
    ),
)

_LENGTHS: tuple[Metric, ...] = (
    Metric(
        name="response_length/mean",
        unit="tokens",
        direction="none",
        text="Mean length of a response. Says little about the tail: see p99 before changing "
        "max_response_length.",
        zh="平均回复长度",
        aliases=("response_length_mean", "response_length", "completions/mean_length"),
    ),
    Metric(
        name="response_length/max",
        unit="tokens",
        direction="none",
        text="Longest response of the batch.",
        zh="最大回复长度",
        aliases=("completions/max_length",),
    ),
    Metric(
        name="response_length/min",
        unit="tokens",
        direction="none",
        text="Shortest response of the batch.",
        zh="最小回复长度",
        aliases=("completions/min_length",),
    ),
    Metric(
        name="response_length/p99",
        unit="tokens",
        direction="none",
        text="Length that 99 % of the responses do not exceed: the tail that max_response_length must hold.",
        zh="回复长度 99 分位",
    ),
    Metric(
        name="response_length/clip_ratio",
        unit="share of responses",
        direction="down",
        text="rollout/truncated under verl's name. In verl 0.9's default trainer it compares with the "
        "longest response of the batch and is therefore never 0.",
        zh="达到长度上限的占比",
    ),
    Metric(
        name="prompt_length/mean",
        unit="tokens",
        direction="none",
        text="Mean length of a prompt.",
        zh="平均提示长度",
        aliases=("prompt_length_mean",),
    ),
)

_FAILURES: tuple[Metric, ...] = (
    Metric(
        name="rollout_success_rate",
        unit="share of responses",
        direction="up",
        text="Responses generated without an error of the engine and scored. Truncation is counted apart. "
        "The article asks for more than 0.95 in the baseline round. In verl: 1 − response/aborted_ratio.",
        zh="采样成功率",
    ),
    Metric(
        name="rollout/truncated",
        unit="share of responses",
        direction="down",
        text="Responses cut off at max_response_length before their end token.",
        zh="截断占比",
        aliases=("truncated", "completions/clipped_ratio"),
    ),
    Metric(
        name="rollout/unscored",
        unit="share of responses",
        direction="down",
        text="Responses without a score (None or an error). They count neither as 0 nor in a baseline.",
        zh="未评分占比",
    ),
    Metric(
        name="reward/errors",
        unit="responses",
        direction="down",
        text="Exceptions of the reward function in the iteration; the first traceback is in the notes of run.json.",
        zh="奖励函数错误数",
    ),
)

_MISMATCH: tuple[Metric, ...] = (
    Metric(
        name="rollout/mismatch_mean",
        unit="nats",
        direction="down",
        text="Mean difference between the trainer's and the sampler's log-probability of a sampled token.",
        zh="训练与采样对数概率平均偏差",
        aliases=("sampling/sampling_logp_difference/mean",),
    ),
    Metric(
        name="rollout/mismatch_max",
        unit="nats",
        direction="down",
        text="Largest such difference.",
        zh="训练与采样对数概率最大偏差",
        aliases=("sampling/sampling_logp_difference/max",),
    ),
    Metric(
        name="rollout/mismatch_k3",
        unit="nats per token",
        direction="down",
        text="Distance of the trainer's policy from the sampler's (k3 estimate); above 0.1 is unhealthy.",
        zh="训练与采样策略 KL（k3）",
        aliases=("rollout_corr/k3_kl",),
    ),
    Metric(
        name="rollout/ess",
        unit="share of tokens",
        direction="up",
        text="Effective sample size when the sampler's tokens stand in for the trainer's; 1 without "
        "mismatch, below 0.3 unhealthy.",
        zh="有效样本比例",
        aliases=("rollout_corr/rollout_is_eff_sample_size",),
    ),
    Metric(
        name="training/rollout_probs_diff_mean",
        unit="probability",
        direction="down",
        text="verl: mean difference between trainer's and sampler's probability of a sampled token. Below "
        "0.005 is healthy, above 0.01 a problem of precision.",
        zh="训练与采样概率平均偏差",
    ),
    Metric(
        name="sync/weight_version",
        unit="",
        direction="none",
        text="Version of the weights that sampled this batch; grows by 1 per iteration.",
        zh="权重版本",
    ),
)

METRICS: tuple[Metric, ...] = (*_REWARDS, *_LENGTHS, *_FAILURES, *_MISMATCH)
