"""Secrets never reach a page: values of secret environment variables and key formats are masked."""

import html
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from markupsafe import escape

from leverl.record.secrets import MASK, is_secret_setting, mask_key_formats, secret_values

_PLOTLY: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "/": "\\u002f"})


def redact(
    text: str, environment: Mapping[str, str] | None = None, written: Callable[[str], str] = str
) -> str:
    """`text` without secrets, whether plain, escaped for HTML or JSON, or as `written` writes them."""
    for value in secret_values(environment):
        for form in {*_forms(value), written(value)}:
            text = text.replace(form, MASK)
    return mask_key_formats(text)


def redact_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with the values of secret-sounding keys masked, at any depth."""
    return {
        key: redact_settings(value)
        if isinstance(value, Mapping)
        else MASK
        if is_secret_setting(str(key))
        else value
        for key, value in settings.items()
    }


def _forms(value: str) -> set[str]:
    """`value` in HTML, in JSON, and in the JSON of a chart, which escapes the HTML in it once more."""
    plain = {value, html.escape(value), str(escape(value))}
    quoted = {json.dumps(form)[1:-1] for form in plain}
    charts = {form.translate(_PLOTLY) for form in quoted}
    return plain | quoted | charts
