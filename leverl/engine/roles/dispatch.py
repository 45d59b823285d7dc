"""Marks on role methods that say how a call spreads over the workers of a role.

On the local runtime a method is simply called. A runtime with several workers reads the mark: `split` cuts
the batch over them and gathers the results, `broadcast` calls all with the same arguments, `rank_zero` asks
the first one only.
"""

from collections.abc import Callable
from typing import Literal, TypeVar

Spread = Literal["split", "broadcast", "rank_zero"]
_Method = TypeVar("_Method", bound=Callable[..., object])

_ATTRIBUTE = "__leverl_spread__"


def split(method: _Method) -> _Method:
    """Cut the batch over the workers, gather in order."""
    return _mark(method, "split")


def broadcast(method: _Method) -> _Method:
    """Call every worker with the same arguments."""
    return _mark(method, "broadcast")


def rank_zero(method: _Method) -> _Method:
    """Call the first worker only."""
    return _mark(method, "rank_zero")


def spread_of(method: Callable[..., object]) -> Spread:
    """The mark of a role method.

    Raises:
        AttributeError: the method has none.
    """
    spread: Spread = getattr(method, _ATTRIBUTE)
    return spread


def _mark(method: _Method, spread: Spread) -> _Method:
    setattr(method, _ATTRIBUTE, spread)
    return method
