"""Sizes as people write them: `128MB`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def as_bytes(given: Any) -> int:
    """Read a size: a number of bytes, or a number with KB, MB or GB, of which each is 1024 of the last.

    >>> as_bytes("128MB"), as_bytes("1.5 kb"), as_bytes(4096)
    (134217728, 1536, 4096)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)I?B?", str(given).strip().upper())
    if not match or isinstance(given, bool):
        raise ValueError(f"given {given!r}; a size is a number with KB, MB or GB")
    return int(float(match[1]) * _UNITS[match[2]])


Size = Annotated[
    int,
    BeforeValidator(as_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
]
