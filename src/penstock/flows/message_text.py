"""A message as JSON, from which it comes back with the types of its values.

What JSON does not have is an object with one member: `$bytes` (text), `$base64`, `$time`. A payload that
is the value of the record is left out: a dead letter has it already.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from penstock.flows.expressions.value_text import time_text
from penstock.flows.message import Message

_TAGS = ("$bytes", "$base64", "$time", "$object")


def text_of_message(message: Message, own: Any) -> str:
    """Return a message as JSON; `own` is the value of the record.

    >>> text_of_message(Message(b"a", {"n": b"b"}), None)
    '{"attribute": {"n": {"$bytes": "b"}}, "payload": {"$bytes": "a"}}'
    """
    parts = {name: value for name, value in message.shown().items() if value not in ({}, None)}
    if type(own) is type(message.payload) and own == message.payload:
        parts.pop("payload", None)
    else:
        parts["payload"] = message.payload
    return json.dumps({name: _plain(value) for name, value in sorted(parts.items())})


def message_of_text(text: bytes | str, own: Any) -> Message:
    """Return the message of a text; ValueError where it is none.

    >>> message_of_text('{"payload": {"$bytes": "a"}}', None).payload
    b'a'
    """
    parts = _value(json.loads(text))
    names = ("attribute", "variable", "error")
    if not isinstance(parts, dict) or not all(isinstance(parts.get(x, {}), dict) for x in names):
        raise ValueError("it is not a message")
    attribute, variable, error = (parts.get(name, {}) for name in names)
    return Message(parts.get("payload", own), attribute, variable, error or None)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        made = {str(key): _plain(each) for key, each in value.items()}
        return {"$object": made} if len(made) == 1 and next(iter(made)) in _TAGS else made
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        try:
            return {"$bytes": value.decode()}
        except UnicodeDecodeError:
            return {"$base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {"$time": time_text(value)}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _value(given: Any) -> Any:
    if isinstance(given, list):
        return [_value(each) for each in given]
    if not isinstance(given, dict):
        return given
    if len(given) == 1 and (tag := next(iter(given))) in _TAGS:
        return _tagged(tag, given[tag])
    return {name: _value(each) for name, each in given.items()}


def _tagged(tag: str, inner: Any) -> Any:
    if tag == "$object" and isinstance(inner, dict):
        return {name: _value(each) for name, each in inner.items()}
    if not isinstance(inner, str):
        raise ValueError(f"{tag} has no text")
    if tag == "$bytes":
        return inner.encode()
    if tag == "$base64":
        return base64.b64decode(inner, validate=True)
    return datetime.fromisoformat(inner.replace("Z", "+00:00"))
