"""What a sampling engine is: prompts in, sampled ids and their log-probs out, weights pushed in by name."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from leverl.errors import ConfigError


@dataclass(frozen=True)
class SamplingParams:
    """How responses are drawn.

    The order is that of the common engines: temperature, then top-k, then top-p, then renormalise.
    `temperature = 0` is greedy. `top_k = 0` and `top_p = 1` are off. Any of `stop_ids` ends a response and is
    kept as its last token; no stop id means that every response has exactly `max_new_tokens` tokens.
    """

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ConfigError(f"sampling: max_new_tokens is {self.max_new_tokens}, must be at least 1.")
        if not self.temperature >= 0:
            raise ConfigError(f"sampling: temperature is {self.temperature}, must be 0 (greedy) or positive.")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"sampling: top_p is {self.top_p}, must be in (0, 1]; 1 turns it off.")
        if self.top_k < 0:
            raise ConfigError(f"sampling: top_k is {self.top_k}, must be 0 (off) or positive.")


@dataclass(frozen=True)
class Generation:
    """Responses to P prompts, `group_size` each: row b answers prompt b // group_size. B = P·G.

    T is the length of the longest response. All on the CPU, wherever the engine runs. Outside `mask` lie the
    pad id and log-prob 0.
    """

    responses: Tensor  # [B, T] long, ids exactly as sampled, stop token included
    mask: Tensor  # [B, T] bool, True on sampled tokens
    finish: Tensor  # [B] long, STOPPED | TRUNCATED (see leverl.engine.data.batch)
    log_probs: Tensor  # [B, T] float32, under the distribution that was sampled from; 0 when greedy


class Sampled(Protocol):
    """What a native engine needs of a policy; `leverl.engine.policy.load.Policy` is one."""

    @property
    def model(self) -> Any: ...
    @property
    def pad_id(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    def computing(self) -> AbstractContextManager[None]: ...


class InferenceEngine(Protocol):
    """A sampler whose weights are replaced between calls: `start`, `load` as often as it takes, `finish`."""

    @property
    def version(self) -> int:
        """Version of the weights that sample now."""
        ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        group_size: int,
        params: SamplingParams,
        *,
        seed: int,
        micro_batch_size: int,
    ) -> Generation:
        """Sample `group_size` responses to each prompt; `micro_batch_size` counts responses.

        The result depends on weights, prompts, `params` and `seed` only, never on `micro_batch_size`.
        """
        ...

    def start(self, version: int) -> None:
        """Open a weight update; sampling is refused until `finish`."""
        ...

    def load(self, weights: Sequence[tuple[str, Tensor]]) -> None:
        """Take some of the weights; each name exactly once per update."""
        ...

    def finish(self) -> None:
        """Close the update: every weight must have come. From here `version` is the new one."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """The weights that sample now, by name, each tensor once: for exact comparison."""
        ...
