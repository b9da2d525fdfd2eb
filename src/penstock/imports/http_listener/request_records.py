"""What becomes of a request: one record, or one for each element or line of its body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from penstock.imports.http.json_text import Pointer, Scalar, checked, elements
from penstock.imports.http_listener.http_requests import Head, RequestError

if TYPE_CHECKING:
    from penstock.imports.http_listener.listener_import import HttpListenerImport

IDEMPOTENCY = "idempotency-key"


class NewRecord(NamedTuple):
    """A record that is not in its topic yet."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True)
class Delivery:
    """The records of a request, and the headers that each of them gets."""

    records: list[NewRecord]
    headers: list[tuple[str, bytes]]


def delivery_of(options: HttpListenerImport, head: Head, name: str, body: bytes) -> Delivery:
    """Return what a request delivers; raise what is wrong with it."""
    try:
        values = _values(options.format, body)
        records = [NewRecord(_key(options, head, name, value), value) for value in values]
    except ValueError as error:
        raise RequestError(400, f"the body cannot be used: {error}", ends=False) from None
    wanted = dict.fromkeys([*(each.lower() for each in options.headers), IDEMPOTENCY])
    found = [(each, value) for each in wanted for value in head.headers.get(each, [])]
    return Delivery(records, found)


def _values(format: str, body: bytes) -> list[bytes]:
    if format == "bytes":
        return [body]
    if format in ("lines", "json_lines"):
        lines = [line.rstrip(b"\r") for line in body.split(b"\n")]
        lines = lines[:-1] if lines and not lines[-1] else lines
        if format == "lines":
            return lines
        return [_json(line, f"line {n}: ") for n, line in enumerate(lines, 1) if line.strip()]
    document = _json(body)
    if format == "json":
        return [document]
    if not document.startswith(b"["):
        raise ValueError("it is not a JSON array")
    return elements(document)


def _json(text: bytes, where: str = "") -> bytes:
    try:
        return checked(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}not JSON: {error}") from None


def _key(options: HttpListenerImport, head: Head, name: str, value: bytes) -> bytes | None:
    key = options.key
    if key is None:
        return None
    if key.path:
        return name.encode()
    if key.header:
        found = head.one(key.header)
        if found is None:
            raise ValueError(f"the header {key.header} is missing, which is the record's key")
        return found
    text = Pointer.read(key.pointer or "").find(value)
    if text is None or text == b"null":
        raise ValueError(f"there is no key at {key.pointer}")
    scalar = Scalar.read(text)
    return scalar.text.encode() if scalar else text.removeprefix(b'""')
