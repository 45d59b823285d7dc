"""Levers of `model`: the policy to train."""

from leverl.vocabulary.lever import Lever

LEVERS: tuple[Lever, ...] = (
    Lever(
        name="model",
        path="model.path",
        effect="learning",
        text="The policy to train: `embedded` for the small built-in one, or the folder or hub name of a "
        "Hugging Face causal language model. The reference and the critic start from it too.",
        zh="模型",
        advice="A study compares settings of one model: do not search over it. There is no best table of "
        "settings across models, as the article rightly says.",
        verl=("actor_rollout_ref.model.path", "critic.model.path"),
        trl=("model_name_or_path", "sft_model_path"),
        aliases=("model_path", "model_name_or_path"),
    ),
    Lever(
        name="dtype",
        path="model.dtype",
        effect="learning",
        text="Number format of the forward passes; weights, gradients and optimizer state are float32.",
        zh="数值精度",
        advice="float32 for small models and on CPUs. bfloat16 is faster on GPUs and halves the memory of "
        "activations; the sampler's log-probabilities then differ more from the trainer's (watch "
        "rollout/mismatch_mean).",
        verl=("actor_rollout_ref.actor.fsdp_config.model_dtype", "actor_rollout_ref.rollout.dtype"),
        trl=("bf16",),
    ),
    Lever(
        name="device",
        path="model.device",
        effect="cost",
        text="Where the model computes; `auto` takes a GPU when there is one.",
        zh="计算设备",
        advice="Runs that are compared should share it: rounding differs between devices. verl trains on "
        "GPUs only and ignores trainer.device=cpu.",
    ),
    Lever(
        name="trust_remote_code",
        path="model.trust_remote_code",
        effect="learning",
        text="Allows Python code that comes with the model's files to run.",
        zh="信任远程代码",
        advice="Leave it off unless you have read that code.",
        verl=(
            "actor_rollout_ref.model.trust_remote_code",
            "critic.model.trust_remote_code",
            "data.trust_remote_code",
        ),
        trl=("trust_remote_code",),
    ),
    Lever(
        name="embedded_hidden_size",
        path="model.embedded.hidden_size",
        effect="learning",
        text="Width of the embedded policy; a multiple of 2 × embedded_heads.",
        zh="内置模型隐藏层宽度",
        too_low="eval/score levels off below 1 whatever the learning rate: the model cannot represent the "
        "task.",
        too_high="timing_s/step grows, and the same learning rate turns unstable: wider models want a "
        "smaller one.",
        advice="The built-in tasks are learnt with 64; widen it only when the score levels off at every "
        "learning rate.",
        aliases=("hidden_size",),
    ),
    Lever(
        name="embedded_layers",
        path="model.embedded.layers",
        effect="learning",
        text="Decoder layers of the embedded policy.",
        zh="内置模型层数",
        too_low="Tasks that compare positions (sort, add) level off early.",
        too_high="timing_s/step grows, and the same learning rate turns unstable.",
        aliases=("layers",),
    ),
    Lever(
        name="embedded_heads",
        path="model.embedded.heads",
        effect="learning",
        text="Attention heads of the embedded policy.",
        zh="内置模型注意力头数",
        too_low="eval/score rises late: one head has to look at several places at once.",
        too_high="eval/score levels off early: each head is too narrow to tell positions apart.",
        aliases=("heads",),
    ),
    Lever(
        name="embedded_alphabet",
        path="model.embedded.alphabet",
        effect="learning",
        text="Characters the embedded policy can read and write: the digits with + - = and space, or all "
        "printable ASCII characters.",
        zh="字符表",
        advice="digits for the procedural tasks: from random weights the right characters are found by "
        "chance, so fewer of them are found sooner. ascii for prompts in words.",
    ),
    Lever(
        name="embedded_init_seed",
        path="model.embedded.init_seed",
        effect="learning",
        text="Seed of the embedded policy's first weights: which base model is trained.",
        zh="内置模型初始化种子",
        advice="Held fixed within a study; replicates vary `seed`, not the base model.",
        aliases=("init_seed",),
    ),
    Lever(
        name="embedded_warm_start_steps",
        path="model.embedded.warm_start_steps",
        effect="learning",
        text="Supervised steps on the task's answers before reinforcement learning starts; they stand in "
        "for the supervised fine-tuning of a pretrained model.",
        zh="内置模型监督预热步数",
        too_low="0 with reward=exact on a long task: critic/score/mean stays 0 and group/dead_share 1.",
        too_high="eval/score is near 1 at step 0 and group/dead_share high: nothing is left to learn.",
        advice="After a warm start use a smaller actor_learning_rate (near 3e-4) and some "
        "actor_warmup_steps: AdamW's first full step at 1e-3 can undo it.",
        aliases=("warm_start_steps",),
    ),
)
