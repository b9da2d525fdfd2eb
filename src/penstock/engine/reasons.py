"""Says in one sentence why a pipeline failed, and what kind of failure it was.

Spark's own account is a page of Java and Python, in which the first reason stands last.
"""

from __future__ import annotations

import re
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock import errors
from penstock.config.secrets import mask
from penstock.errors import PenstockError, PipelineFailedError, RefusedError, TransientError
from penstock.pipeline.told import told_by_spark

_PYTHON_ERROR = re.compile(r"^\s*([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt)\b.*)$", re.M)
_JAVA_CAUSE = re.compile(r"^Caused by: ([\w.$]+): (.*)$", re.M)
_OUR_ERROR = re.compile(r"\bpenstock\.errors\.(\w+): (.*)")
# What the Java client says of a broker that is away, moving or starting, and Java of any system. A full
# disk is no different: somebody makes room, and the batch goes on.
_AWAY = re.compile(
    r"\borg\.apache\.kafka\.common\.errors\.(Timeout|Network|Disconnect|NotLeaderOrFollower"
    r"|LeaderNotAvailable|BrokerNotAvailable|CoordinatorNotAvailable|CoordinatorLoadInProgress"
    r"|NotCoordinator|NotEnoughReplicas\w*|ReplicaNotAvailable|OffsetNotAvailable"
    r"|FencedLeaderEpoch|UnknownLeaderEpoch|KafkaStorage)Exception\b"
    r"|\bNo space left on device\b"
    r"|\bjava\.net\.(Connect|SocketTimeout|NoRouteToHost|Socket)Exception\b"
)
# SQL states: what is wrong with a value (division by zero, a cast, an overflow), and raise_error.
_OF_THE_ROW = re.compile(r"\[([A-Z][A-Z_.]+)\] (.*?) SQLSTATE: (?:22\w{3}|P0001)")
_FROM_SPARK = (PySparkException, Py4JJavaError)


def failure(error: BaseException, pipeline: str, log: Path | None) -> PenstockError:
    """Return what went wrong as an error for people, with the file that has the whole story."""
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, _FROM_SPARK) and (found := _ours(error)):
        kind, message = found
        if issubclass(kind, TransientError):
            return kind(mask(message))
    where = f"; the whole story is in {log}" if log else ""
    told = mask(f"pipeline {pipeline!r} failed: {reason(error)}{where}")
    return TransientError(told) if is_transient(error) else PipelineFailedError(told)


def reason(error: BaseException) -> str:
    """Return the innermost reason that a person can act on."""
    text = str(error)
    if isinstance(error, _FROM_SPARK):
        if found := _PYTHON_ERROR.findall(text):
            return str(found[-1]).strip().removeprefix("penstock.errors.")
        if causes := _JAVA_CAUSE.findall(text):
            kind, message = causes[-1]
            return f"{kind.rpartition('.')[2]}: {message}"
    first = text.strip().splitlines()
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__


def is_transient(error: BaseException) -> bool:
    """Whether another system was away, so that the same batch may work later."""
    if isinstance(error, PenstockError):
        return isinstance(error, TransientError)
    if not isinstance(error, _FROM_SPARK):
        return False
    if found := _ours(error):
        return issubclass(found[0], TransientError)
    return bool(_AWAY.search(told_by_spark(error)))


def refusal(error: BaseException) -> tuple[str, str, str] | None:
    """Return stage, type and text where a step or the sink refused a row for what is in it."""
    if isinstance(error, RefusedError):
        return "write", type(error).__name__, mask(str(error))
    if not isinstance(error, _FROM_SPARK):
        return None
    if (found := _ours(error)) and issubclass(found[0], RefusedError):
        return "step", found[0].__name__, mask(found[1])
    if state := _OF_THE_ROW.search(told_by_spark(error)):
        return "step", state[1], mask(state[2])
    return None


def _ours(error: Exception) -> tuple[type[PenstockError], str] | None:
    """The error of ours that a worker raised, if that is what ended the task."""
    for name, message in reversed(_OUR_ERROR.findall(told_by_spark(error))):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, PenstockError):
            return kind, message.strip()
    return None
