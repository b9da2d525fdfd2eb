"""The offsets that a request for messages is about, and the cursor of the pages after it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from penstock.errors import ConfigError
from penstock.kafka import Admin, Position
from penstock.server.kafka.message_browsing import Span, Spans
from penstock.server.paging import after

_LARGEST = 2**63 - 1
_LATEST_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""


def position(text: str) -> Position:
    """Read a position; refuse numbers that Kafka does not have."""
    try:
        given = Position.parse(text)
    except (OverflowError, ValueError):
        raise _out_of_range(text) from None
    most = _LATEST_TIME if given.kind == "time" else _LARGEST
    if not (text.isascii() and 0 <= given.value <= most):
        raise _out_of_range(text)
    return given


def reset_target(text: str) -> str:
    """Return where a group is to go on; refuse numbers that Kafka does not have.

    >>> reset_target("+10"), reset_target("earliest")
    ('+10', 'earliest')
    """
    try:
        position(text.removeprefix("+") if text[1:].isdecimal() else text)
    except OutOfRangeError:
        raise
    except ConfigError:
        return text  # the plan raises what is allowed
    return text


class OutOfRangeError(ConfigError):
    """A position with a number that is too large or too small."""


def _out_of_range(text: str) -> OutOfRangeError:
    return OutOfRangeError(f"{text[:100]!r} is out of range for a position")


def range_of(
    admin: Admin, topic: str, partition: int | None, start: Position, stop: Position
) -> Spans:
    """Return the offsets between two positions, in one partition or in all."""
    partitions = admin.partitions([topic])
    if partition is not None:
        if (topic, partition) not in partitions:
            raise ConfigError(
                f"topic {topic!r} has no partition {partition}; it has 0 to {len(partitions) - 1}"
            )
        partitions = [(topic, partition)]
    first, end = start.offsets(admin, partitions), stop.offsets(admin, partitions)
    return {where[1]: Span(first[where], end[where]) for where in partitions}


def cursor_of(rest: Mapping[int, Span]) -> str | None:
    """Return the cursor of what is left; None where nothing is.

    >>> spans_of(cursor_of({0: Span(3, 7), 1: Span(2, 2)}))
    {0: Span(start=3, stop=7)}
    """
    left = [[p, span.start, span.stop] for p, span in sorted(rest.items()) if not span.is_empty]
    if not left:
        return None
    return base64.urlsafe_b64encode(json.dumps(left, separators=(",", ":")).encode()).decode()


def spans_of(cursor: str) -> Spans:
    """Return what is left by a cursor."""
    key = after(cursor)
    if not isinstance(key, list) or not key or not all(map(_is_span, key)):
        raise ConfigError(
            f"{cursor[:40]!r} is not a cursor of messages; give the 'next' of the page before, or none"
        )
    return {partition: Span(start, stop) for partition, start, stop in key}


def within(spans: Spans, existing: Spans) -> Spans:
    """Return the part of the spans that the topic has now: records may be gone since the last page."""
    both = ((p, span, existing[p]) for p, span in spans.items() if p in existing)
    return {p: Span(max(a.start, b.start), min(a.stop, b.stop)) for p, a, b in both}


def _is_span(given: Any) -> bool:
    return (
        isinstance(given, list)
        and len(given) == 3
        and all(type(each) is int and 0 <= each <= _LARGEST for each in given)
    )
