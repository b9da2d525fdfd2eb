"""Triggers that are imports into `<flow>.in`: what the headers of their records are as attributes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from penstock.flows.definition.triggers import TimerTrigger
from penstock.flows.spark.tick_times import TickTimes
from penstock.flows.spark.timer_import import MISSED, TimerImport, attributes_of
from penstock.flows.spark.trigger_source import TriggerSource
from penstock.imports.files.file_reader import NAME, PATH
from penstock.pipeline.importing import Import

# How often a timer looks at the clock, in seconds.
_POLL = 0.5
# The digits of a number; more are a text, which no import writes.
_LONGEST = 19


def _number(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else text


def _truth(text: str) -> Any:
    return text == "true"


# What the imports write into the headers of records, and what is not a text in them.
_RABBITMQ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(
        (
            *("queue", "exchange", "routing_key", "content_type", "content_encoding", "expiration"),
            *(
                "correlation_id",
                "reply_to",
                "message_id",
                "type",
                "user_id",
                "app_id",
                "cluster_id",
            ),
        ),
        str,
    ),
    "redelivered": _truth,
    "priority": _number,
    "delivery_mode": _number,
    "timestamp": _number,
}
_JMS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(
        (
            *("destination", "kind", "message_id", "correlation_id", "type", "reply_to"),
            *("group_id", "content_type", "user_id"),
        ),
        str,
    ),
    "redelivered": _truth,
    "priority": _number,
    "expiration": _number,
    "group_sequence": _number,
}


class ImportTriggerSource(TriggerSource):
    """A system that is not Kafka, as an import into `<flow>.in`."""

    columns = ("headers", "timestamp")

    def source(self) -> Any:
        """Return the import; the options of the trigger are its own."""
        return cast(Import, self.flow.trigger).read_with_headers()

    def attributes(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the headers say, and the time of the record."""
        made = self.of_headers(headers_of(record["headers"]))
        return {**made, "timestamp": record["timestamp"]}

    @abstractmethod
    def of_headers(self, headers: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes that headers give."""


class RabbitMqTriggerSource(ImportTriggerSource):
    """Messages of queues: queue, exchange, properties; the sender's headers in `headers`."""

    def of_headers(self, headers: dict[str, Any]) -> dict[str, Any]:
        """Return the properties by their names, and the other headers."""
        made = _own(headers, "rabbitmq.", _RABBITMQ)
        return {**made, "headers": headers}


class JmsTriggerSource(ImportTriggerSource):
    """Messages of queues and topics: destination, JMS headers; the properties in `properties`."""

    def of_headers(self, headers: dict[str, Any]) -> dict[str, Any]:
        """Return the JMS headers by their names, and the properties."""
        made = _own(headers, "jms.", _JMS)
        return {**made, "properties": headers}


class FileTriggerSource(ImportTriggerSource):
    """Lines, rows or whole files of a folder: the name of the file and its path."""

    def source(self) -> Any:
        """Return the import, whose records say of which file they are."""
        trigger = cast(Import, self.flow.trigger).model_copy(update={"origin_headers": True})
        return trigger.read_with_headers()

    def of_headers(self, headers: dict[str, Any]) -> dict[str, Any]:
        """Return name and path."""
        return {"file": headers.get(NAME), "path": headers.get(PATH)}


class TimerTriggerSource(TriggerSource):
    """Ticks of a clock: the time at which each was due, and how many were missed before it."""

    columns = ("headers", "timestamp")

    def source(self) -> Any:
        """Return an import whose position is the last tick."""
        trigger = cast(TimerTrigger, self.flow.trigger)
        times = TickTimes(trigger.interval, trigger.cron, trigger.zone)
        made = TimerImport(
            times=times,
            payload=trigger.payload,
            missed=trigger.missed,
            poll=min(_POLL, (trigger.interval or 60) / 2),
        )
        return made.read_with_headers()

    def attributes(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the due time, as text and in milliseconds, and the missed ones."""
        missed = _number(str(headers_of(record["headers"]).get(MISSED, 0)))
        return attributes_of(record["timestamp"], missed if isinstance(missed, int) else 0)


def headers_of(given: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return headers as texts, bytes that are not UTF-8 as they are; of two with one name the last.

    >>> headers_of([{"key": "a", "value": b"1"}, {"key": "a", "value": b"2"}])
    {'a': '2'}
    """
    return {each["key"]: _text(each["value"]) for each in given or ()}


def _text(value: bytes | None) -> Any:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _own(
    headers: dict[str, Any], prefix: str, known: Mapping[str, Callable[[str], Any]]
) -> dict[str, Any]:
    """Take the headers that an import writes out of the others, and return them by their names."""
    found = {}
    for name, made in known.items():
        value = headers.pop(f"{prefix}{name}", None)
        if value is not None:
            found[name] = made(value) if isinstance(value, str) else value
    return found
