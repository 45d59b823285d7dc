"""The reward role: decodes responses and has them scored."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from leverl.engine.data.batch import FAILED, TRUNCATED, Batch
from leverl.engine.data.prompt import Prompt
from leverl.engine.rewards.protocol import RewardFunction
from leverl.engine.rewards.score import Scores, score_batch
from leverl.engine.roles.dispatch import split


class Reward:
    """Scores of rollouts by the training reward, of held-out responses by the evaluation reward."""

    def __init__(
        self, training: RewardFunction, evaluation: RewardFunction, tokenizer: Any, max_error_rate: float
    ) -> None:
        self._training = training
        self._evaluation = evaluation
        self._tokenizer = tokenizer
        self._max_error_rate = max_error_rate

    @split
    def score(self, batch: Batch) -> Batch:
        """The batch with texts, scores, and what the reward function returned beside them."""
        prompts = [batch.prompts[int(index)] for index in batch.group]
        texts, scores = self._score(self._training, prompts, batch.responses, batch.lengths, batch.finish)
        return batch.with_(
            texts=texts,
            scores=scores.scores,
            scored=scores.scored,
            reward_errors=scores.errors,
            first_reward_error=scores.first_error,
            reward_extra=scores.extra,
        )

    @split
    def score_held_out(
        self, prompts: Sequence[Prompt], responses: Tensor, lengths: Tensor, finish: Tensor
    ) -> tuple[tuple[str, ...], Scores]:
        """Texts and scores of responses [B, T] to held-out prompts, one prompt per response."""
        return self._score(self._evaluation, prompts, responses, lengths, finish)

    def _score(
        self,
        function: RewardFunction,
        prompts: Sequence[Prompt],
        responses: Tensor,
        lengths: Tensor,
        finish: Tensor,
    ) -> tuple[tuple[str, ...], Scores]:
        ids = [row[:n] for row, n in zip(responses.tolist(), lengths.tolist(), strict=True)]
        texts = tuple(self._tokenizer.batch_decode(ids, skip_special_tokens=True))
        scores = score_batch(
            function,
            prompts,
            texts,
            (finish == TRUNCATED).tolist(),
            max_error_rate=self._max_error_rate,
            failed=(finish == FAILED).tolist(),
        )
        return texts, scores
