"""Parameters of other people's studies and sweeps as levers."""

from leverl.config.arithmetic import SIZES
from leverl.errors import ConfigError
from leverl.vocabulary import catalog
from leverl.vocabulary.lever import Lever


def lever_called(word: str) -> Lever:
    """The lever that a parameter is: by name, alias or path, or by its key in verl or TRL.

    Raises:
        ConfigError: none; several; or a size, for those are counted differently elsewhere.
    """
    word = word.removeprefix("+")
    if catalog.is_lever(word):
        return catalog.by_name(word)
    candidates = [lever for lever in catalog.LEVERS if word in (*lever.verl, *lever.trl)] or [
        lever for lever in catalog.LEVERS if word in {key.rsplit(".", 1)[-1] for key in lever.verl}
    ]
    if not candidates:
        catalog.by_name(word)  # says what is near
    if len(candidates) > 1:
        names = " or ".join(lever.name for lever in candidates)
        raise ConfigError(f"could be {names}: rename it.")
    lever = candidates[0]
    if lever.path in SIZES:
        raise ConfigError(
            f"counts prompts or devices where it comes from, and {lever.name} counts responses: convert its values "
            f"and call it {lever.name}."
        )
    return lever
