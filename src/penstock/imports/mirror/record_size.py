"""Which records a topic takes: the size of a record alone in its batch, as brokers count it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from confluent_kafka import Message

from penstock.pipeline.importing import BadRecord

# What a batch has before its records; attributes and the two differences, which are 0, in a record.
_BATCH, _FIXED = 61, 3
# More than a record without headers ever has around its key and value.
_AROUND = 100
_SHOWN_KEY = 1000
_Headers = Sequence[tuple[str, bytes | None]]


def too_large(messages: list[Message], largest: int) -> dict[int, int]:
    """Return the sizes of the records that do not fit, by their index.

    Nearly always there are none, and it takes a glance at the largest value.
    """
    values = max(map(len, messages), default=0)
    keys = max(map(len, filter(None, map(Message.key, messages))), default=0)
    headers = max(map(_headers_size, _headers(messages)), default=0)
    if values + keys + headers + _AROUND <= largest:
        return {}
    sizes = [
        batch_size(len(each.key() or b""), len(each.value() or b""), cast("Any", each.headers()))
        for each in messages
    ]
    return {index: size for index, size in enumerate(sizes) if size > largest}


def bad_record(message: Message, size: int, largest: int, into: str) -> BadRecord:
    """Return a record that does not fit as a bad one: without its value, which would not fit either."""
    key = message.key()
    return BadRecord(
        None,
        f"{message.topic()}/{message.partition()}, offset {message.offset()}: the record has {size} "
        f"bytes in a batch of its own, and the topic {into!r} takes {largest}; raise its "
        "max.message.bytes",
        "TooLargeError",
        key if isinstance(key, bytes) and len(key) <= _SHOWN_KEY else None,
    )


def batch_size(key: int, value: int, headers: _Headers | None) -> int:
    """Return the bytes of a batch with one record that has a key, a value and headers of these sizes.

    >>> batch_size(3, 10, None), batch_size(3, 10, [("a", b"1"), ("b", None)])
    (81, 88)
    """
    record = _FIXED + _varint(key) + key + _varint(value) + value + _varint(len(headers or []))
    record += _headers_size(headers or [])
    return _BATCH + _varint(record) + record


def _headers(messages: list[Message]) -> Iterable[_Headers]:
    # The type allows what can be produced, too; what was consumed has pairs with bytes.
    return cast("Iterable[_Headers]", filter(None, map(Message.headers, messages)))


def _headers_size(headers: _Headers) -> int:
    total = 0
    for name, value in headers:
        # A letter has at most four bytes; most names are short and of one each.
        name_size = len(name) if name.isascii() else len(name.encode())
        value_size = len(value) if value is not None else 0
        total += _varint(name_size) + name_size + _varint(value_size) + value_size
    return total


def _varint(number: int) -> int:
    return 1 if number < 64 else (number.bit_length() + 7) // 7
