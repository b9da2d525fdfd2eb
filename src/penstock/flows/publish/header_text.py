"""Headers as a JSON text with `${...}` in it: a value stays a value, and never becomes other headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from penstock.flows.expressions import ExpressionError, Template
from penstock.flows.expressions.value_text import bytes_of, from_json, json_of, kind_of, text_of
from penstock.flows.message import Message

Pairs = list[tuple[str, bytes]]


def header_pairs(text: str) -> Pairs:
    """Return the headers of a JSON object.

    >>> header_pairs('{"a": "x", "b": 1}')
    [('a', b'x'), ('b', b'1')]
    """
    given = from_json(text, "the text of the headers")
    if not isinstance(given, dict):
        raise ExpressionError(f"headers are a JSON object of texts, given {kind_of(given)}")
    return [(_utf8(name), bytes_of(value) or b"") for name, value in given.items()]


def check_header_text(given: Template) -> None:
    """Raise where a text is not a JSON object, whatever the values in it are."""
    parts = given.parts()
    if not _is_one_place(parts):
        header_pairs(_filled(parts, lambda _evaluate: "x"))


def header_maker(given: Template) -> Callable[[Message], Pairs]:
    """Return what makes the headers of a message.

    >>> make = header_maker(Template('{"name": "${payload.name}", "n": ${payload.n}}'))
    >>> make(Message({"name": 'x", "admin": "true', "n": 1}))
    [('name', b'x", "admin": "true'), ('n', b'1')]
    """
    parts = given.parts()
    if _is_one_place(parts):
        text = given.evaluator()
        return lambda message: header_pairs(str(text(message)))

    def make(message: Message) -> Pairs:
        try:
            return header_pairs(_filled(parts, lambda evaluate: evaluate(message)))
        except ExpressionError as error:
            raise ExpressionError(f"{given.given:.80}: {error}") from None

    return make


def _is_one_place(parts: list[Any]) -> bool:
    """Return whether a text is one expression: its value is all of the headers."""
    return len(parts) == 1 and not isinstance(parts[0], str)


def _filled(parts: list[Any], value_of: Callable[[Any], Any]) -> str:
    """Return the JSON text, with each value written as the place where it is needs it."""
    made: list[str] = []
    in_text = False
    for part in parts:
        if isinstance(part, str):
            in_text = _ends_in_text(part, in_text)
            made.append(part)
        else:
            value = value_of(part)
            made.append(json.dumps(text_of(value))[1:-1] if in_text else _as_json(value))
    return "".join(made)


def _ends_in_text(part: str, in_text: bool) -> bool:
    """Return whether a text of JSON is open after a part."""
    is_escaped = False
    for character in part:
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = in_text
        elif character == '"':
            in_text = not in_text
    return in_text


def _as_json(value: Any) -> str:
    """Return a value as one value of JSON; a text that is JSON, as of `to_json`, stays what it is."""
    text = text_of(value)
    if isinstance(value, str | bytes):
        try:
            from_json(text)
        except ExpressionError:
            return json.dumps(text)
        return text
    return json_of(value)


def _utf8(text: str) -> str:
    bytes_of(text)
    return text
