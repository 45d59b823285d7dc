"""What both engines are given: a model on disk, prompts, a reward, and how long responses become.

How long a response is follows from the weights alone: the logit of the end token is (nearly) a constant, set so
that a response never ends before the cap, or ends at each step with the same probability. So both engines run
with the same settings and sample lengths from the same distribution.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

PAD, EOS = "<|pad|>", "<|eos|>"
PROMPT_TOKENS = 8
TRAIN_PROMPTS = 4096
LEARNING_RATE = 1e-6  # small: the lengths of responses must not drift while they are timed
BETAS = (0.9, 0.95)


@dataclass(frozen=True)
class Model:
    """Shape of a Qwen2 model and how many responses an iteration has."""

    name: str
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    responses: int


@dataclass(frozen=True)
class Lengths:
    """`mean` response length under a `cap`; mean = cap forces all responses to the cap."""

    name: str
    cap: int
    mean: float


@dataclass(frozen=True)
class Setting:
    """One shard of the benchmark; everything that decides what is measured."""

    model: Model
    lengths: Lengths
    trl_passes: int = 1  # training passes that TRL cuts a batch into: its gradient_accumulation_steps
    group_size: int = 8

    @property
    def name(self) -> str:
        passes = f"/TRL in {self.trl_passes} passes" if self.trl_passes > 1 else ""
        return f"{self.model.name}/{self.lengths.name}{passes}"

    @property
    def prompts(self) -> int:
        return self.model.responses // self.group_size

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"prompt_tokens": PROMPT_TOKENS, "learning_rate": LEARNING_RATE}


MODELS = {
    "0.8M": Model("0.8M", 128, 344, 4, 4, responses=256),
    "20M": Model("20M", 512, 1536, 6, 8, responses=64),
}
WORKLOADS = {
    "equal": Lengths("equal", cap=16, mean=16),
    "natural": Lengths("natural", cap=64, mean=16),
}


def score(text: str) -> float:
    """The reward of both engines: the share of letters. Cheap, and different within most groups."""
    return sum(map(str.isalpha, text)) / (1 + len(text))


def compute_score(*, data_source: str, solution_str: str, ground_truth: Any, extra_info: Any) -> float:  # noqa: ARG001
    """The same, with the signature that leverl calls."""
    return score(solution_str)


def prompt_texts() -> list[str]:
    """Different prompts of PROMPT_TOKENS characters, hence tokens, each."""
    return [f"{number:0{PROMPT_TOKENS}d}" for number in range(TRAIN_PROMPTS)]


def write_prompts(path: Path) -> None:
    """The prompts as JSON lines in the row format that leverl reads."""
    rows = [
        {"data_source": "benchmark", "prompt": text, "reward_model": {"ground_truth": "-"}}
        for text in prompt_texts()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def build_model(folder: Path, setting: Setting) -> int:
    """Write model and tokenizer in Hugging Face format; returns the number of parameters."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from leverl.engine.policy.embedded import initialise

    tokenizer = byte_tokenizer()
    shape = setting.model
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=shape.hidden_size,
            intermediate_size=shape.intermediate_size,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            max_position_embeddings=1024,
            tie_word_embeddings=False,
            bos_token_id=None,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    initialise(model, seed=0)
    _set_end_probability(model, tokenizer.eos_token_id, end_probability(setting.lengths))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def byte_tokenizer() -> Any:
    """258 ids: padding, end, and one for each byte. No chat template: a prompt is its text."""
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

    vocab = {token: index for index, token in enumerate((PAD, EOS, *sorted(ByteLevel.alphabet())))}
    return Qwen2Tokenizer(
        vocab=vocab,
        merges=[],
        pad_token=PAD,
        eos_token=EOS,
        unk_token=PAD,
        clean_up_tokenization_spaces=False,
    )


def end_probability(lengths: Lengths) -> float:
    """p for which a response that ends with probability p at each step, or at the cap, has the mean length.

    E[min(geometric(p), cap)] = (1 − (1 − p)^cap) / p falls with p; solved by bisection. 0 where mean = cap.
    """
    if lengths.mean >= lengths.cap:
        return 0.0
    low, high = 1e-9, 1.0
    for _ in range(100):
        p = math.sqrt(low * high)
        mean = (1 - (1 - p) ** lengths.cap) / p
        low, high = (p, high) if mean > lengths.mean else (low, p)
    return high


@torch.no_grad()
def _set_end_probability(model: Any, eos_id: int, p: float) -> None:
    """Give the end token a logit that is the same in (nearly) all contexts.

    Coordinate 0 of the residual stream becomes a constant: 1 in each embedding, and nothing adds to it. The head
    reads it for the end token only, with a factor for which the mean probability is p over random contexts.
    """
    head = model.lm_head.weight
    model.model.embed_tokens.weight[:, 0] = 1.0
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight[0] = 0.0
        layer.mlp.down_proj.weight[0] = 0.0
    head[:, 0] = 0.0
    head[eos_id] = 0.0
    ids = torch.randint(len(head), (64, 24), generator=torch.Generator().manual_seed(0))
    constant = model.model(ids).last_hidden_state[..., 0].flatten()
    logits = model(ids).logits.flatten(0, 1)
    logits[:, eos_id] = -torch.inf
    head[eos_id, 0] = _factor(constant, logits.logsumexp(dim=1), p)


def _factor(constant: Tensor, others: Tensor, p: float) -> float:
    """k for which sigmoid(k·constant − others) has the mean p."""
    if p == 0:
        return float(-40 / constant.min())  # e^-40 at most: it does not happen
    low, high = -100.0, 100.0
    for _ in range(60):
        k = (low + high) / 2
        low, high = (k, high) if float((k * constant - others).sigmoid().mean()) < p else (low, k)
    return high
