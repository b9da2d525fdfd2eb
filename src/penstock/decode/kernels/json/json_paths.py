"""Paths into a JSON document: a small part of JSONPath, with one value or none for each path.

A path is `$` and then steps: `.name`, `['any name']` or `["any name"]` (a backslash takes the next
character as it is), and `[0]` for an element. Wildcards, slices, filters
and negative indexes are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from penstock.decode.kernels.json.strict import shown_json
from penstock.decode.kernels.outcome import MisfitError
from penstock.errors import ConfigError

Steps = tuple[str | int, ...]
Members = Mapping[str, msgspec.Raw]
_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]'"$*@()?,:]+)|\[(?P<index>[0-9]{1,9})\]"""
    r"""|\['(?P<single>(?:[^'\\]|\\.)+)'\]|\["(?P<double>(?:[^"\\]|\\.)+)"\]"""
)
_ESCAPED = re.compile(r"\\(.)")
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


def parse_path(text: str) -> Steps:
    """Return the steps of a path, or raise `ConfigError`.

    >>> parse_path("$.a['b c'][0]")
    ('a', 'b c', 0)
    """
    steps: list[str | int] = []
    at = 1
    while text.startswith("$") and (match := _STEP.match(text, at)):
        steps.append(_step(match))
        at = match.end()
    if at < len(text) or not steps or isinstance(steps[0], int):
        raise ConfigError(
            f"{text!r} is not a path: write $ and the steps to one value, for example "
            "$.order.lines[0].price or $['a name']; wildcards, filters and slices are not supported"
        )
    return tuple(steps)


def _step(match: re.Match[str]) -> str | int:
    if match["index"] is not None:
        return int(match["index"])
    return match["name"] or _ESCAPED.sub(r"\1", match["single"] or match["double"])


def value_at(members: Members, steps: Steps) -> msgspec.Raw | None:
    """Return the JSON text at a path; None where a step has no value or goes through a null.

    >>> bytes(value_at({"a": msgspec.Raw(b'[{"b": 1.50}]')}, ("a", 0, "b")))
    b'1.50'
    """
    value = members.get(str(steps[0]))
    for place, step in enumerate(steps[1:], 1):
        if value is None or bytes(value) == b"null":
            return None
        value = _inner(value, step, steps[:place])
    return value


def _inner(value: msgspec.Raw, step: str | int, before: Sequence[str | int]) -> msgspec.Raw | None:
    opening = bytes(value)[:1]
    if isinstance(step, int) and opening == b"[":
        elements = _array(value)
        return elements[step] if step < len(elements) else None
    if isinstance(step, str) and opening == b"{":
        return _object(value).get(step)
    expected = "an array" if isinstance(step, int) else "an object"
    where = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in before)
    raise MisfitError(
        "WrongType", f"${where}: found {shown_json(bytes(value))}, expected {expected}"
    )
