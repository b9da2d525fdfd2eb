"""Bytes become values here; what does not decode is an error of its record, which keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message

from penstock.errors import FormatError, PenstockError, TransientError, missing_extra
from penstock.formats import Format, find_format
from penstock.record import Record, record_of

if TYPE_CHECKING:
    import pyarrow as pa


class Decoder:
    """Makes records of messages, with the formats of a consumer."""

    def __init__(self, format: str | Format | None, key_format: str | Format | None = None) -> None:
        self._format = None if format is None else find_format(format)
        self._key_format = None if key_format is None else find_format(key_format)

    def using(self, format: str | Format | None) -> Decoder:
        """Return a decoder with this format; asked for first, so that a wrong one costs no record."""
        return self if format is None else Decoder(format, self._key_format)

    def __call__(self, messages: list[Message]) -> list[Record]:
        """Return the records of messages, each with its values, or with the error and its bytes.

        A schema registry that is away is asked once for the whole batch: the records are delivered all
        the same, because they have left librdkafka and no one else would ever see them.
        """
        if self._format is None and self._key_format is None:
            return list(map(Record, messages))
        records, away = [], None
        for message in messages:
            error = away or self._decode(message)
            if isinstance(error, TransientError):
                away = error
            records.append(record_of(message, error))
        return records

    def _decode(self, message: Message) -> PenstockError | None:
        topic = str(message.topic())
        key, value = message.key(), message.value()
        try:
            if self._key_format is not None and key is not None:
                key = self._key_format.decode(key, topic)
            if self._format is not None and value is not None:
                value = self._format.decode(value, topic)
        except PenstockError as error:
            return error
        except Exception as error:
            # A format of the user's own: the record must not be lost, nor its neighbours.
            problem = FormatError(f"a format raised {type(error).__name__}: {error}")
            problem.__cause__ = error
            return problem
        message.set_key(key)
        message.set_value(value)
        return None


def table_maker() -> Callable[[list[Message]], pa.Table]:
    """Return what makes a table of messages; asked for first, so that a missing extra costs no record."""
    try:
        from penstock.kafka.consuming.arrow_records import table_of  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "records as a table") from missing
    return table_of


def mapping_of(records: list[Record]) -> dict[Any, Any]:
    """Return records as key -> value; raise the first error among them."""
    for record in records:
        if record.error is not None:
            raise record.error
    try:
        return {record.key: record.value for record in records}
    except TypeError as problem:
        raise FormatError(
            f"a key cannot be one of a mapping: {problem}; use poll_batch"
        ) from problem
