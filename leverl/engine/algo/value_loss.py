"""The critic's loss, per token, and how well the critic explains returns."""

from typing import NamedTuple

import torch
from torch import Tensor

from leverl.engine.algo.tensors import check_same_shape, zero_outside
from leverl.errors import ConfigError


class ValueLossTerms(NamedTuple):
    """What `clipped_value_loss` returns; both [B, T]."""

    per_token: Tensor
    """Loss, to be minimised; 0 at masked positions."""
    clipped: Tensor
    """bool: the clipped value has the larger error, so that the token has no gradient."""


def clipped_value_loss(
    values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, *, clip: float | None
) -> ValueLossTerms:
    """0.5 · max((v − R)², (clip(v, v_old ± clip) − R)²) per token; without clip 0.5 · (v − R)².

    It is the *prediction* that is clipped, around the prediction at rollout time, and the larger of both
    errors that counts: a value that has moved further than `clip` towards its target gets no more gradient.

    Args:
        values: [B, T], gets the gradient. old_values, returns: [B, T], constants. mask: [B, T] bool.
        clip: above 0, or None.

    Raises:
        ConfigError: `clip` is not positive, shapes differ, or the mask is not boolean.

    Source: Schulman et al. (arXiv 1707.06347); the clipping is of OpenAI's implementation ("ppo2").
    """
    check_same_shape("clipped_value_loss", mask, values=values, old_values=old_values, returns=returns)
    if clip is not None and not clip > 0:
        raise ConfigError(f"clipped_value_loss: clip is {clip}, must be above 0, or None for no clipping.")
    values = zero_outside(values, mask)
    old_values = zero_outside(old_values.detach(), mask)
    returns = zero_outside(returns.detach(), mask)
    error = (values - returns).square()
    if clip is None:
        return ValueLossTerms(0.5 * error, torch.zeros_like(mask))
    clipped_error = (values.clamp(old_values - clip, old_values + clip) - returns).square()
    return ValueLossTerms(0.5 * torch.maximum(error, clipped_error), clipped_error > error)


def explained_variance(returns: Tensor, values: Tensor, mask: Tensor) -> float | None:
    """1 − Var(returns − values) ÷ Var(returns) over sampled tokens: 1 perfect, 0 no better than a constant.

    Returns:
        None where it is undefined: fewer than two tokens, or returns that are all the same.

    Raises:
        ConfigError: shapes differ, or the mask is not boolean.
    """
    check_same_shape("explained_variance", mask, returns=returns, values=values)
    known_returns, known_values = returns[mask].double(), values[mask].double()
    if known_returns.numel() < 2:
        return None
    variance = float(known_returns.var())
    if variance <= 1e-12 * max(1.0, float(known_returns.mean()) ** 2):
        return None
    return 1.0 - float((known_returns - known_values).var()) / variance
