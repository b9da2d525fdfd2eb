"""A request as a record of `<flow>.in`: the body is the value, everything else is one header.

The steps see it as attributes. Credentials stay out: what is in a topic is read by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson

from penstock.flows.expressions import ExpressionError
from penstock.flows.expressions.value_text import from_json
from penstock.imports.http_listener.http_requests import Head, RequestError

HEADER = "penstock.request"
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie"})
_FORM = b"application/x-www-form-urlencoded"
_MOST_FIELDS = 1000


@dataclass(frozen=True)
class Request:
    """A request that was checked: the value of its record, and the attributes of its message."""

    value: bytes
    attributes: dict[str, Any]

    @property
    def id(self) -> str:
        """Return its id."""
        return str(self.attributes["id"])

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers of its record."""
        return [(HEADER, orjson.dumps(self.attributes))]


def received(format: str, head: Head, body: bytes, id: str) -> Request:
    """Return a request; raise what is wrong with its body or its address."""
    try:
        if format == "form":
            _require_form(head)
        value = value_of(format, body)
        path, _, query = head.target.partition("?")
        fields = _fields(query, "the query")
    except ValueError as error:
        raise RequestError(400, str(error), ends=False) from None
    return Request(
        value,
        {
            "id": id,
            "method": head.method,
            "path": path,
            "query": fields,
            "headers": _headers(head),
        },
    )


def attributes_of(headers: Iterable[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return the attributes of a record's message; none where another program wrote the record."""
    written = next((each["value"] for each in headers or () if each["key"] == HEADER), None)
    try:
        found = orjson.loads(written or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def value_of(format: str, body: bytes) -> bytes:
    """Return the value of the record: a form as a JSON object, other bodies as they are.

    >>> value_of("form", b"a=1&b=x+y&b=z"), value_of("json", b"[1]")
    (b'{"a":"1","b":["x y","z"]}', b'[1]')
    """
    if format == "form":
        try:
            return orjson.dumps(_fields(body.decode("ascii"), "the form"))
        except UnicodeDecodeError:
            raise ValueError("the form has bytes that are not percent-encoded") from None
    if format == "json":
        try:
            from_json(body, "the body")
        except ExpressionError as error:
            raise ValueError(str(error)) from None
    return body


def _fields(text: str, what: str) -> dict[str, Any]:
    """Return fields by their names; one that is given more than once has a list."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, True, errors="strict", max_num_fields=_MOST_FIELDS)
    except UnicodeDecodeError:
        raise ValueError(f"{what} is not UTF-8") from None
    except ValueError:
        raise ValueError(f"{what} has more than {_MOST_FIELDS} fields") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _headers(head: Head) -> dict[str, str]:
    return {
        name: b", ".join(values).decode("latin-1")
        for name, values in head.headers.items()
        if name not in _CREDENTIALS
    }


def _require_form(head: Head) -> None:
    given = head.one("Content-Type")
    if given is not None and given.partition(b";")[0].strip().lower() != _FORM:
        raise RequestError(415, f"send a form as {_FORM.decode()}", ends=False)
