"""Levers of `data` and `reward`: which prompts are asked, and how a response is scored."""

from leverl.vocabulary.lever import Lever

_DATA: tuple[Lever, ...] = (
    Lever(
        name="task",
        path="data.task",
        effect="learning",
        text="Built-in task: echo, copy, reverse, sort, add, or reasoning_gym:NAME. Null when train_files "
        "are given.",
        zh="任务",
        advice="echo and copy check the set-up in seconds; sort and add show real differences between "
        "settings.",
    ),
    Lever(
        name="length",
        path="data.length",
        effect="learning",
        text="Size of a problem of the built-in task: symbols to copy, reverse or sort, digits of each "
        "number to add.",
        zh="任务长度",
        too_low="eval/score reaches 1 within a few steps: settings can no longer be told apart.",
        too_high="critic/score/mean stays near 0 and group/dead_share near 1: no response is ever right.",
        advice="Choose it so that the base policy scores between 0.1 and 0.7. max_response_length must hold "
        "the answer and its end token.",
    ),
    Lever(
        name="task_args",
        path="data.task_args",
        effect="learning",
        text="Arguments handed to a reasoning_gym task.",
        zh="任务参数",
    ),
    Lever(
        name="train_files",
        path="data.train_files",
        effect="learning",
        text="Prompt files to train on (Parquet or JSON lines in verl's row format, or a Hugging Face data "
        "set).",
        zh="训练数据文件",
        verl=("data.train_files",),
        trl=("dataset_name",),
    ),
    Lever(
        name="eval_files",
        path="data.eval_files",
        effect="logging",
        text="Held-out prompt files that evaluations are measured on.",
        zh="评估数据文件",
        advice="Never the training prompts: a score on them cannot show reward hacking or overfitting. Held "
        "fixed within a study.",
        verl=("data.val_files",),
        aliases=("val_files",),
    ),
    Lever(
        name="train_size",
        path="data.train_size",
        effect="learning",
        text="Distinct training prompts the built-in task generates.",
        zh="训练提示数",
        too_low="train/epoch grows fast, and critic/score/mean rises while eval/score stays: prompts are "
        "memorised.",
        too_high="Nothing but a longer epoch; tasks of small length have fewer distinct prompts than asked.",
        verl=("data.train_max_samples",),
        aliases=("train_max_samples",),
    ),
    Lever(
        name="eval_size",
        path="data.eval_size",
        effect="learning",
        text="Held-out prompts each evaluation asks. A built-in task sets them aside first, so its training "
        "prompts depend on it.",
        zh="评估提示数",
        too_low="eval/score_se is large: 30 problems give ±0.09 at a score of 0.5, more than most settings "
        "differ.",
        too_high="timing_s/eval takes a large share of the run.",
        advice="The error falls with the square root: 256 prompts give ±0.03 at a score of 0.5. Held fixed "
        "within a study.",
        verl=("data.val_max_samples",),
        aliases=("val_size", "val_max_samples"),
    ),
    Lever(
        name="data_seed",
        path="data.data_seed",
        effect="learning",
        text="Seed of the built-in task's problems: which prompts exist. Their order follows from `seed`.",
        zh="数据种子",
        advice="Held fixed within a study, so that all runs meet the same evaluation set. Not verl's "
        "data.seed, which orders the rows.",
    ),
    Lever(
        name="prompt_style",
        path="data.prompt_style",
        effect="learning",
        text="`bare` asks with the problem alone, `instruct` adds an English sentence; `auto` is bare for "
        "the embedded policy and instruct for a pretrained one.",
        zh="提示风格",
    ),
    Lever(
        name="prompt_key",
        path="data.prompt_key",
        effect="learning",
        text="Column of the prompt files that holds the prompt.",
        zh="提示列名",
        verl=("data.prompt_key",),
    ),
    Lever(
        name="max_prompt_length",
        path="data.max_prompt_length",
        effect="learning",
        text="Tokens a prompt may have; longer prompts are dropped and counted.",
        zh="最大提示长度",
        too_low="Many prompts are dropped (reported at the start): the long, often hard ones are never "
        "trained.",
        too_high="Only memory, and only with prompts that long.",
        advice="The article advises at least 1024. Memory grows about linearly with it, not with the "
        "square. verl stops at an over-long prompt unless data.filter_overlong_prompts is set.",
        verl=("data.max_prompt_length",),
        aliases=("prompt_length",),
    ),
    Lever(
        name="shuffle",
        path="data.shuffle",
        effect="learning",
        text="Draws the prompts in a new random order each epoch instead of the file's order.",
        zh="打乱顺序",
        verl=("data.shuffle",),
        trl=("shuffle_dataset",),
        aliases=("shuffle_dataset",),
    ),
)

_REWARD: tuple[Lever, ...] = (
    Lever(
        name="reward",
        path="reward.kind",
        effect="learning",
        text="How a response is scored: exact (right or wrong), dense (partial credit), math (answers "
        "compared as mathematics), or function (your own Python function).",
        zh="奖励类型",
        advice="exact says what you want but is silent while nothing is right: from random weights only "
        "echo takes off with it. dense gives a slope to climb. Scores of different kinds cannot be "
        "compared, so do not search over it.",
        aliases=("reward_kind",),
    ),
    Lever(
        name="function_path",
        path="reward.function_path",
        effect="learning",
        text="Python file with your reward function (reward=function).",
        zh="奖励函数文件",
        advice="Same signature as verl: compute_score(data_source, solution_str, ground_truth, extra_info). "
        "In verl the key is under `reward.`; the top-level custom_reward_function.* is accepted and ignored "
        "since June 2026.",
        verl=("reward.custom_reward_function.path",),
        aliases=("reward_function_path", "reward_path"),
    ),
    Lever(
        name="function_name",
        path="reward.function_name",
        effect="learning",
        text="Name of the reward function in that file.",
        zh="奖励函数名",
        verl=("reward.custom_reward_function.name",),
        aliases=("reward_function_name",),
    ),
    Lever(
        name="max_error_rate",
        path="reward.max_error_rate",
        effect="logging",
        text="Share of responses the reward function may fail on in one iteration before the run is "
        "stopped; unscored responses never count as score 0.",
        zh="奖励函数最大错误率",
        too_low="The run stops at the first unusual response (exit code 3, first traceback shown).",
        too_high="reward/errors and rollout/unscored are high and the run goes on with few scored responses.",
        advice="It decides whether a run may go on, never what it learns. The article asks for a success "
        "rate above 0.95 in the baseline round.",
    ),
)

LEVERS: tuple[Lever, ...] = (*_DATA, *_REWARD)
