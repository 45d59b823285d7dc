"""Tiny random policies of several architectures, built here: no file, no hub."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
)

from leverl.engine.policy.load import Policy, private_rng, silence_config, silence_modules

VOCAB = 23
EOS = 1

CONFIGS: dict[str, Callable[..., PreTrainedConfig]] = {
    "qwen2": lambda **more: Qwen2Config(
        **{
            "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
            "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": EOS, "pad_token_id": 0, **more,
        }
    ),
    "llama": lambda **more: LlamaConfig(
        **{
            "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64,
            "tie_word_embeddings": False, "bos_token_id": None,
            "eos_token_id": EOS, "pad_token_id": 0, **more,
        }
    ),
    "gpt2": lambda **more: GPT2Config(
        **{
            "vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
            "bos_token_id": None, "eos_token_id": EOS, "pad_token_id": 0, **more,
        }
    ),
    "bloom": lambda **more: BloomConfig(
        **{
            "vocab_size": VOCAB, "hidden_size": 32, "n_layer": 2, "n_head": 4, "bos_token_id": None,
            "eos_token_id": EOS, "pad_token_id": 0, **more,
        }
    ),
    "mistral-window": lambda **more: MistralConfig(
        **{
            "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64,
            "sliding_window": 4, "bos_token_id": None, "eos_token_id": EOS, "pad_token_id": 0, **more,
        }
    ),
    "mamba": lambda **more: MambaConfig(
        **{
            "vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4,
            "bos_token_id": None, "eos_token_id": EOS, "pad_token_id": 0, **more,
        }
    ),
}  # fmt: skip

MakePolicy = Callable[..., Policy]


def build_policy(
    kind: str = "qwen2",
    *,
    seed: int = 0,
    std: float = 0.3,
    vocab_size: int = VOCAB,
    silent: bool = True,
    **more: Any,
) -> Policy:
    """A policy with clearly non-uniform logits. `more` goes to the configuration."""
    config = CONFIGS[kind](**more)
    if silent:
        silence_config(config)
    with private_rng():
        model = AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, parameter in sorted(model.named_parameters()):
            if parameter.ndim == 2:
                parameter.normal_(0.0, std, generator=generator)
    if silent:
        silence_modules(model)
    return Policy(model.eval(), None, (EOS,), 0, vocab_size)


@pytest.fixture
def make_policy() -> MakePolicy:
    return build_policy
