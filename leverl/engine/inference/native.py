"""The embedded sampling engine: batched decoding with the policy's own Hugging Face model."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from leverl.engine.inference.batching import compaction, fill, rectangle, width_of
from leverl.engine.inference.decoding import CausalLM, Prompts, make_decoder
from leverl.engine.inference.output import Output
from leverl.engine.inference.protocol import Generation, Sampled, SamplingParams
from leverl.engine.inference.sampling import draw
from leverl.engine.inference.uniforms import sample_keys, uniforms
from leverl.engine.inference.weight_update import WeightUpdate
from leverl.engine.weights import named_weights
from leverl.errors import ConfigError, TrainingFailed


class NativeEngine:
    """Samples with a policy's model: shared with the trainer (no copy, no transfer) or an own copy.

    With `share_weights` the weights that the trainer updates *are* those that sample; an update then only
    checks names and advances `version`.
    """

    def __init__(self, policy: Sampled, share_weights: bool = True) -> None:
        self._shared = share_weights
        self._model = policy.model if share_weights else copy.deepcopy(policy.model)
        self._pad_id = policy.pad_id
        self._computing = policy.computing
        self._lm = CausalLM(self._model, policy.vocab_size)
        self._version = 0
        self._update: WeightUpdate | None = None

    @property
    def version(self) -> int:
        return self._version

    def weights(self) -> Mapping[str, Tensor]:
        return named_weights(self._model)

    def start(self, version: int) -> None:
        if self._update is not None:
            raise TrainingFailed(
                f"weight sync: version {version} starts while version {self._update.version} is still being "
                "loaded. Call finish() first."
            )
        self._update = WeightUpdate(version, dict(self.weights()))

    def load(self, weights: Sequence[tuple[str, Tensor]]) -> None:
        if self._update is None:
            raise TrainingFailed("weight sync: load() outside an update. Call start(version) first.")
        for name, tensor in weights:
            target = self._update.take(name, tensor)
            if target.data_ptr() == tensor.data_ptr():
                continue
            if self._shared:
                raise TrainingFailed(
                    f"weight sync: '{name}' is not the tensor that this engine shares with its policy; "
                    "copying it would change the policy. Build the engine with share_weights=False."
                )
            with torch.no_grad():
                target.copy_(tensor)

    def finish(self) -> None:
        if self._update is None:
            raise TrainingFailed("weight sync: finish() outside an update. Call start(version) first.")
        self._update.check_complete()
        self._version = self._update.version
        self._update = None

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        group_size: int,
        params: SamplingParams,
        *,
        seed: int,
        micro_batch_size: int,
    ) -> Generation:
        """See `InferenceEngine.generate`.

        Raises:
            ConfigError: no or empty prompts, sizes below 1, or more tokens than the model has positions for.
            TrainingFailed: a weight update is open, or the logits are not finite.
        """
        self._check(prompts, group_size, params, micro_batch_size)
        device = next(self._model.parameters()).device
        width, padded = width_of(prompts)
        count = len(prompts) * group_size
        # Allocated before inference mode begins: its own tensors could not be used in a loss.
        out = Output(count, params.max_new_tokens, self._pad_id, device)
        with torch.inference_mode(), self._computing(), _evaluating(self._model):
            for first in range(0, count, micro_batch_size):
                samples = torch.arange(first, min(first + micro_batch_size, count), device=device)
                used = prompts[first // group_size : int(samples[-1]) // group_size + 1]
                block = rectangle(used, width, padded, self._pad_id, device)
                self._sample(block, samples, samples // group_size - first // group_size, params, seed, out)
        return out.generation()

    def _sample(
        self,
        prompts: Prompts,
        samples: Tensor,
        rows: Tensor,
        params: SamplingParams,
        seed: int,
        out: Output,
    ) -> None:
        """One micro-batch: sample indices `samples` [n], whose prompts are `rows` [n] of `prompts`."""
        samples, rows = fill(samples, out.scratch), fill(rows, int(rows[-1]))
        stop_ids = torch.tensor(params.stop_ids, dtype=torch.long, device=samples.device)
        decoder = make_decoder(self._lm, prompts, rows, params.max_new_tokens)
        keys = sample_keys(seed, samples)
        logits = decoder.start()
        for position in range(params.max_new_tokens):
            tokens, log_probs = draw(logits, params, uniforms(keys, position))
            out.write(samples, position, tokens, log_probs)
            if params.stop_ids:
                stopped = torch.isin(tokens, stop_ids)
                out.stop(samples[stopped], position)
                samples = samples.masked_fill(stopped, out.scratch)
                live = samples != out.scratch
                if not bool(live.any()):
                    return
                order = compaction(live)
                if order is not None:
                    decoder.reorder(order)
                    samples, tokens, keys = samples[order], tokens[order], keys[order]
            if position + 1 < params.max_new_tokens:
                logits = decoder.step(tokens)

    def _check(
        self, prompts: Sequence[Sequence[int]], group_size: int, params: SamplingParams, micro_batch_size: int
    ) -> None:
        if self._update is not None:
            raise TrainingFailed(
                f"rollout: version {self._update.version} of the weights is only partly loaded. Call "
                "finish() before generate()."
            )
        for name, value in (("group_size", group_size), ("micro_batch_size", micro_batch_size)):
            if value < 1:
                raise ConfigError(f"rollout: {name} is {value}, must be at least 1.")
        empty = [index for index, prompt in enumerate(prompts) if not len(prompt)]
        if empty or not prompts:
            raise ConfigError(
                f"rollout: prompts {empty} have no tokens; each needs at least one."
                if prompts
                else "rollout: no prompts were given."
            )
        room = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        needed = max(map(len, prompts)) + params.max_new_tokens
        if room is not None and needed > room:
            raise ConfigError(
                f"rollout: the longest prompt has {needed - params.max_new_tokens} tokens and responses may "
                f"have {params.max_new_tokens}, together {needed}, but the model has {room} positions. Lower "
                "rollout.max_response_length or data.max_prompt_length."
            )


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
