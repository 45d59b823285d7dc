"""Levers of `algorithm`: estimator, clipping, penalties, and how often a batch is learnt from."""

from leverl.vocabulary.lever import Lever, SearchRange

_ADVANTAGE: tuple[Lever, ...] = (
    Lever(
        name="algorithm",
        path="algorithm.name",
        effect="learning",
        text="How the advantage is estimated: grpo (against the group, in units of its spread), rloo "
        "(against the other responses of the prompt), ppo (with a value model, the critic).",
        zh="算法",
        advice="Start with grpo: it needs no critic. ppo gives credit by token and works with one response "
        "per prompt, at the cost of a second model. verl calls ppo's estimator gae; TRL has one trainer "
        "class for each.",
        search=SearchRange("categorical", values=("grpo", "rloo", "ppo")),
        verl=("algorithm.adv_estimator",),
    ),
    Lever(
        name="scale_by_std",
        path="algorithm.scale_by_std",
        effect="learning",
        text="Divides each group's advantages by the standard deviation of its rewards (grpo).",
        zh="按组标准差缩放优势",
        advice="On is GRPO as published. Off (Dr. GRPO) removes the extra weight of prompts that are almost "
        "always or almost never solved; steps get smaller, so search the learning rate again.",
        search=SearchRange("categorical", values=(True, False)),
        verl=("algorithm.norm_adv_by_std_in_grpo",),
        trl=("scale_rewards",),
        aliases=("norm_adv_by_std_in_grpo", "scale_rewards"),
    ),
    Lever(
        name="whiten_advantages",
        path="algorithm.whiten_advantages",
        effect="learning",
        text="Shifts and scales the advantages of the whole batch to mean 0 and variance 1 (ppo).",
        zh="优势白化",
        advice="Leave it on: without it the size of a step follows the size of the rewards. verl always "
        "does it for gae and has no key for it; nor has TRL's PPO.",
    ),
    Lever(
        name="gamma",
        path="algorithm.gamma",
        effect="learning",
        text="Discount per token (ppo): what a reward at the end is worth one token earlier.",
        zh="折扣因子",
        too_low="Early tokens of long responses learn nothing: response_length/mean shrinks.",
        too_high="1 is the upper end and the usual value; with a noisy critic critic/vf_loss stays high.",
        advice="1 for language models: a response is one episode and its score comes at the end.",
        verl=("algorithm.gamma",),
        trl=("gamma",),
    ),
    Lever(
        name="gae_lambda",
        path="algorithm.gae_lambda",
        effect="learning",
        text="Mixes the critic's guess with the reward actually seen (ppo): 1 trusts the reward only, 0 the "
        "critic one token ahead.",
        zh="GAE λ 系数",
        too_low="With a critic that is not yet good (critic/vf_explained_var near 0), the score does not "
        "rise.",
        too_high="Noisier advantages: actor/grad_norm fluctuates and the score is sawtoothed with small "
        "batches.",
        advice="1 is verl's default, 0.95 TRL's. Lower it only once critic/vf_explained_var is well above 0.",
        search=SearchRange("logit", 0.9, 0.999, other=1, recommended=0.95),
        verl=("algorithm.lam",),
        trl=("lam",),
        aliases=("lam", "lambd"),
    ),
)

_CLIPPING: tuple[Lever, ...] = (
    Lever(
        name="clip_range",
        path="algorithm.clip_range",
        effect="learning",
        text="How far one update may move a token's probability: its ratio to the sampling policy counts "
        "only within [1 − clip_range, 1 + clip_range]. Without effect when each batch is used for one "
        "update.",
        zh="裁剪范围（安全围栏）",
        too_low="actor/pg_clipfrac is high (above 0.2) and the score rises slowly: most of the signal is "
        "cut off.",
        too_high="actor/ppo_kl and ratio/above grow, then the score collapses: updates are no longer held "
        "back.",
        advice="The article advises 0.1–0.2 and to start at 0.1 for models of 7B and more; 0.2 is the "
        "default of verl and TRL, and DAPO uses 0.2 below with 0.28 above. Sequence-level losses (GSPO) use "
        "3e-4. The article's 70/20/10 share of ratios is no target: with one update per rollout nothing is "
        "clipped, and a healthy run clips under 1 %. Above 10 % look at updates per rollout and the "
        "learning rate first; never shrink it because the share is low.",
        search=SearchRange("log", 0.05, 0.4, recommended=0.2),
        # verl uses low and high whenever they are set, as they are by default; clip_ratio alone does nothing.
        verl=(
            "actor_rollout_ref.actor.clip_ratio",
            "actor_rollout_ref.actor.clip_ratio_low",
            "actor_rollout_ref.actor.clip_ratio_high",
        ),
        trl=("epsilon", "cliprange"),
        aliases=("epsilon", "clip_ratio", "cliprange", "clip_eps", "eps_clip"),
    ),
    Lever(
        name="clip_range_high",
        path="algorithm.clip_range_high",
        effect="learning",
        text="The upper side of the clip interval by itself: the ratio counts up to 1 + clip_range_high. "
        "Null means the same as clip_range.",
        zh="裁剪上界（clip-higher）",
        too_low="actor/entropy falls steadily: rare tokens cannot gain probability.",
        too_high="actor/entropy rises while the score falls.",
        advice="0.28 with clip_range 0.2 (DAPO) is the usual answer to a collapsing entropy; move it in "
        "steps of 0.04.",
        search=SearchRange("linear", 0.2, 0.4, recommended=0.28),
        verl=("actor_rollout_ref.actor.clip_ratio_high",),
        trl=("epsilon_high",),
        aliases=("epsilon_high", "clip_ratio_high"),
    ),
    Lever(
        name="dual_clip",
        path="algorithm.dual_clip",
        effect="learning",
        text="Bounds the loss of tokens with a negative advantage whose ratio exceeds this value; null "
        "switches it off.",
        zh="双重裁剪系数",
        too_low="actor/pg_clipfrac_lower is above 0: bad responses are unlearnt only slowly.",
        too_high="No protection: a single huge ratio shows as a spike of actor/grad_norm.",
        advice="verl uses 3 and cannot switch it off; write a large number there. In TRL it is delta.",
        verl=("actor_rollout_ref.actor.clip_ratio_c",),
        trl=("delta",),
        aliases=("clip_ratio_c",),
    ),
)

_KL: tuple[Lever, ...] = (
    Lever(
        name="kl_in",
        path="algorithm.kl_in",
        effect="learning",
        text="Where the distance to the reference policy is penalised: in the reward of each token, in the "
        "loss, or nowhere.",
        zh="KL 惩罚位置",
        advice="Usual: reward for PPO and RLOO, loss for GRPO, off for DAPO. In the reward, "
        "critic/rewards/mean depends on kl_coef, so compare runs by eval/score or critic/score/mean. verl "
        "has two switches, both off by default; without one of them its KL coefficients do nothing.",
        search=SearchRange("categorical", values=("reward", "loss", "off")),
        verl=("algorithm.use_kl_in_reward", "actor_rollout_ref.actor.use_kl_loss"),
    ),
    Lever(
        name="kl_coef",
        path="algorithm.kl_coef",
        effect="learning",
        text="Weight of the distance to the reference policy: how dearly the policy pays for moving away "
        "from it.",
        zh="KL 散度系数",
        too_low="kl_divergence grows without bound, and critic/score/mean rises while eval/score does not: "
        "the article's runaway, reward hacking.",
        too_high="kl_divergence stays flat near 0 and so does the score: the policy does not move, answers "
        "stay stiff or repeat the prompt.",
        advice="The article advises 0.01–0.2 (PPO 0.05–0.1), calls 0.5 too stiff and 0.001 a runaway; that "
        "fits classic PPO with a reward model and the penalty in the reward. With verifiable rewards 0.001 "
        "is the default of verl and 0 that of TRL and DAPO; 0.01 is strong. (DPO's β is another quantity "
        "and not 0.) Before raising it for a volatile reward, try a lower learning rate; a step of +20 % is "
        "moderate.",
        search=SearchRange("log", 1e-4, 1e-1, other=0, recommended=1e-3),
        verl=("algorithm.kl_ctrl.kl_coef", "actor_rollout_ref.actor.kl_loss_coef"),
        trl=("beta", "kl_coef"),
        aliases=("kl", "beta", "kl_loss_coef", "kl_coeff", "init_kl_coef"),
    ),
    Lever(
        name="kl_estimator",
        path="algorithm.kl_estimator",
        effect="learning",
        text="Formula of the KL penalty inside the loss. In the reward it is always k1.",
        zh="KL 估计方法",
        advice="k2 has the right gradient inside the loss. k3 (verl's low_var_kl and TRL's only one) is a "
        "good estimate, but as a loss its gradient is not that of the KL; k1 as a loss has an expected "
        "gradient of zero and is refused.",
        search=SearchRange("categorical", values=("k2", "k3")),
        verl=("actor_rollout_ref.actor.kl_loss_type", "algorithm.kl_penalty"),
        trl=("kl_estimator",),
    ),
    Lever(
        name="reference",
        path="algorithm.reference",
        effect="cost",
        text="`always` computes the reference policy's log-probabilities even when nothing penalises the "
        "distance, so that kl_divergence is measured; `auto` only when the penalty needs them.",
        zh="参考模型",
        advice="Use always in studies that search kl_coef down to 0 or constrain the KL: without a "
        "reference the KL is absent, not 0.",
    ),
)

_UPDATE: tuple[Lever, ...] = (
    Lever(
        name="entropy_coef",
        path="algorithm.entropy_coef",
        effect="learning",
        text="Bonus for an undecided policy, subtracted from the loss.",
        zh="熵系数",
        too_low="Below 0 it speeds the collapse: actor/entropy falls towards 0 and group/dead_share rises.",
        too_high="actor/entropy rises while the score falls, responses grow longer and turn into noise.",
        advice="Keep 0, as nearly all verl examples do; 0.001 was verl's old default and made GRPO runs "
        "explode. Try clip_range_high first when the entropy collapses.",
        search=SearchRange("log", 1e-4, 1e-2, other=0, recommended=0),
        verl=("actor_rollout_ref.actor.entropy_coeff",),
        trl=("entropy_coef",),
        aliases=("entropy_coeff", "ent_coef"),
    ),
    Lever(
        name="loss_aggregation",
        path="algorithm.loss_aggregation",
        effect="learning",
        text="How token losses become one number: every token alike, every response alike (mean or sum of "
        "its tokens), or the sum divided by a constant length.",
        zh="损失聚合方式",
        advice="token_mean (DAPO) is the default of verl and TRL. seq_mean_token_mean is GRPO as published "
        "and favours long wrong answers; token_sum_norm (Dr. GRPO) has no length bias. Step sizes differ, "
        "so search the learning rate again. verl writes token-mean and so on; TRL loss_type = dapo, grpo, "
        "dr_grpo.",
        search=SearchRange("categorical", values=("token_mean", "seq_mean_token_mean", "token_sum_norm")),
        verl=("actor_rollout_ref.actor.loss_agg_mode",),
        trl=("loss_type",),
    ),
    Lever(
        name="ppo_epochs",
        path="algorithm.ppo_epochs",
        effect="learning",
        text="Passes over each batch of responses before new ones are sampled.",
        zh="PPO 更新轮数",
        too_low="1 is the lower end: freshest data, most generation per update; timing_s/gen dominates.",
        too_high="actor/ppo_kl and actor/pg_clipfrac grow within an iteration, and the score is sawtoothed "
        "or collapses.",
        advice="The first article searches 4–8; verl, TRL's GRPO and OpenRLHF use 1, and every verl example "
        "that sets it does too. Search 1–4, together with the learning rate.",
        search=SearchRange("int", 1, 4, recommended=1),
        verl=("actor_rollout_ref.actor.ppo_epochs",),
        trl=("num_iterations", "num_ppo_epochs"),
        aliases=("num_ppo_epochs",),
    ),
    Lever(
        name="mini_batch_size",
        path="algorithm.mini_batch_size",
        effect="learning",
        text="Responses per optimizer step. Updates per rollout = batch_size ÷ mini_batch_size × ppo_epochs.",
        zh="小批量大小",
        too_low="Many updates on old data: actor/ppo_kl and actor/pg_clipfrac grow, actor/grad_norm is "
        "noisy.",
        too_high="Equal to batch_size it is one update per rollout: clipping never acts and learning per "
        "response is slower.",
        advice="Start with mini_batch_size = batch_size; halve it when the run is stable. verl counts "
        "prompts (= mini_batch_size ÷ group_size); TRL's GRPO multiplies per_device_train_batch_size, "
        "gradient_accumulation_steps and the number of processes.",
        search=SearchRange("pow2", 64, 512),
        verl=("actor_rollout_ref.actor.ppo_mini_batch_size",),
        trl=("per_device_train_batch_size", "gradient_accumulation_steps", "mini_batch_size"),
    ),
    Lever(
        name="old_log_probs",
        path="algorithm.old_log_probs",
        effect="learning",
        text="Where the ratio's denominator comes from: the sampler's own log-probabilities (rollout), or a "
        "pass of the trainer before the update (recompute), under the sampler's temperature and truncation.",
        zh="旧策略对数概率来源",
        advice="Recompute when sampler and trainer differ (other engine, other precision): ratio/first then "
        "starts at 0. The mismatch stays visible in rollout/mismatch_*.",
        verl=("algorithm.rollout_correction.bypass_mode",),
    ),
)

LEVERS: tuple[Lever, ...] = (*_ADVANTAGE, *_CLIPPING, *_KL, *_UPDATE)
