"""The shape in which every poll of the plugin answers: (error, message), and the words for no message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.compat.dolphindb.values import to_python
from penstock.errors import PenstockError, WakeupError
from penstock.formats import find_format
from penstock.record import Record

Message = tuple[str, Any, Any, int, np.datetime64]
"""Topic, key, value, partition, timestamp."""
Answer = tuple[str, "Message | None"]
"""What went wrong, empty where nothing did, and the message."""

NO_MESSAGE = "No more message"
_NOTHING: Answer = (NO_MESSAGE, None)


def answer_of(record: Record) -> Answer:
    """One record as the plugin gives it; one that does not decode keeps its bytes.

    >>> error, message = answer_of(Record.of("test", 0, 7, key=b"k", value=[1], timestamp=1))
    >>> error, message[:4], str(message[4])
    ('', ('test', 'k', [1], 0), '1970-01-01T00:00:00.001')
    """
    error = "" if record.error is None else str(record.error)
    value = to_python(record.value)
    return error, (record.topic, _key(record.key), value, record.partition, _moment(record))


def answers(poll: Callable[[], list[Record]]) -> list[Answer]:
    """Poll: an answer for each record, and one that says so where none came.

    What goes wrong while reading is an answer, too, as in the plugin. A wakeup is not: it must end
    the loop of whoever polls.
    """
    try:
        records = poll()
    except WakeupError:
        raise
    except PenstockError as error:
        return [(str(error), None)]
    return list(map(answer_of, records)) or [_NOTHING]


def _key(key: Any) -> Any:
    return find_format("plain").decode(key) if isinstance(key, bytes) else key


def _moment(record: Record) -> np.datetime64:
    if record.timestamp is None:
        return np.datetime64("NaT", "ms")
    return np.datetime64(record.timestamp, "ms")
