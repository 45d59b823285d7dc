"""Metrics of the run as a whole: held-out evaluation, progress, time, memory."""

from leverl.vocabulary.metric import Metric

_EVALUATION: tuple[Metric, ...] = (
    Metric(
        name="eval/score",
        unit="reward",
        direction="up",
        text="Mean score on held-out prompts: what settings are compared by.",
        zh="评估得分",
        aliases=("eval_reward", "eval_score"),
    ),
    Metric(
        name="eval/score_se",
        unit="reward",
        direction="down",
        text="Standard error of eval/score over the prompts asked. It does not contain the spread between "
        "seeds.",
        zh="评估得分标准误",
    ),
    Metric(
        name="eval/length",
        unit="tokens",
        direction="none",
        text="Mean length of a response in the evaluation.",
        zh="评估回复长度",
        aliases=("eval_completions/mean_length",),
    ),
    Metric(
        name="eval/truncated",
        unit="share of responses",
        direction="down",
        text="Responses of the evaluation cut off before their end token.",
        zh="评估截断占比",
        aliases=("eval_completions/clipped_ratio",),
    ),
    Metric(
        name="val-core/*",
        unit="reward",
        direction="up",
        text="verl: main score of a held-out data set (val-core/<data source>/<acc or reward>/mean@N).",
        zh="验证集主指标",
    ),
    Metric(
        name="val-aux/*",
        unit="",
        direction="none",
        text="verl: further statistics of a held-out data set, such as best@N and maj@N.",
        zh="验证集辅助指标",
    ),
)

_PROGRESS: tuple[Metric, ...] = (
    Metric(
        name="train/epoch",
        unit="epochs",
        direction="none",
        text="Passes over the training prompts so far.",
        zh="训练轮次",
        aliases=("epoch", "training/epoch"),
    ),
    Metric(
        name="train/responses",
        unit="responses",
        direction="none",
        text="Responses generated so far, evaluations apart: the fair measure of a budget.",
        zh="累计回复数",
        aliases=("episode",),
    ),
    Metric(
        name="train/tokens",
        unit="tokens",
        direction="none",
        text="Response tokens sampled so far, evaluations apart. TRL's num_tokens contains the prompts too.",
        zh="累计回复 token 数",
    ),
    Metric(
        name="train/updates",
        unit="updates",
        direction="none",
        text="Optimizer steps of the policy so far.",
        zh="累计更新次数",
    ),
    Metric(
        name="train/skipped_updates",
        unit="updates",
        direction="down",
        text="Updates so far that were skipped because no response of the mini-batch carried a gradient.",
        zh="累计跳过的更新次数",
    ),
)


def _seconds(stage: str, text: str, zh: str, *aliases: str) -> Metric:
    return Metric(name=f"timing_s/{stage}", unit="s", direction="down", text=text, zh=zh, aliases=aliases)


_TIME: tuple[Metric, ...] = (
    _seconds("step", "Time of the whole iteration.", "每步耗时", "step_time", "perf/time_per_step"),
    _seconds("gen", "Time to generate responses.", "生成耗时"),
    _seconds("reward", "Time to score them.", "评分耗时"),
    _seconds("ref", "Time for the reference policy's log-probabilities.", "参考模型耗时"),
    _seconds("values", "Time for the critic's values.", "价值估计耗时"),
    _seconds("old_log_prob", "Time to recompute log-probabilities before the update.", "旧策略概率耗时"),
    _seconds("update_actor", "Time to update the policy.", "Actor 更新耗时"),
    _seconds("update_critic", "Time to update the value model.", "Critic 更新耗时"),
    _seconds(
        "sync", "Time to hand the new weights to the sampler.", "权重同步耗时", "timing_s/update_weights"
    ),
    _seconds("eval", "Time of the evaluation.", "评估耗时", "timing_s/testing"),
    _seconds("save", "Time to write the checkpoint.", "保存耗时", "timing_s/save_checkpoint"),
    _seconds("*", "Time of another stage of the iteration.", "阶段耗时"),
)

_MACHINE: tuple[Metric, ...] = (
    Metric(
        name="perf/tokens_per_second",
        unit="tokens/s",
        direction="up",
        text="Response tokens per second of the iteration. verl's perf/throughput counts prompts too, per "
        "GPU.",
        zh="吞吐量",
        aliases=("perf/throughput", "throughput"),
    ),
    Metric(
        name="perf/memory_gb",
        unit="GB",
        direction="none",
        text="Resident memory of the process.",
        zh="内存占用",
        aliases=("memory",),
    ),
    Metric(
        name="perf/gpu_memory_gb",
        unit="GB",
        direction="none",
        text="Memory in use on the GPU; absent without one. The article's band of 85–92 % says little where "
        "the engine reserves memory in advance; above 95 % the run may end out of memory. verl's figure is "
        "PyTorch's part.",
        zh="显存占用",
        aliases=("gpu_memory", "actor/perf/max_memory_reserved_gb"),
    ),
    Metric(
        name="perf/gpu_utilisation",
        unit="share of time",
        direction="up",
        text="Share of time the GPU was computing; absent without one. The article acts below 80 %.",
        zh="GPU 利用率",
        aliases=("gpu_utilisation", "gpu_utilization", "perf/gpu_utilization"),
    ),
)

METRICS: tuple[Metric, ...] = (*_EVALUATION, *_PROGRESS, *_TIME, *_MACHINE)
