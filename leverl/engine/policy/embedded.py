"""The small policy that leverl builds itself, so that it runs where there is no model to download.

A Qwen2 decoder (RoPE) with a character tokenizer, written in Hugging Face format and loaded
from there like any other model.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn
from transformers import Qwen2Config, Qwen2ForCausalLM

from leverl.engine.data.prompt import Prompt
from leverl.engine.policy.load import no_progress_bars, policy_of, private_rng
from leverl.engine.policy.tokenizer import Alphabet, character_tokenizer
from leverl.engine.policy.warm_start import warm_start
from leverl.errors import ConfigError

FORMAT = 2
"""Raised whenever the same spec gives other bytes, so that cached models of older versions are not taken."""

MAX_POSITIONS = 4096


@dataclass(frozen=True)
class EmbeddedSpec:
    """Shape and seed of the embedded model; the default has about 100 thousand parameters."""

    hidden_size: int = 64
    layers: int = 2
    heads: int = 4
    alphabet: Alphabet = "digits"
    init_seed: int = 0
    warm_start_steps: int = 0


def build_embedded(folder: Path, spec: EmbeddedSpec, lessons: Sequence[Prompt] = ()) -> None:
    """Write model and tokenizer of `spec` to `folder`; the same arguments give the same bytes.

    Weights are drawn from a generator seeded `init_seed`; torch's global generator is left as it was.

    Args:
        lessons: prompts with their right answers (`ground_truth`) for `spec.warm_start_steps` supervised
            steps.

    Raises:
        ConfigError: the shape does not work, or a warm start without lessons.
    """
    _check(spec, lessons)
    tokenizer = character_tokenizer(MAX_POSITIONS, spec.alphabet)
    with private_rng():  # transformers initialises from the global generator
        model = Qwen2ForCausalLM(
            _config(spec, tokenizer.pad_token_id, tokenizer.eos_token_id, len(tokenizer))
        )
    initialise(model, spec.init_seed)
    if spec.warm_start_steps:
        warm_start(policy_of(model, tokenizer), lessons, steps=spec.warm_start_steps, seed=spec.init_seed)
    with no_progress_bars():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def embedded_path(spec: EmbeddedSpec, lessons: Sequence[Prompt] = ()) -> Path:
    """Folder of the built model, from `$LEVERL_HOME` or ~/.cache/leverl; built on first use.

    The folder's name is a hash of everything that decides its content. Processes that build it at the same
    time do not disturb each other: each writes a folder of its own, and the first rename wins.
    """
    home = Path(os.environ.get("LEVERL_HOME") or Path.home() / ".cache" / "leverl")
    folder = home / "embedded" / _content_hash(spec, lessons)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        build_embedded(temporary, spec, lessons)
        temporary.chmod(0o755)  # mkdtemp's folders are private
        temporary.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def initialise(model: nn.Module, seed: int) -> None:
    """Draw all matrices from one generator, in the order of names; norms are 1, biases 0.

    Found by trying on the procedural tasks: embeddings large enough that what a token is survives the first
    layers (0.5), blocks scaled by their inputs, and a head so small (0.02) that sampling starts close to
    uniform. With 0.02 everywhere the policy needs some sixty steps before it learns anything.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            if parameter.ndim > 1:
                parameter.normal_(0.0, _standard_deviation(name, parameter), generator=generator)
            else:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)


def _standard_deviation(name: str, matrix: nn.Parameter) -> float:
    if "embed_tokens" in name:
        return 0.5
    return 0.02 if "lm_head" in name else float(matrix.shape[1]) ** -0.5


def _config(spec: EmbeddedSpec, pad_id: int, eos_id: int, vocab_size: int) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=vocab_size,
        hidden_size=spec.hidden_size,
        intermediate_size=_multiple_of_8(spec.hidden_size * 8 / 3),
        num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads,
        num_key_value_heads=spec.heads,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=False,
        attention_dropout=0.0,
        pad_token_id=pad_id,
        bos_token_id=None,
        eos_token_id=eos_id,
    )


def _multiple_of_8(size: float) -> int:
    return 8 * round(size / 8)


def _check(spec: EmbeddedSpec, lessons: Sequence[Prompt]) -> None:
    if spec.hidden_size % spec.heads or (spec.hidden_size // spec.heads) % 2:
        raise ConfigError(
            f"model.embedded: hidden_size {spec.hidden_size} ÷ heads {spec.heads} must be an even whole "
            "number, the size of a head. Change one of them."
        )
    if spec.warm_start_steps and not lessons:
        raise ConfigError(
            f"model.embedded: warm_start_steps is {spec.warm_start_steps}, but there are no prompts with "
            "answers to learn from. Set it to 0, or train on a procedural task."
        )


def _content_hash(spec: EmbeddedSpec, lessons: Sequence[Prompt]) -> str:
    content = {"format": FORMAT, "spec": asdict(spec)}
    if spec.warm_start_steps:
        content["lessons"] = [[list(prompt.messages), str(prompt.ground_truth)] for prompt in lessons]
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
