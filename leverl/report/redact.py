"""Secrets never reach a page: values of secret environment variables and key formats are masked."""

import html
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from markupsafe import escape

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
_PLOTLY: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "/": "\\u002f"})
_SHORTEST: Final = 8  # shorter values are words, and masking them would garble the page


def redact(
    text: str, environment: Mapping[str, str] | None = None, written: Callable[[str], str] = str
) -> str:
    """`text` without secrets, whether plain, escaped for HTML or JSON, or as `written` writes them."""
    for value in sorted(_secrets(os.environ if environment is None else environment), key=len, reverse=True):
        for form in {*_forms(value), written(value)}:
            text = text.replace(form, MASK)
    return _KEY_FORMATS.sub(MASK, text)


def redact_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with the values of secret-sounding keys masked, at any depth."""
    return {
        key: redact_settings(value)
        if isinstance(value, Mapping)
        else MASK
        if _is_secret_setting(str(key))
        else value
        for key, value in settings.items()
    }


def _secrets(environment: Mapping[str, str]) -> set[str]:
    return {
        value
        for name, value in environment.items()
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name) and name != "LEVERL_RUN_TOKEN"
    }


def _forms(value: str) -> set[str]:
    """`value` in HTML, in JSON, and in the JSON of a chart, which escapes the HTML in it once more."""
    plain = {value, html.escape(value), str(escape(value))}
    quoted = {json.dumps(form)[1:-1] for form in plain}
    charts = {form.translate(_PLOTLY) for form in quoted}
    return plain | quoted | charts


def _is_secret_setting(key: str) -> bool:
    """Whether a setting's name says that its value is secret; `prompt_key` is a column's name, not a key."""
    found = _SECRET_NAME.search(key.lower())
    return found is not None and not key.endswith("prompt_key")
