"""A policy from a folder or hub name: model, tokenizer and the ids that sampling needs."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from leverl.errors import ConfigError

TOKENIZER_FILES = ("tokenizer", "vocab", "spiece", "sentencepiece")
DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Policy:
    """A causal LM ready for RL: all dropout is off, in training mode too."""

    model: Any
    tokenizer: Any
    eos_ids: tuple[int, ...]  # any of them ends a response
    pad_id: int  # may equal an eos id: masks come from lengths, never from ids
    vocab_size: int  # ids from here on exist only as padding rows of the embedding
    dtype: str = "float32"  # what forward passes compute in; the weights themselves are float32

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.model.parameters()).device
        return device

    def computing(self) -> AbstractContextManager[None]:
        """Forward passes belong into this context."""
        return computing_in(self.dtype, self.device)


def computing_in(dtype: str, device: torch.device) -> AbstractContextManager[None]:
    """Mixed precision: matrix products in `dtype`, weights, gradients and optimizer state in float32.

    Weights in bfloat16 would swallow the updates: at a learning rate of 1e-6 most are below its resolution.
    """
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype == "bfloat16")


def load_policy(
    path: str | Path,
    *,
    dtype: str = "float32",
    device: str | torch.device = "auto",
    trust_remote_code: bool = False,
) -> Policy:
    """Load a Hugging Face causal LM with its tokenizer.

    Dropout and router noise are set to 0: a probability ratio must be 1 at the first update, hence two passes
    over the same weights must agree. Torch's global generators are left as they were.

    Args:
        path: folder in Hugging Face format, or a name on the hub.
        dtype: float32 or bfloat16: what forward passes compute in. Weights are loaded as float32.
        device: "auto" (cuda where there is one), "cpu" or "cuda".
        trust_remote_code: run Python code that comes with the model.

    Raises:
        ConfigError: no model or tokenizer at `path`, unknown dtype, no end-of-sequence id, or a tokenizer
            larger than the model's embedding.
    """
    path = str(path)
    if dtype not in DTYPES:
        raise ConfigError(f"model.dtype is '{dtype}', must be one of {', '.join(DTYPES)}.")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    path = _checked(path)
    try:
        with private_rng(), no_progress_bars():
            config = AutoConfig.from_pretrained(path, trust_remote_code=trust_remote_code)
            silence_config(config)
            model = AutoModelForCausalLM.from_pretrained(
                path, config=config, dtype=torch.float32, trust_remote_code=trust_remote_code
            )
            tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=trust_remote_code)
    except (OSError, ValueError) as error:
        raise ConfigError(_not_loadable(path, error)) from error
    silence_modules(model)
    return replace(policy_of(model.to(device), tokenizer, path), dtype=dtype)


@contextmanager
def private_rng() -> Iterator[None]:
    """What runs inside leaves torch's global generators as it found them."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        yield


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """transformers draws a bar for each model it reads or writes; it does not belong into our output."""
    enabled = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            transformers_logging.enable_progress_bar()


def policy_of(model: Any, tokenizer: Any, path: str = "model") -> Policy:
    """A policy from a loaded model and its tokenizer; see `load_policy` for the errors."""
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise ConfigError(
            f"model.path '{path}': the tokenizer has {len(tokenizer)} ids but the embedding only {rows} "
            "rows. They do not belong together."
        )
    eos_ids = _eos_ids(model, tokenizer)
    if not eos_ids:
        raise ConfigError(
            f"model.path '{path}': neither generation_config.json nor the tokenizer names an end-of-sequence "
            "token, so that no response could ever end. Set eos_token_id in generation_config.json."
        )
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else eos_ids[0]
    return Policy(model, tokenizer, eos_ids, pad_id, len(tokenizer))


def silence_config(config: Any) -> None:
    """Set every dropout probability and router noise of a model configuration to 0, nested ones too."""
    for name, value in vars(config).items():
        if hasattr(value, "to_dict"):
            silence_config(value)
        elif _is_noise(name, value):
            setattr(config, name, type(value)(0))  # some configurations insist on an int


def silence_modules(model: nn.Module) -> None:
    """The same for modules that keep a probability of their own."""
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for name, value in vars(module).items():
            if _is_noise(name, value):
                setattr(module, name, type(value)(0))


def _is_noise(name: str, value: object) -> bool:
    known = "drop" in name or "jitter" in name
    return known and isinstance(value, int | float) and not isinstance(value, bool)


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = configured if isinstance(configured, list | tuple) else [configured]
    return tuple(sorted({int(i) for i in [*ids, tokenizer.eos_token_id] if i is not None}))


def _checked(path: str) -> str:
    """The path to load; refuse what can only be a folder and is none, before anything asks the hub."""
    folder = Path(path).expanduser()
    looks_local = path.startswith((".", "~", os.sep)) or path.count("/") > 1
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ConfigError(
                f"model.path '{path}' is a folder without config.json. A model folder has config.json, "
                "model.safetensors and tokenizer files, as save_pretrained writes them."
            )
        # Without any, transformers makes up an empty tokenizer.
        if not any(file.name.startswith(TOKENIZER_FILES) for file in folder.iterdir()):
            raise ConfigError(
                f"model.path '{path}' has no tokenizer files (tokenizer.json, tokenizer_config.json, …). "
                "Save the tokenizer into the same folder with its save_pretrained."
            )
    elif looks_local or folder.exists():
        raise ConfigError(
            f"model.path '{path}' is not a folder. Give a folder in Hugging Face format, 'embedded' for the "
            "small model that leverl builds itself, or a name on the hub such as "
            "'Qwen/Qwen2.5-0.5B-Instruct'."
        )
    return str(folder) if folder.is_dir() else path


def _not_loadable(path: str, error: Exception) -> str:
    lines = str(error).strip().splitlines()
    detail = lines[0] if lines else type(error).__name__
    return (
        f"model.path '{path}' cannot be loaded as a causal language model with a tokenizer: {detail} Give a "
        "folder in Hugging Face format or 'embedded'. A name on the hub needs network access, or a copy in "
        "its local cache; there is none when offline."
    )
