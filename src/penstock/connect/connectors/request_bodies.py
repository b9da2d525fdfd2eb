"""Bodies of requests with several records, and the statuses after which one is sent again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_LINES = ("\n", "\\n", "")
_RANGE = re.compile(r"([1-5]\d\d)(-([1-5]\d\d)?)?")


def batch_options(size: int, prefix: str, suffix: str) -> dict[str, Any]:
    """Return the options of the sink `http` for its bodies.

    >>> batch_options(10, "[", "]"), batch_options(1, "", "")
    ({'batch': 10, 'batch_format': 'array'}, {})
    """
    if size == 1:
        return {}
    is_array = (prefix, suffix) == ("[", "]")
    return {"batch": size, "batch_format": "array" if is_array else "lines"}


def body_obstacle(size: int, prefix: str, suffix: str, separator: str) -> str | None:
    """Return why records cannot be joined like that; None where they can.

    >>> body_obstacle(10, "", "", "\\n"), body_obstacle(1, "", "", ",")
    (None, None)
    """
    joined = (prefix.strip(), suffix.strip())
    if size == 1:
        return "a request of one record is not an array" if joined != ("", "") else None
    if joined == ("[", "]") and separator.strip() == ",":
        return None
    if joined == ("", "") and separator in _LINES:
        return None
    return (
        "the records of a request are a JSON array (prefix [, suffix ], separator a comma) or lines "
        "(no prefix and suffix, separator \\n)"
    )


def statuses(given: Iterable[str]) -> list[int | str]:
    """Return statuses of a list with ranges; raise ValueError for something else.

    >>> statuses(["429", "500-", "401-403"])
    [429, '5xx', 401, 402, 403]
    """
    found: list[int | str] = []
    for part in given:
        match = _RANGE.fullmatch(part.replace(" ", ""))
        if match is None:
            raise ValueError(f"{part!r} is not a status, as 429, or a range, as 500-599 or 500-")
        first = int(match[1])
        last = int(match[3]) if match[3] else 599 if match[2] else first
        found += _in_range(first, last)
    return found


def _in_range(first: int, last: int) -> list[int | str]:
    found: list[int | str] = []
    while first <= last:
        if first % 100 == 0 and last >= first + 99:
            found.append(f"{first // 100}xx")
            first += 100
        else:
            found.append(first)
            first += 1
    return found


def braces(text: str) -> str:
    """Return a text of the sink `http` in which braces are braces.

    >>> braces("a{b}")
    'a{{b}}'
    """
    return text.replace("{", "{{").replace("}", "}}")
