"""What becomes of a request: one record, or one for each element or line of its body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from penstock.imports.http.json_text import Pointer, Scalar, checked, elements
from penstock.imports.http_listener.http_requests import Head, RequestError

if TYPE_CHECKING:
    from penstock.imports.http_listener.listener_import import HttpListenerImport

IDEMPOTENCY, ENCODING = "idempotency-key", "content-encoding"
# More than Kafka adds to a record in a batch of its own, without its headers.
_AROUND = 100


class NewRecord(NamedTuple):
    """A record that is not in its topic yet."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True)
class Delivery:
    """The records of a request, and the headers that each of them gets."""

    records: list[NewRecord]
    headers: list[tuple[str, bytes]]

    def require_sizes(self, largest: int) -> None:
        """Raise where one of several records is too large: Kafka would take those before it."""
        if len(self.records) < 2:
            return
        around = _AROUND + sum(len(name) + len(value) + 10 for name, value in self.headers)
        for number, record in enumerate(self.records, 1):
            size = around + len(record.key or b"") + len(record.value)
            if size > largest:
                raise RequestError(
                    413,
                    f"record {number} of the body has {size} bytes with what Kafka adds, and at most "
                    f"{largest} are allowed; nothing of the request was written",
                    ends=False,
                )


def delivery_of(options: HttpListenerImport, head: Head, name: str, body: bytes) -> Delivery:
    """Return what a request delivers; raise what is wrong with it."""
    _require_plain(options, head)
    try:
        values = _values(options.format, body)
        records = [NewRecord(_key(options, head, name, value), value) for value in values]
    except ValueError as error:
        raise RequestError(400, f"the body cannot be used: {error}", ends=False) from None
    wanted = dict.fromkeys([*(each.lower() for each in options.headers), IDEMPOTENCY])
    found = [(each, value) for each in wanted for value in head.headers.get(each, [])]
    return Delivery(records, found)


def _require_plain(options: HttpListenerImport, head: Head) -> None:
    """Refuse a compressed body, unless a header of the records says so."""
    encoding = (head.one(ENCODING) or b"identity").lower()
    is_noted = ENCODING in (name.lower() for name in options.headers)
    if encoding != b"identity" and not (options.format == "bytes" and is_noted):
        raise RequestError(
            415,
            f"the body is compressed ({encoding.decode('latin-1')!r}): send it as it is; with the format "
            "'bytes' and 'Content-Encoding' among 'headers' the listener would store it compressed",
            ends=False,
            headers=("Accept-Encoding: identity",),
        )


def _values(format: str, body: bytes) -> list[bytes]:
    if format == "bytes":
        return [body]
    if format in ("lines", "json_lines"):
        lines = [line.removesuffix(b"\r") for line in body.split(b"\n")]
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
    if scalar is None and text[:1] == b'"' and text != b'""':
        raise ValueError(f"the key at {key.pointer} is not a text that has bytes (UTF-8)")
    return scalar.text.encode() if scalar else text.removeprefix(b'""')
