"""Rows as requests: addresses, headers and bodies; what cannot be sent safely is refused here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa

from penstock.sinks.messages import Refusal

IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(frozen=True)
class RequestForm:
    """What requests have in common."""

    # The address, where it is the same for all rows.
    url: str | None
    # Headers that are the same for all rows, and the columns of those that are not.
    headers: tuple[tuple[str, str], ...]
    header_columns: tuple[tuple[str, str], ...]
    batch: int
    # How several rows are one body: `array` or `lines`; None for one row in each request.
    joined: str | None
    has_body: bool
    # Whether values are those of a column, which may not be JSON.
    checks_values: bool
    idempotency_key: bool


class RequestRows:
    """The rows of one Arrow batch that can be sent; `refused` are the others."""

    def __init__(self, form: RequestForm, rows: pa.RecordBatch, ids: pa.Array | None) -> None:
        self._form = form
        self._count = rows.num_rows
        names = rows.schema.names
        self._values = rows.column("value").to_pylist() if "value" in names else None
        self._urls = rows.column("url").to_pylist() if "url" in names else None
        self._ids = ids.to_pylist() if ids is not None and form.idempotency_key else None
        self._headers = {n: rows.column(column).to_pylist() for n, column in form.header_columns}
        problems = {row: why for row in range(self._count) if (why := self._problem(row))}
        self.refused = [Refusal(row, *why) for row, why in problems.items()]
        self._kept = [row for row in range(self._count) if row not in problems]

    def parts(self) -> Iterator[range]:
        """Return the rows of each request, as places among those that can be sent."""
        for start in range(0, len(self._kept), self._form.batch):
            yield range(start, min(start + self._form.batch, len(self._kept)))

    def number(self, at: int) -> int:
        """Return the number of a row in the Arrow batch."""
        return self._kept[at]

    def url(self, at: int) -> str:
        """Return the address for a row."""
        return str(self._form.url if self._urls is None else self._urls[self._kept[at]])

    def headers(self, rows: range) -> dict[str, str]:
        """Return the headers of a request."""
        first, last = self._kept[rows[0]], self._kept[rows[-1]]
        headers = dict(self._form.headers)
        for name, values in self._headers.items():
            if values[first] is not None:
                headers[name] = values[first]
        if self._ids:
            several = f"..{self._ids[last]}" if len(rows) > 1 else ""
            headers[IDEMPOTENCY_KEY] = self._ids[first] + several
        return headers

    def body(self, rows: range) -> bytes | None:
        """Return the body of a request."""
        if self._values is None or not self._form.has_body:
            return None
        values = [self._values[self._kept[at]] for at in rows]
        if self._form.joined is None:
            value: bytes = values[0]
            return value
        if self._form.joined == "array":
            return b"[" + b",".join(values) + b"]"
        return b"".join(_one_line(value) + b"\n" for value in values)

    def _problem(self, row: int) -> tuple[str, str] | None:
        if self._urls is not None and (why := _url_problem(self._urls[row])):
            return "invalid_address", why
        for name, values in self._headers.items():
            if why := _header_problem(name, values[row]):
                return "invalid_header", why
        if self._values is not None and self._form.has_body:
            return self._value_problem(self._values[row])
        return None

    def _value_problem(self, value: bytes | None) -> tuple[str, str] | None:
        if value is None:
            return "no_value", "the value is null: there is nothing to send"
        if self._form.joined and self._form.checks_values:
            try:
                msgspec.json.decode(value, type=msgspec.Raw)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
                return (
                    "not_json",
                    f"the value is not JSON, and {self._form.joined} of them are: {error}",
                )
        return None


def _one_line(value: bytes) -> bytes:
    return value.replace(b"\n", b" ").replace(b"\r", b" ")


def _url_problem(url: str | None) -> str | None:
    if url is None:
        return "a column of 'url' is null, or empty in the path"
    if any(part in (".", "..") for part in urlsplit(url).path.split("/")):
        return "a column of 'url' is '.' or '..', which would lead to another path"
    return None


def _header_problem(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    if any((letter < " " and letter != "\t") or letter == "\x7f" for letter in value):
        return f"the header {name!r} would have a control character"
    if not value.isascii():
        return f"the header {name!r} would have a value that is not ASCII"
    return None
