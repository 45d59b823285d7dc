"""The rollout role: samples responses."""

import torch
from torch import Tensor

from leverl.engine.data.batch import Batch
from leverl.engine.data.prompt import Prompt
from leverl.engine.data.seeding import derive_seed
from leverl.engine.inference.protocol import Generation, InferenceEngine, SamplingParams
from leverl.engine.roles.dispatch import broadcast, split


class Rollout:
    """Samples a group of responses for each prompt."""

    def __init__(
        self, engine: InferenceEngine, group_size: int, params: SamplingParams, micro_batch_size: int
    ) -> None:
        self.engine = engine
        self._group_size = group_size
        self._params = params
        self._micro_batch_size = micro_batch_size

    @split
    def generate(self, prompts: list[Prompt], step: int, *seed: int | str) -> Batch:
        """Sample `group_size` responses a prompt; rows of one prompt are neighbours."""
        generation = self._sample(
            prompts, self._group_size, self._params, derive_seed(*seed, "rollout", step)
        )
        return Batch(
            step=step,
            prompts=tuple(prompts),
            group=torch.arange(len(prompts)).repeat_interleave(self._group_size),
            responses=generation.responses,
            mask=generation.mask,
            finish=generation.finish,
            rollout_log_probs=generation.log_probs,
            weight_version=self.engine.version,
        )

    @split
    def respond(
        self, prompts: list[Prompt], samples: int, temperature: float, *seed: int | str
    ) -> Generation:
        """Responses for evaluation: untruncated distribution at `temperature`, 0 is greedy."""
        params = SamplingParams(
            max_new_tokens=self._params.max_new_tokens,
            temperature=temperature,
            top_p=1.0,
            top_k=0,
            stop_ids=self._params.stop_ids,
        )
        return self._sample(prompts, samples, params, derive_seed(*seed, "evaluation"))

    @broadcast
    def load_weights(self, version: int, tensors: list[tuple[str, Tensor]]) -> None:
        """Take over weights."""
        self.engine.start(version)
        self.engine.load(tensors)
        self.engine.finish()

    def _sample(
        self, prompts: list[Prompt], group_size: int, params: SamplingParams, seed: int
    ) -> Generation:
        return self.engine.generate(
            [prompt.token_ids for prompt in prompts],
            group_size,
            params,
            seed=seed,
            micro_batch_size=self._micro_batch_size,
        )
