"""Masking of secrets in all output: texts, mappings, log events, tracebacks.

It works by the names of keys and by patterns, so that no secret has to be registered first. The
secrets of connections and definitions are known as well, and masked wherever they appear.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from datetime import date, datetime
from numbers import Number
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from penstock.config.secret_names import is_secret_key
from penstock.config.secret_texts import MASK, without_secrets

__all__ = [
    "MASK",
    "MaskingFilter",
    "is_secret_key",
    "mask",
    "mask_event",
    "mask_mapping",
    "remember_secret",
]

# A shorter or plainer one would hide ordinary words of messages.
_SHORTEST_KNOWN = 8
_MOST_KNOWN = 1000
# Objects that logging renders itself, afterwards.
_OF_LOGGING = ("exc_info", "stack_info", "_record")
_known: dict[str, None] = {}


def remember_secret(value: Any) -> None:
    """Mask this value from now on wherever it appears, unless it could be an ordinary word.

    >>> remember_secret("correct-horse-1")
    >>> mask("Invalid value correct-horse-1 for configuration x")
    'Invalid value ******** for configuration x'
    """
    text = str(value)
    if len(text) < _SHORTEST_KNOWN or text.isalpha():
        return
    for form in (text, quote(text, safe="")):
        _known.pop(form, None)
        _known[form] = None
    while len(_known) > _MOST_KNOWN:
        _known.pop(next(iter(_known)), None)


def mask(text: str) -> str:
    """Replace what is known to be a secret, or looks like one, in a free text.

    It takes time in proportion to the text's length, whatever is in it.

    >>> mask("cannot use sasl.password=hunter2 here")
    'cannot use sasl.password=******** here'
    >>> mask("postgresql://app:hunter2@db/orders?sslpassword=x&connect_timeout=5")
    'postgresql://app:********@db/orders?sslpassword=********&connect_timeout=5'
    """
    text = without_secrets(text)
    # The longest first: one that contains another would keep its end.
    for secret in sorted((each for each in tuple(_known) if each in text), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def mask_mapping(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a mapping, nested ones included, with every secret replaced.

    >>> mask_mapping({"sasl.username": "app", "sasl.password": "hunter2"})
    {'sasl.username': 'app', 'sasl.password': '********'}
    """
    return {name: _masked(name, value) for name, value in mapping.items()}


def _masked(name: Any, value: Any) -> Any:
    if isinstance(name, str) and is_secret_key(name) and value is not None:
        return MASK
    if isinstance(value, Mapping):
        return mask_mapping(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_masked(None, item) for item in value]
    if value is None or isinstance(value, (Number, datetime, date)):
        return value
    return mask(str(value) if isinstance(value, (str, PurePath)) else repr(value))


def mask_event(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Mask a structlog event: put it last but one, before the renderer."""
    kept = {name: event[name] for name in _OF_LOGGING if name in event}
    return {**mask_mapping({n: v for n, v in event.items() if n not in kept}), **kept}


class MaskingFilter(logging.Filter):
    """Masks every record of the standard logging, its traceback included.

    >>> record = logging.makeLogRecord({"msg": "password=%s", "args": ("hunter2",)})
    >>> MaskingFilter().filter(record), record.getMessage()
    (True, 'password=********')
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; no record is dropped."""
        record.msg, record.args = mask(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = mask(record.exc_text)
        if record.stack_info:
            record.stack_info = mask(record.stack_info)
        return True
