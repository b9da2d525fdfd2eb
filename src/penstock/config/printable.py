"""Escaping of control characters in untrusted text, before it reaches a terminal or a log.

The text of a record could otherwise write lines of its own into a log, recolour or rewrite a terminal, or
change what its user types next.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

# C0 with DEL, C1, line and paragraph separators, what changes the direction of writing, lone surrogates.
_CONTROLS = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TABLE = {code: _SHORT.get(chr(code)) or f"\\u{code:04x}" for code in _CONTROLS}
_OF_LINES = {code: text for code, text in _TABLE.items() if chr(code) not in "\n\t"}
_OF_JSON = {code: text for code, text in _TABLE.items() if code >= 0x7F}


def printable(text: str) -> str:
    r"""Return the text in one line, with every control character written out.

    >>> print(printable("a\x1b[31mb\nc"))
    a\u001b[31mb\nc
    """
    return text.translate(_TABLE)


def printable_lines(text: str) -> str:
    r"""Return a text of several lines with every other control character written out.

    >>> print(printable_lines("a\x1b[31m\nb"))
    a\u001b[31m
    b
    """
    return text.translate(_OF_LINES)


def printable_json(document: bytes) -> bytes:
    """Return a JSON document with the control characters escaped that JSON allows as they are."""
    return document.decode("utf-8", "surrogatepass").translate(_OF_JSON).encode()


def printable_event(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Escape a structlog event: put it last but one, before the renderer.

    The lines of a traceback stay apart, indented, so that none of them looks like an event.
    """
    return {printable(str(name)): _escaped(name, value) for name, value in event.items()}


def _escaped(name: Any, value: Any) -> Any:
    if isinstance(value, str):
        lines = name in ("exception", "stack")
        return printable_lines(value).replace("\n", "\n    ") if lines else printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): _escaped(None, item) for key, item in value.items()}
    return [_escaped(None, item) for item in value] if isinstance(value, list) else value
