"""Reads the body of a request: JSON, with numbers as they were written."""

from __future__ import annotations

import json
from typing import Any

from penstock.server.connect.connect_errors import ConnectError


class Real(float):
    """A number that is not whole; its text is the one in the request.

    >>> str(Real("1.50"))
    '1.50'
    """

    def __new__(cls, text: str) -> Real:
        """Keep the text."""
        made = super().__new__(cls, text)
        made._text = text
        return made

    _text: str

    def __str__(self) -> str:
        return self._text


def parse_body(text: bytes) -> Any:
    """Return the body; raise 400 where it is not JSON.

    >>> parse_body(b'{"tasks.max": 2}')
    {'tasks.max': 2}
    """
    try:
        shown = text.decode()
        found = json.loads(shown, parse_float=Real, parse_constant=_refuse)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair
    except (ValueError, RecursionError):
        raise ConnectError(400, "the body is not JSON in UTF-8") from None
    return found


def _refuse(constant: str) -> None:
    raise ValueError(constant)
