"""All levers, and finding one by whatever the user calls it: short name, alias or path.

A lever's `verl` lists every key that has to be written together; its `trl` the names in TRL's configurations,
GRPOConfig's first. What a key counts can differ there: the advice says so, the backends convert.
"""

from typing import Final

from leverl.errors import ConfigError
from leverl.plugins import nearest
from leverl.vocabulary.lever import Lever
from leverl.vocabulary.levers import algorithm, data, model, optimization, rollout, run

LEVERS: Final[tuple[Lever, ...]] = (
    *model.LEVERS,
    *data.LEVERS,
    *rollout.LEVERS,
    *algorithm.LEVERS,
    *optimization.LEVERS,
    *run.LEVERS,
)

_ANSWERS: Final = {
    "save_path": "A run's folder is chosen with --name and --out.",
    "rollout_batch_size": "Write rollout_micro_batch_size (responses per call of the sampler) or batch_size "
    "(responses per iteration); elsewhere this name counts prompts.",
}
"""Words of the articles that are no setting here."""

_BY_PATH: Final = {lever.path: lever for lever in LEVERS}
_BY_WORD: Final = _BY_PATH | {word: lever for lever in LEVERS for word in (lever.name, *lever.aliases)}


def is_lever(word: str) -> bool:
    """Whether `word` is a short name, an alias or a path."""
    return word in _BY_WORD


def by_name(word: str) -> Lever:
    """The lever called `word`.

    Raises:
        ConfigError: no such lever; names the nearest, the candidates of a word that could mean several, or
            the lever that another framework's key corresponds to.
    """
    if word not in _BY_WORD:
        raise ConfigError(f"unknown setting '{word}'.{_hint(word) or ' `leverl levers` lists all.'}")
    return _BY_WORD[word]


def by_path(path: str) -> Lever:
    """The lever at `path` of the configuration.

    Raises:
        ConfigError: no such path; names the nearest.
    """
    if path not in _BY_PATH:
        raise ConfigError(f"unknown path '{path}'.{nearest(path, _BY_PATH)}")
    return _BY_PATH[path]


def _hint(word: str) -> str:
    if word in _ANSWERS:
        return f" {_ANSWERS[word]}"
    homonyms = [lever.name for lever in LEVERS if lever.path.rsplit(".", 1)[-1] == word]
    if homonyms:
        return f" Write {' or '.join(homonyms)}."
    translated = [lever.name for lever in LEVERS if word in _foreign_words(lever)]
    if translated:
        names = " or ".join(translated)
        return f" Here it is {names}; what its values mean can differ, see `leverl levers {translated[0]}`."
    first = _BY_PATH if "." in word else [lever.name for lever in LEVERS]  # canonical before aliases
    return nearest(word, first) or nearest(word, _BY_WORD)


def _foreign_words(lever: Lever) -> set[str]:
    """What verl and TRL call it: full keys and their last parts."""
    return {*lever.verl, *lever.trl, *(key.rsplit(".", 1)[-1] for key in lever.verl)}
