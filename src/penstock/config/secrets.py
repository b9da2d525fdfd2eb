"""Keeps secrets out of everything that is shown: texts, mappings, log events, tracebacks.

It goes by the names of keys and the shapes of texts, so nobody has to register a secret first.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

MASK = "********"

_SECRET_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "jaas.config",
    "key.pem",
    "keystore.key",
    "authorization",
)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# `token` alone is also an ordinary word of parsers' messages: there it must be part of a name.
_NAME = (
    r"(?:password|passwd|passphrase|secret|key[._]pem|keystore[._]key|jaas[._]config|[._\-]token|"
    r"""\btoken(?=\\?["']?=))\\?["']?"""
)
_VALUE = "|".join(
    (
        r'"(?:\\.|[^"\\])*"',
        r"'(?:\\.|[^'\\])*'",
        r'\\"(?:\\\\(?:\\["\\]|.)|[^\\])*\\"',  # quoted inside a quoted text, as JAAS in JSON
        r"""\\?["'].*""",  # the end is cut off: hide the rest of the line
        r"\S+",
    )
)
_ASSIGNED = re.compile(rf"({_NAME}[ \t]*[=:][ \t]*)(?:{_VALUE})", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"""(authorization["']?\s*[=:]\s*["']?(?:(?:basic|bearer)\s+)?)[^\s"']+""", re.IGNORECASE
)
_USER_INFO = re.compile(r"(://[^\s:/@]*):[^\s/]+@")


def is_secret_key(name: str) -> bool:
    """Tell whether the value under this name must never be shown.

    >>> is_secret_key("sasl.password"), is_secret_key("PENSTOCK_KAFKA_SSL_KEY_PASSWORD")
    (True, True)
    >>> is_secret_key("sasl.username"), is_secret_key("sasl.oauthbearer.token.endpoint.url")
    (False, False)
    """
    return re.sub(r"[_\-]", ".", name.lower()).endswith(_SECRET_ENDINGS)


def mask(text: str) -> str:
    """Replace what looks like a secret in a free text.

    >>> mask("cannot use sasl.password=hunter2 here")
    'cannot use sasl.password=******** here'
    >>> mask("postgresql://app:hunter2@db/orders")
    'postgresql://app:********@db/orders'
    """
    text = _PEM.sub(MASK, text)
    text = _ASSIGNED.sub(lambda found: found[1] + MASK, text)
    text = _AUTHORIZATION.sub(lambda found: found[1] + MASK, text)
    return _USER_INFO.sub(lambda found: f"{found[1]}:{MASK}@", text)


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
    if isinstance(value, (list, tuple)):
        return [_masked(None, item) for item in value]
    return mask(value) if isinstance(value, str) else value


def mask_event(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Mask a structlog event: put it last but one, before the renderer."""
    return mask_mapping(event)


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
