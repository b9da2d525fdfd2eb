"""Records that are sent through the API: read from JSON, and written with an acknowledgement for each."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from penstock.config import Connection
from penstock.errors import ConfigError, PenstockError, RecordError
from penstock.formats import Format
from penstock.kafka import Producer, Receipt
from penstock.server.kafka.kafka_statuses import status_of
from penstock.server.problems import RefusedRequestError

MOST_RECORDS = 500
_MOST_BYTES = 8 * 1024 * 1024
_DELIVERY = 10_000
# Values that JSON has only as text.
_FROM_TEXT: dict[str, Callable[[str], Any]] = {"uuid": UUID, "bytes": str.encode}
Base64 = Annotated[str, Field(max_length=_MOST_BYTES)]


class NewMessage(BaseModel):
    """A record to write. A text is written as it is, other JSON as JSON, null as a tombstone."""

    model_config = ConfigDict(extra="forbid")

    key: Any = None
    key_base64: Base64 | None = None
    value: Any = None
    value_base64: Base64 | None = None
    headers: dict[str, str | list[str | None] | None] = Field(default={}, max_length=100)
    timestamp: int | None = Field(
        default=None, ge=1, le=2**53, description="Milliseconds since 1970; default: now."
    )
    partition: int | None = Field(default=None, ge=0, le=2**31 - 1)


class NewMessages(BaseModel):
    """Records to write, with the format of their values."""

    model_config = ConfigDict(extra="forbid")

    records: list[NewMessage] = Field(min_length=1, max_length=MOST_RECORDS)
    format: str | None = Field(
        default=None,
        max_length=50,
        description="long, avro, ...; those of the registry use the newest schema of the subject.",
    )


class PlainJson:
    """Any value as JSON, also a text or a number, which the client's format writes as an array of one.

    >>> PlainJson().encode("x")
    b'"x"'
    """

    name = "json"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002 - as a format has it
        """Return the bytes of a value."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()

    def decode(self, data: bytes, topic: str = "") -> Any:  # noqa: ARG002 - as a format has it
        """Return the value of some bytes."""
        return json.loads(data)


class Draft(NamedTuple):
    """A record as it is sent."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int | None
    partition: int | None


def drafts_of(given: Sequence[NewMessage], topic: str, form: Format | None) -> list[Draft]:
    """Return the records; the error for a bad one names its number, and nothing is sent."""
    drafts, size = [], 0
    for number, message in enumerate(given):
        try:
            draft = _draft(message, topic, form)
        except (RecordError, ValueError, TypeError, RecursionError) as error:
            raise ConfigError(f"records[{number}]: {_safe(error)}; nothing was written") from None
        size += len(draft.key or b"") + len(draft.value or b"")
        drafts.append(draft)
    if size > _MOST_BYTES:
        raise RefusedRequestError(
            413, f"the records have {size} bytes; at most {_MOST_BYTES} are written by one request"
        )
    return drafts


def write(connection: Connection, topic: str, drafts: Sequence[Draft]) -> list[dict[str, Any]]:
    """Write records and wait for the broker; return the partition and offset of each."""
    written: list[dict[str, Any]] = []
    failed: list[tuple[int, PenstockError]] = []
    settings: dict[str, Any] = {"acks": "all", "delivery.timeout.ms": _DELIVERY, "linger.ms": 5}
    with Producer(connection, **settings) as producer:
        receipts = [_sent(producer, topic, draft) for draft in drafts]
        for number, receipt in enumerate(receipts):
            try:
                if isinstance(receipt, PenstockError):
                    raise receipt
                record = receipt.result()
                written.append({"partition": record.partition, "offset": record.offset})
            except PenstockError as error:
                failed.append((number, error))
    if failed:
        number, first = failed[0]
        raise RefusedRequestError(
            status_of(first) or 503,
            f"{len(failed)} of {len(drafts)} records were not written, and {len(written)} were: "
            f"records[{number}]: {first}",
        )
    return written


def _sent(producer: Producer, topic: str, draft: Draft) -> Receipt | PenstockError:
    try:
        return producer.produce(
            topic,
            draft.key,
            draft.value,
            partition=draft.partition,
            headers=draft.headers or None,
            timestamp=draft.timestamp,
        )
    except PenstockError as error:
        return error


def _draft(message: NewMessage, topic: str, form: Format | None) -> Draft:
    for name in message.headers:
        if not name or "\0" in name:
            raise ValueError(
                f"{name[:100]!r} is not the name of a header: allowed is text without NUL"
            )
    return Draft(
        key=payload(message.key, message.key_base64, "key", topic, None),
        value=payload(message.value, message.value_base64, "value", topic, form),
        headers=[
            (name, None if value is None else value.encode())
            for name, values in message.headers.items()
            for value in (values if isinstance(values, list) else [values])
        ],
        timestamp=message.timestamp,
        partition=message.partition,
    )


def payload(
    value: Any, encoded: str | None, name: str, topic: str = "", form: Format | None = None
) -> bytes | None:
    """Return the bytes of a key or value, given as JSON or as base64; raise ValueError for both."""
    if encoded is not None:
        if value is not None:
            raise ValueError(f"'{name}' and '{name}_base64' were both given; give one of them")
        return _unbase64(encoded, f"{name}_base64")
    if value is None:
        return None
    if form is not None:
        read = _FROM_TEXT.get(form.name)
        return form.encode(read(value) if read and isinstance(value, str) else value, topic)
    if isinstance(value, str):
        return value.encode()
    return PlainJson().encode(value)


def _unbase64(text: str, name: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{name} is not base64: {error}") from None


def _safe(error: Exception) -> str:
    return str(error)[:500].encode(errors="backslashreplace").decode()
