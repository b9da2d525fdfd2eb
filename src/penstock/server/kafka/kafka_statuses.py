"""The status of HTTP for errors of a cluster, by Kafka's code where the class alone says too little."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError

from penstock.errors import (
    ConfigError,
    NotFoundError,
    PenstockError,
    RecordError,
    SetupError,
    TransientError,
)
from penstock.kafka.error_table import group
from penstock.kafka.kafka_errors import code_of
from penstock.server.problems import RefusedRequestError

_CONFLICTS = frozenset(
    {
        KafkaError.TOPIC_ALREADY_EXISTS,
        KafkaError.NON_EMPTY_GROUP,
        KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
        KafkaError.REASSIGNMENT_IN_PROGRESS,
    }
)
_MISSING = group("missing topic").codes | group("missing").codes
_FORBIDDEN = group("forbidden").codes
_UNSUPPORTED = group("not supported").codes
_BY_CODE = ((_CONFLICTS, 409), (_MISSING, 404), (_FORBIDDEN, 403), (_UNSUPPORTED, 501))


@contextmanager
def with_status() -> Iterator[None]:
    """Raise errors of a cluster with their status, and with the same text."""
    try:
        yield
    except PenstockError as error:
        status = status_of(error)
        if status is None:
            raise
        raise RefusedRequestError(status, str(error)) from error


def status_of(error: PenstockError) -> int | None:
    """Return the status of an error; None where its class says enough.

    >>> status_of(RecordError("too large")), status_of(ConfigError("no"))
    (422, None)
    """
    if isinstance(error, RefusedRequestError | NotFoundError):
        return None
    code = code_of(error)
    for codes, status in _BY_CODE:
        if code in codes:
            return status
    if isinstance(error, RecordError):
        return 422
    if isinstance(error, ConfigError | TransientError | SetupError):
        return None
    return 502
