"""Scoring a batch of responses, with failures counted and shown instead of scored 0."""

import math
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leverl.engine.data.prompt import Prompt
from leverl.engine.rewards.protocol import TRUNCATED, RewardFunction
from leverl.errors import RewardFailed

_SHOWN = 200


@dataclass(frozen=True)
class Scores:
    """Scores of B responses.

    A row that is not `scored` (generation failed, the function raised or returned None) has the score 0,
    which nothing may read. `errors` counts calls that raised or returned something unusable; `first_error`
    is the first of them with its traceback, empty if there was none.
    """

    scores: Tensor  # [B] float32
    scored: Tensor  # [B] bool
    errors: int
    first_error: str
    extra: tuple[dict[str, Any], ...]  # B, what was returned beside `score`


def score_batch(
    function: RewardFunction,
    prompts: Sequence[Prompt],
    texts: Sequence[str],
    truncated: Sequence[bool],
    *,
    max_error_rate: float,
    failed: Sequence[bool] | None = None,
) -> Scores:
    """Score each of B responses; `prompts` has one entry per response.

    `failed` marks responses whose generation failed: they are not given to the function and are unscored.
    `extra_info` is a copy for each call, with `truncated` added.

    Raises:
        RewardFailed: the function failed on more than `max_error_rate` of the responses given to it.
    """
    skipped = [False] * len(texts) if failed is None else list(failed)
    allowed = max_error_rate * (len(texts) - sum(skipped))
    scores, scored = torch.zeros(len(texts)), torch.zeros(len(texts), dtype=torch.bool)
    extra: list[dict[str, Any]] = [{} for _ in texts]
    errors, first_error = 0, ""
    rows = zip(prompts, texts, truncated, skipped, strict=True)
    for row, (prompt, text, cut, skip) in enumerate(rows):
        if skip:
            continue
        try:
            score, extra[row] = _read(_call(function, prompt, text, bool(cut)))
        except Exception as error:  # a reward function may raise anything; the rate decides
            errors += 1
            first_error = first_error or _describe(error, prompt, text)
            if errors > allowed:  # no need to let a broken or hanging function see the rest
                raise _too_many(
                    errors, row + 1 - sum(skipped[: row + 1]), max_error_rate, first_error
                ) from error
            continue
        if score is not None:
            scores[row], scored[row] = score, True
    return Scores(scores, scored, errors, first_error, tuple(extra))


def _call(function: RewardFunction, prompt: Prompt, text: str, truncated: bool) -> Any:
    return function(
        data_source=prompt.data_source,
        solution_str=text,
        ground_truth=prompt.ground_truth,
        extra_info={**prompt.extra_info, TRUNCATED: truncated},
    )


def _read(returned: Any) -> tuple[float | None, dict[str, Any]]:
    """Score (None: cannot be scored) and the rest of what a reward function returned."""
    if not isinstance(returned, dict):
        return _number(returned), {}
    if "score" not in returned:
        raise TypeError(f"the reward function returned a dict without 'score': {_short(returned)}")
    return _number(returned["score"]), {str(key): value for key, value in returned.items() if key != "score"}


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Real | np.bool_):
        raise TypeError(
            f"the reward function returned {_short(value)} ({type(value).__name__}). "
            "Allowed: a number, a bool, None (cannot be scored), or a dict with such a 'score'."
        )
    score = float(value)
    if not math.isfinite(score):
        raise ValueError(f"the reward function returned {score}; a score must be finite")
    return score


def _describe(error: Exception, prompt: Prompt, text: str) -> str:
    trace = "".join(traceback.format_exception(error)).rstrip()
    return f"prompt {prompt.uid}, response {_short(text)}:\n{trace}"


def _too_many(errors: int, calls: int, max_error_rate: float, first_error: str) -> RewardFailed:
    return RewardFailed(
        f"the reward function failed on {errors} of the first {calls} responses of a batch, more than "
        f"reward.max_error_rate={max_error_rate} allows over the batch. Mend the function, or raise the rate "
        f"to leave such responses unscored. The first failure, {first_error}"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
