"""Which records a topic takes: by their sizes, as brokers count them, with a key, of which times."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, cast

from confluent_kafka import Message

from penstock.pipeline.importing import BadRecord

# What a batch has before its records; attributes and the two differences, which are 0, in a record.
_BATCH, _FIXED = 61, 3
# More than a record without headers ever has around its key and value.
_AROUND = 100
_SHOWN = 1000
_LARGEST, _POLICY = "max.message.bytes", "cleanup.policy"
_TIMES = "message.timestamp.type"
_AHEAD, _BEHIND = "message.timestamp.after.max.ms", "message.timestamp.before.max.ms"
# Kafka's word for no limit.
_ANY = 2**63 - 1
_Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Limits:
    """What a topic takes: the largest batch in bytes, whether each record needs a key, and its times."""

    largest: int
    needs_key: bool = False
    # How many milliseconds the time of a record may be after now, and before it; None: any.
    ahead: int | None = None
    behind: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Limits:
        """Return the limits that a topic's settings are.

        >>> Limits.of({"max.message.bytes": "9", "cleanup.policy": "compact,delete"})
        Limits(largest=9, needs_key=True, ahead=None, behind=None)
        """
        needs_key = "compact" in settings[_POLICY]
        if settings.get(_TIMES) == "LogAppendTime":
            return cls(int(settings[_LARGEST]), needs_key)
        ahead, behind = (_milliseconds(settings.get(name)) for name in (_AHEAD, _BEHIND))
        return cls(int(settings[_LARGEST]), needs_key, ahead, behind)

    def refused(self, messages: list[Message]) -> dict[int, str]:
        """Return why records cannot be in the topic, by their index. Nearly always there are none."""
        reasons = {
            index: f"the record has {size} bytes in a batch of its own, and the topic takes "
            f"{self.largest}; raise its max.message.bytes"
            for index, size in self._too_large(messages).items()
        }
        if self.needs_key:
            reasons |= {
                index: "the record has no key, and the topic is compacted"
                for index, key in enumerate(map(Message.key, messages))
                if key is None
            }
        if self.ahead is not None or self.behind is not None:
            reasons |= self._of_other_times(messages, int(time.time() * 1000))
        return reasons

    def _of_other_times(self, messages: list[Message], now: int) -> dict[int, str]:
        times = [*map(itemgetter(1), map(Message.timestamp, messages))]
        latest = _ANY if self.ahead is None else now + self.ahead
        earliest = -_ANY if self.behind is None else now - self.behind
        if not times or (earliest <= min(times) and max(times) <= latest):
            return {}
        return {
            index: f"its time is {time_ - now} ms after now, and the topic takes {self.ahead} ({_AHEAD})"
            if time_ > latest
            else f"its time is {now - time_} ms before now, and the topic takes {self.behind} ({_BEHIND})"
            for index, time_ in enumerate(times)
            if not earliest <= time_ <= latest
        }

    def _too_large(self, messages: list[Message]) -> dict[int, int]:
        values = max(map(len, messages), default=0)
        keys = max(map(len, filter(None, map(Message.key, messages))), default=0)
        headers = max(map(_headers_size, _headers(messages)), default=0)
        if values + keys + headers + _AROUND <= self.largest:
            return {}
        sizes = [
            batch_size(
                len(each.key() or b""), len(each.value() or b""), cast("Any", each.headers())
            )
            for each in messages
        ]
        return {index: size for index, size in enumerate(sizes) if size > self.largest}


def _milliseconds(given: str | None) -> int | None:
    return None if given is None or int(given) == _ANY else int(given)


def bad_record(message: Message, reason: str, into: str) -> BadRecord:
    """Return a record that a topic does not take, without a value that is too large for any."""
    key, value = message.key(), message.value()
    where = f"{message.topic()}/{message.partition()}, offset {message.offset()}"
    return BadRecord(
        value if isinstance(value, bytes) and len(value) <= _SHOWN else None,
        f"{where}, cannot be copied into {into!r}: {reason}",
        "RefusedError",
        key if isinstance(key, bytes) and len(key) <= _SHOWN else None,
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
