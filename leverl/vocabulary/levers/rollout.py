"""Levers of `rollout`: how responses are sampled. Sizes count responses, never prompts."""

from leverl.vocabulary.lever import Lever, SearchRange

LEVERS: tuple[Lever, ...] = (
    Lever(
        name="batch_size",
        path="rollout.batch_size",
        effect="learning",
        text="Responses sampled per iteration, all of which are scored and then learnt from.",
        zh="批量大小",
        too_low="critic/score/mean and actor/grad_norm are noisy; steps differ by more than the trend of 20 "
        "steps.",
        too_high="Smooth curves that rise slowly per hour: timing_s/step grows while gain per response "
        "falls.",
        advice="The first article searches {256, 512}. Compare sizes at equal responses, not at equal "
        "steps. It counts responses here; verl's data.train_batch_size counts prompts (= batch_size ÷ "
        "group_size), so that key is not accepted as another spelling.",
        search=SearchRange("pow2", 64, 1024, recommended=256),
        verl=("data.train_batch_size",),
        trl=("generation_batch_size", "batch_size"),
        aliases=("generation_batch_size",),
    ),
    Lever(
        name="rollout_micro_batch_size",
        path="rollout.rollout_micro_batch_size",
        effect="cost",
        text="Responses generated together in one call of the sampler. While batch_size is held, results do "
        "not depend on it.",
        zh="采样微批大小（采样粒度）",
        too_low="timing_s/gen grows and perf/gpu_utilisation stays low: the start-up cost of each call "
        "dominates.",
        too_high="perf/memory_gb or perf/gpu_memory_gb climbs until the run ends out of memory, long "
        "contexts first.",
        advice="The article advises 8–64, to start with 16, to keep GPU memory at 85–92 % and to lower this "
        "before num_rollout_batches when memory is short; take the largest that fits, and read utilisation "
        "rather than the memory share where the engine reserves memory in advance (vLLM). verl has no such "
        "key; the nearest is max_num_seqs. The name rollout_batch_size, which the article calls its "
        "predecessor, never existed in verl and counts prompts elsewhere, so it is not accepted.",
        search=SearchRange("pow2", 8, 64, recommended=16),
        verl=("actor_rollout_ref.rollout.max_num_seqs",),
        trl=("local_rollout_forward_batch_size",),
    ),
    Lever(
        name="num_rollout_batches",
        path="rollout.num_rollout_batches",
        effect="cost",
        text="Calls of the sampler per iteration; their responses are merged into one batch of "
        "num_rollout_batches × rollout_micro_batch_size. While batch_size is held, results do not depend on "
        "it.",
        zh="采样批次数（数据新鲜度）",
        too_low="With a batch_size that shrinks along: noisy rewards and an early plateau (the article's "
        "local optimum).",
        too_high="With a batch_size that grows along: fewer policy versions per hour and, at a fixed "
        "mini_batch_size, more updates per rollout, so actor/ppo_kl and actor/pg_clipfrac rise.",
        advice="The article advises 4–32, commonly 8 or 16. Its rule of one to two tokens per model "
        "parameter has no meaning (the article concedes it), and 8 batches in 12 minutes is one policy "
        "version per 12 minutes, not per 1.5. Judge freshness by updates per rollout = batch_size ÷ "
        "mini_batch_size × ppo_epochs and by seconds per policy version; both are printed at the start.",
        search=SearchRange("pow2", 4, 32, recommended=8),
    ),
    Lever(
        name="group_size",
        path="rollout.group_size",
        effect="learning",
        text="Responses sampled for each prompt. GRPO and RLOO compare them with one another; PPO works "
        "with 1.",
        zh="每个提示的采样数（组大小）",
        too_low="group/dead_share is high: all responses of a prompt score alike and teach nothing.",
        too_high="Few prompts per iteration at a fixed batch_size: critic/score/mean jumps with the prompts "
        "drawn.",
        advice="8 or 16 is usual. A prompt solved with probability p is dead with probability p^G + "
        "(1−p)^G: at p = 0.9, 43 % for 8 and 19 % for 16. GRPO with 1 has no baseline (verl accepts it "
        "silently); here it is refused.",
        search=SearchRange("pow2", 4, 32, recommended=8),
        verl=("actor_rollout_ref.rollout.n",),
        trl=("num_generations",),
        aliases=("num_generations", "n", "rollout_n", "samples_per_prompt", "n_samples_per_prompt"),
    ),
    Lever(
        name="max_response_length",
        path="rollout.max_response_length",
        effect="learning",
        text="Tokens a response may have; a longer one is cut off and counts as truncated.",
        zh="最大回复长度",
        too_low="rollout/truncated is high and critic/score/mean low; response_length/max sits at the limit.",
        too_high="Only memory and time: response_length/max stays far below the limit and nothing is "
        "truncated.",
        advice="The article advises 512 (dialogue 512, summary 256, code 768) and to shrink it when the "
        "mean length stays below 60 % of it; the mean is the wrong statistic, for a cap of 448 over a mean "
        "of 420 cuts the tail. Shrink only if response_length/p99 is below 80 % of it and under 0.5 % are "
        "truncated; grow it above 10 % truncated. Reasoning needs 2k–20k. Memory grows about linearly with "
        "it, not with the square as the article says.",
        verl=("data.max_response_length",),
        trl=("max_completion_length", "response_length"),
        aliases=("max_completion_length", "response_length", "max_new_tokens"),
    ),
    Lever(
        name="temperature",
        path="rollout.temperature",
        effect="learning",
        text="Softness of sampling: logits are divided by it, in sampling and in the log-probabilities of "
        "the loss.",
        zh="采样温度",
        too_low="actor/entropy and group/reward_std are low and group/dead_share high: samples repeat one "
        "another.",
        too_high="actor/entropy is high and critic/score/mean starts low: responses turn into noise.",
        advice="Leave it at 1 at first: then the policy that samples is the policy that is trained. A "
        "collapsing entropy can be met with +0.1.",
        search=SearchRange("linear", 0.7, 1.2, recommended=1.0),
        verl=("actor_rollout_ref.rollout.temperature",),
        trl=("temperature",),
        aliases=("rollout_temperature",),
    ),
    Lever(
        name="top_p",
        path="rollout.top_p",
        effect="learning",
        text="Samples only from the most probable tokens that together reach this probability; 1 switches "
        "it off.",
        zh="核采样阈值（top-p）",
        too_low="actor/entropy falls early, and rollout/mismatch_mean is far from 0: the sampler is not the "
        "trained policy.",
        too_high="Nothing: 1 means every token, which is what the loss assumes.",
        advice="Keep 1 in training: below it the loss sees probabilities the sampler did not use.",
        verl=("actor_rollout_ref.rollout.top_p",),
        trl=("top_p",),
    ),
    Lever(
        name="top_k",
        path="rollout.top_k",
        effect="learning",
        text="Samples only from this many of the most probable tokens; 0 switches it off.",
        zh="top-k 采样",
        too_low="As 1 it is greedy: group/reward_std is 0 and nothing is learnt (0 itself means off).",
        too_high="Nothing: more tokens than the vocabulary has is the same as off.",
        advice="Keep 0 in training, for the reason given at top_p. verl and vLLM write off as -1.",
        verl=("actor_rollout_ref.rollout.top_k",),
        trl=("top_k",),
    ),
)
