"""What must not leave the house: values of secret settings and environment variables, and key formats."""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

MASK: Final = "•••"
_SECRET_NAME: Final = re.compile(
    r"(^|_|\b)(api_?key|access_?key|secret|password|passwd|credentials?|private_key|auth_token|access_token|hf_token|"
    r"bearer)(_|\b|$)|_TOKEN$|_KEY$|_PAT$",
    re.IGNORECASE,
)
_KEY_FORMATS: Final = re.compile(
    r"\b(hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,})\b"
)
_SHORTEST: Final = 8  # shorter values are words, and masking them would garble the text


def secret_values(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Values of environment variables whose names say that they are secret, longest first."""
    found = {
        value
        for name, value in (os.environ if environment is None else environment).items()
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name) and name != "LEVERL_RUN_TOKEN"
    }
    return tuple(sorted(found, key=len, reverse=True))


def is_secret_setting(key: str) -> bool:
    """Whether a setting's name says that its value is secret; `prompt_key` is a column's name, not a key."""
    return _SECRET_NAME.search(key.lower()) is not None and not key.endswith("prompt_key")


def mask_key_formats(text: str) -> str:
    """`text` with everything masked that looks like an access key of a well-known service."""
    return _KEY_FORMATS.sub(MASK, text)


def mask_text(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` without secret values of the environment and without access keys."""
    for value in secret_values(environment):
        text = text.replace(value, MASK)
    return mask_key_formats(text)


def mask_settings(
    settings: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """`settings` with secret values masked, by the setting's name and by what it holds, at any depth."""
    return {
        key: MASK if is_secret_setting(str(key)) else _masked(value, environment)
        for key, value in settings.items()
    }


def _masked(value: Any, environment: Mapping[str, str] | None) -> Any:
    if isinstance(value, Mapping):
        return mask_settings(value, environment)
    if isinstance(value, list | tuple):
        return [_masked(item, environment) for item in value]
    return mask_text(value, environment) if isinstance(value, str) else value
