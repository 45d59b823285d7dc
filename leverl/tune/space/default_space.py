"""Where a study searches when it does not say: `space: default`, or `lever: default` for one lever.

A lever's default range is the one in its description, if the base's value lies in it. Otherwise:

- on a log scale, the base ÷ 10 to the base × 10 (or as far as the lever may go). What is right there depends on
  the model: learning rates of the embedded policy are 1000 times those of pretrained models. The same holds for a
  base within a factor 2 of an end;
- on other scales, the range is widened to the base's value;
- a size that is no power of two is halved and doubled twice instead.

So the base is a point of the space, as far as its value has a place on the scale.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from leverl.backends.protocol import Resolved
from leverl.config import combinations, tree
from leverl.config.schema import Config
from leverl.errors import ConfigError
from leverl.tune.model import Params
from leverl.tune.space.axis import Axis
from leverl.tune.space.axis_words import is_accepted
from leverl.vocabulary import catalog
from leverl.vocabulary.lever import Lever, SearchRange

DEFAULT: Final = "default"

_LEVERS: Final = (
    "actor_learning_rate",
    "critic_learning_rate",
    "kl_coef",
    "clip_range",
    "ppo_epochs",
    "gae_lambda",
    "group_size",
)
"""The article's key levers and their closest relatives. batch_size, the fourth of the article's, is left to the
study: what fits depends on memory, and mini_batch_size has to fit it."""

_AROUND: Final = (10, 5, 2, 1)
"""How far a log range reaches to both sides of the base; the first that the lever accepts."""

_MARGIN: Final = 2
_PROBES: Final = 64


def default_levers(base: Config) -> tuple[dict[str, Any], dict[str, str]]:
    """What `space: default` stands for: lever → range, and lever → why it is left out.

    Levers without effect are still among them, see `without_effect`.
    """
    words = {name: default_range(name, tree.get(base, catalog.by_name(name).path)) for name in _LEVERS}
    if base.algorithm.name in combinations.GROUP_ESTIMATORS:
        return words, {}
    del words["group_size"]
    return words, {"group_size": f"{base.algorithm.name} does not compare the responses of a prompt"}


def default_range(word: str, base: Any) -> Any:
    """What `word: default` stands for over a base with the value `base`, in the words of a study.

    Raises:
        ConfigError: the lever has no range of its own.
    """
    lever = catalog.by_name(word)
    search = lever.search
    if search is None:
        raise ConfigError(
            f"space: {word} = {DEFAULT}: {lever.name} has no range of its own. Write {{min: …, max: …}} or a list."
        )
    if search.scale == "categorical":
        return [*search.values, *([base] if base is not None and base not in search.values else [])]
    words = _as_described(search)
    if not isinstance(base, int | float) or isinstance(base, bool) or base == search.other:
        return words
    if search.scale == "log":
        return words if _well_inside(search, base) else words | _around(lever, base)
    if search.scale == "pow2" and isinstance(base, int) and base & (base - 1):
        return [*(base // part for part in (4, 2) if base % part == 0), base, base * 2, base * 4]
    if search.scale == "logit" and not 0 < base < 1:
        return words
    return words | {"min": min(words["min"], base), "max": max(words["max"], base)}


def without_effect(
    axes: Sequence[Axis], base: Config, resolve: Callable[[Params], Resolved]
) -> dict[str, str]:
    """Levers that do nothing anywhere in the space → why; those that do something in a part of it are not among them.

    Whether a lever acts depends on switches and sizes, never on where in a range of floats another one stands,
    so that a few dozen draws over the space find every case.
    """
    live: set[str] = set()
    admitted = False
    draws = random.Random(0)
    for _ in range(_PROBES):
        try:
            found = resolve({axis.name: axis.at(draws.random()) for axis in axes}).params
        except ConfigError:
            continue
        admitted = True
        live |= set(found)
        if len(live) == len(axes):
            return {}
    if not admitted:  # the sampler will say why
        return {}
    return {axis.name: _reason(base, axis) for axis in axes if axis.name not in live}


def _reason(base: Config, axis: Axis) -> str:
    return combinations.inert(base, axis.path) or "it has no effect on this base"


def _as_described(search: SearchRange) -> dict[str, Any]:
    words: dict[str, Any] = {"min": search.low, "max": search.high}
    if search.scale not in ("linear", "int"):
        words[search.scale] = True
    return words if search.other is None else words | {"or": search.other}


def _well_inside(search: SearchRange, base: float) -> bool:
    low, high = search.low or 0.0, search.high or 0.0
    return base <= 0 or low * _MARGIN <= base <= high / _MARGIN


def _around(lever: Lever, base: float) -> dict[str, float]:
    def reach(sign: int) -> float:
        ends = (float(f"{base * factor**sign:.6g}") for factor in _AROUND)
        return next((end for end in ends if is_accepted(lever.path, end)), base)

    return {"min": reach(-1), "max": reach(1)}
