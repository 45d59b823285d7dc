"""All metrics, and finding one by whatever it is called: verl's name (also ours), the articles', or TRL's."""

from dataclasses import replace
from typing import Final

from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.vocabulary.metric import Direction, Metric
from leverl.vocabulary.metric_groups import rollout, run, update

__all__ = ["METRICS", "Direction", "Metric", "is_metric", "metric"]

METRICS: Final[tuple[Metric, ...]] = (*rollout.METRICS, *update.METRICS, *run.METRICS)

_BY_WORD: Final = {word: entry for entry in METRICS for word in (entry.name, *entry.aliases)}
_FAMILIES: Final = {word.removesuffix("*"): entry for word, entry in _BY_WORD.items() if word.endswith("*")}


def is_metric(name: str) -> bool:
    """Whether `name` is known: a name, an alias or a member of a family."""
    return _find(name) is not None


def metric(name_or_alias: str) -> Metric:
    """The metric called `name_or_alias`; a member of a family keeps the name it was asked by.

    Raises:
        ConfigError: no such metric; names the nearest.
    """
    found = _find(name_or_alias)
    if found is None:
        raise ConfigError(f"unknown metric '{name_or_alias}'.{nearest(name_or_alias, _BY_WORD)}")
    return found


def _find(word: str) -> Metric | None:
    if word in _BY_WORD:
        return _BY_WORD[word]
    for prefix, family in _FAMILIES.items():
        if word.startswith(prefix) and word != prefix:
            return replace(family, name=word, aliases=())
    return None
