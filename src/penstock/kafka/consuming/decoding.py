"""Bytes become values here; what does not decode is an error of its record, which keeps its bytes."""

from __future__ import annotations

from confluent_kafka import Message

from penstock.errors import FormatError, PenstockError, TransientError
from penstock.formats import Format
from penstock.record import Record, record_of


def decode_all(
    messages: list[Message],
    format: Format | None,
    key_format: Format | None,
) -> list[Record]:
    """The records of messages, each with its values, or with the error and its bytes.

    A schema registry that is away is asked once for the whole batch: the records are handed out all
    the same, because they have left librdkafka and nobody else would ever see them.
    """
    records, away = [], None
    for message in messages:
        error = away or _decode(message, format, key_format)
        if isinstance(error, TransientError):
            away = error
        records.append(record_of(message, error))
    return records


def _decode(
    message: Message,
    format: Format | None,
    key_format: Format | None,
) -> PenstockError | None:
    topic = str(message.topic())
    key, value = message.key(), message.value()
    try:
        if key_format is not None and key is not None:
            key = key_format.decode(key, topic)
        if format is not None and value is not None:
            value = format.decode(value, topic)
    except PenstockError as error:
        return error
    except Exception as error:
        # A format of the user's own: the record must not go under, nor its neighbours.
        problem = FormatError(f"a format raised {type(error).__name__}: {error}")
        problem.__cause__ = error
        return problem
    message.set_key(key)
    message.set_value(value)
    return None
