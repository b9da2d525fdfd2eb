"""Says in one sentence why a pipeline failed, and what kind of failure it was.

What kind it was is decided by classes, conditions and SQL states (`pipeline/java_errors.py`), and for
errors of Penstock's own workers by their frames (`error_frame.py`), never by text that quotes a record.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.config.secrets import mask
from penstock.engine.restart_reason import ContendedError
from penstock.error_frame import ForeignError
from penstock.errors import (
    PenstockError,
    PipelineFailedError,
    RecordError,
    RefusedError,
    TransientError,
)
from penstock.pipeline.java_errors import (
    PYTHON,
    Cause,
    causes_of,
    framed,
    is_disk_full,
    raised_in_worker,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_PYTHON_ERROR = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt)\b.*)$", re.M)
_KAFKA = "org.apache.kafka.common.errors."
# What the Java client throws for a broker that is away, moving or starting, and Java for any system.
_AWAY = (
    *(
        f"{_KAFKA}{name}Exception"
        for name in (
            "Timeout",
            "Network",
            "Disconnect",
            "NotLeaderOrFollower",
            "LeaderNotAvailable",
            "BrokerNotAvailable",
            "CoordinatorNotAvailable",
            "CoordinatorLoadInProgress",
            "NotCoordinator",
            "NotEnoughReplicas",
            "NotEnoughReplicasAfterAppend",
            "ReplicaNotAvailable",
            "OffsetNotAvailable",
            "FencedLeaderEpoch",
            "UnknownLeaderEpoch",
            "KafkaStorage",
        )
    ),
    "java.net.SocketException",
    "java.net.SocketTimeoutException",
)
# What values cause, with other SQL states than such errors have, or none.
_CONDITIONS = (
    "DUPLICATED_MAP_KEY",
    "COLLECTION_SIZE_LIMIT_EXCEEDED",
    "_LEGACY_ERROR_TEMP_2128",  # arrays of keys and of values with different lengths
    "_LEGACY_ERROR_TEMP_2176",  # an array of too many
)
_OF_VALUES = ("java.lang.ArithmeticException", "java.time.DateTimeException")
# What Spark's own log says of a batch that another process planned, or ended, in the meantime.
_CONTENDED = "CONCURRENT_STREAM_LOG_UPDATE"
_FROM_SPARK = (PySparkException, Py4JJavaError)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# An error may quote a whole record; this much of it says enough.
_LONGEST = 10_000


def failure(error: BaseException, pipeline: str, log: Path | None) -> PenstockError:
    """Return what went wrong as an error for people, with the file that has the details."""
    if isinstance(error, PenstockError):
        return error
    raised = raised_in_worker(error)
    if raised and not isinstance(raised, (ForeignError, RecordError)):
        raised.args = (mask(str(raised)),)
        return raised
    if any(cause.condition == _CONTENDED for cause in causes_of(error)):
        return ContendedError(
            f"another process noted a batch of {pipeline!r} at the same moment, one that was suspended "
            "for example: the pipeline starts again with what is noted"
        )
    where = f"; the details are in {log}" if log else ""
    message = mask(f"pipeline {pipeline!r} failed: {reason(error)}{where}")
    return TransientError(message) if is_transient(error) else PipelineFailedError(message)


def ended_with(query: StreamingQuery) -> Exception | None:
    """Return what ended the query, with Java's exception: PySpark's own copy is text alone."""
    error: Any = query.exception()
    if error is not None:
        java: Any = query
        error._origin = java._jsq.exception().get()
    return error  # type: ignore[no-any-return]


def reason(error: BaseException) -> str:
    """Return the innermost reason that a person can act on."""
    if (raised := raised_in_worker(error)) is not None:
        text = str(raised)
        return text if isinstance(raised, ForeignError) else f"{type(raised).__name__}: {text}"
    if causes := causes_of(error):
        return _sentence(causes[-1])
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__


def is_transient(error: BaseException) -> bool:
    """Return whether another system was unavailable, or a disk full: the same batch may work later."""
    if isinstance(error, PenstockError):
        return isinstance(error, TransientError)
    if isinstance(error, OSError):
        return error.errno in _NO_SPACE
    if raised := raised_in_worker(error):
        return isinstance(raised, TransientError)
    causes = causes_of(error)
    return is_disk_full(causes) or any(cause.is_a(*_AWAY) for cause in causes)


def refusal(error: BaseException) -> tuple[str, str, str] | None:
    """Return stage, type and text if a step or the sink refused a row because of its values."""
    if isinstance(error, RefusedError):
        return error.stage, type(error).__name__, _text(str(error))
    if not isinstance(error, _FROM_SPARK):
        return None
    return _refused(causes_of(error))


def _refused(causes: Sequence[Cause]) -> tuple[str, str, str] | None:
    """Classify by the first error: a worker that gets no more rows may fail after it."""
    for cause in reversed(causes):
        raised = framed(cause)
        if isinstance(raised, RefusedError):
            return raised.stage, type(raised).__name__, _text(str(raised))
        if raised and not isinstance(raised, ForeignError):
            return None
        if _is_of_the_row(cause):
            return "step", cause.condition or cause.name, _text(_without_marks(cause))
    return None


def _is_of_the_row(cause: Cause) -> bool:
    """Return whether a value is wrong: by SQL state (a cast, an overflow), by `raise_error`, or by class.

    Some functions raise what Java's own arithmetic and dates do, without a condition.
    """
    value = cause.sqlstate.startswith("22") and not cause.condition.startswith("KAFKA_")
    plain = not cause.condition and cause.is_a(*_OF_VALUES)
    return value or plain or cause.sqlstate == "P0001" or cause.condition.startswith(_CONDITIONS)


def _without_marks(cause: Cause) -> str:
    """Return the message without the condition before it, and the SQL state and the query after it.

    >>> _without_marks(Cause((), "[A] no SQLSTATE: 22 SQLSTATE: 22018 == SQL ==", "A", "22018"))
    'no SQLSTATE: 22'
    """
    text = cause.message.removeprefix(f"[{cause.condition}]")
    message, separator, _ = text.rpartition(f" SQLSTATE: {cause.sqlstate}")
    return (message if separator else text).strip()


def _sentence(cause: Cause) -> str:
    if cause.is_a(PYTHON) and (errors := _PYTHON_ERROR.findall(cause.message)):
        return str(errors[-1]).strip().removeprefix("penstock.errors.")
    first = cause.message.strip().splitlines()
    return f"{cause.name}: {first[0]}" if first else cause.name


def _text(message: str) -> str:
    return mask(message[:_LONGEST])
