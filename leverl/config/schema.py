"""The configuration of a run: what exists, its default, its type and its hard bounds.

What a setting means, which values are advised and what it is called elsewhere is in
`leverl.vocabulary.levers`; every leaf here is a lever there, and the other way round.
Derived values are properties, never fields.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Aggregation = Literal["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "token_sum_norm"]


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True, ser_json_inf_nan="strings"
    )


class EmbeddedModel(_Section):
    """Shape of the small policy that leverl builds itself."""

    hidden_size: int = Field(64, ge=16, le=1024, multiple_of=8)
    layers: int = Field(2, ge=1, le=24)
    heads: int = Field(4, ge=1, le=32)
    alphabet: Literal["digits", "ascii"] = "digits"
    init_seed: int = Field(0, ge=0)
    warm_start_steps: int = Field(0, ge=0)


class Model(_Section):
    """The policy to train."""

    path: str = "embedded"
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    trust_remote_code: bool = False
    embedded: EmbeddedModel = EmbeddedModel()


class Data(_Section):
    """Where prompts come from: a procedural task, or files in verl's row format."""

    task: str | None = "sort"
    length: int = Field(3, ge=1, le=64)
    task_args: dict[str, bool | int | float | str] = {}
    train_files: list[str] = []
    eval_files: list[str] = []
    train_size: int = Field(4096, ge=1)
    eval_size: int = Field(256, ge=1)
    data_seed: int = Field(0, ge=0)
    prompt_style: Literal["auto", "bare", "instruct"] = "auto"
    prompt_key: str = "prompt"
    max_prompt_length: int = Field(1024, ge=1)
    shuffle: bool = True


class Reward(_Section):
    """How a response is scored."""

    kind: Literal["dense", "exact", "math", "function"] = "dense"
    function_path: str | None = None
    function_name: str = "compute_score"
    max_error_rate: float = Field(0.1, ge=0, le=1)


class Rollout(_Section):
    """How responses are sampled. Sizes count responses, not prompts."""

    batch_size: int = Field(256, ge=1)
    rollout_micro_batch_size: int = Field(256, ge=1)
    num_rollout_batches: int = Field(1, ge=1)
    group_size: int = Field(8, ge=1, le=1024)
    max_response_length: int = Field(8, ge=1)
    temperature: float = Field(1.0, gt=0, le=10)
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int = Field(0, ge=0)

    @property
    def prompts_per_iteration(self) -> int:
        return self.batch_size // self.group_size


class Algorithm(_Section):
    """Estimator, loss and penalties."""

    name: Literal["grpo", "rloo", "ppo"] = "grpo"
    scale_by_std: bool = True
    whiten_advantages: bool = True
    gamma: float = Field(1.0, ge=0, le=1)
    gae_lambda: float = Field(1.0, ge=0, le=1)
    clip_range: float = Field(0.2, gt=0, lt=1)
    clip_range_high: float | None = Field(None, gt=0)
    dual_clip: float | None = Field(None, gt=1)
    kl_in: Literal["reward", "loss", "off"] = "loss"
    kl_coef: float = Field(0.001, ge=0, le=10)
    kl_estimator: Literal["k1", "k2", "k3"] = "k2"
    reference: Literal["auto", "always"] = "auto"
    entropy_coef: float = Field(0.0, ge=-1, le=1)
    loss_aggregation: Aggregation = "token_mean"
    ppo_epochs: int = Field(1, ge=1, le=64)
    mini_batch_size: int = Field(256, ge=1)
    old_log_probs: Literal["rollout", "recompute"] = "rollout"


class Optimizer(_Section):
    """AdamW and its schedule."""

    learning_rate: float = Field(1e-3, gt=0, lt=1)
    weight_decay: float = Field(0.0, ge=0, le=1)
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.95, ge=0, lt=1)
    epsilon: float = Field(1e-8, gt=0)
    grad_clip: float = Field(1.0, gt=0)
    warmup_steps: int = Field(0, ge=0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"


class Actor(Optimizer):
    """Optimisation of the policy."""

    micro_batch_tokens: int = Field(16384, ge=1)


class Critic(Optimizer):
    """Optimisation of the value model (PPO only)."""

    value_clip: float | None = Field(0.2, gt=0)


class Evaluation(_Section):
    """Held-out evaluation."""

    every: int = Field(20, ge=0)
    samples: int = Field(1, ge=1)
    temperature: float = Field(0.0, ge=0, le=10)
    last_k: int = Field(3, ge=1)


class Train(_Section):
    """How long the run goes on and what it leaves on disk."""

    steps: int = Field(200, ge=1)
    save_every: int = Field(50, ge=0)
    keep: int = Field(2, ge=1)
    log_samples: int = Field(8, ge=0)
    threads: int = Field(1, ge=1)


class Config(_Section):
    """Everything that decides what a run computes."""

    seed: int = Field(0, ge=0)
    model: Model = Model()
    data: Data = Data()
    reward: Reward = Reward()
    rollout: Rollout = Rollout()
    algorithm: Algorithm = Algorithm()
    actor: Actor = Actor()
    critic: Critic = Critic()
    evaluation: Evaluation = Evaluation()
    train: Train = Train()
