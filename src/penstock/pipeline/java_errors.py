"""What a failure in Spark is, by the classes, conditions and SQL states of Java's exceptions.

Never by their text: a message may quote what is in a record, and then the record would decide. The text
counts only where Java has nothing else, and then as a whole: what the operating system said about a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

from penstock.error_frame import ForeignError, WorkerError, find_frame
from penstock.errors import PenstockError

PYTHON = "org.apache.spark.api.python.PythonException"
_FILE_SYSTEM = "java.nio.file.FileSystemException"
_NO_SPACE = {"No space left on device", "Disk quota exceeded"}
_QUOTA = "org.apache.hadoop.hdfs.protocol.QuotaExceededException"
_TOO_LONG = "File name too long"
_COMPONENT = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"
_UNMADE = "Mkdirs failed to create "
_DEEPEST = 50


@dataclass(frozen=True)
class Cause:
    """One exception of Java."""

    names: tuple[str, ...]
    """Its class and those that it extends, with their packages."""
    message: str = ""
    condition: str = ""
    sqlstate: str = ""
    reason: str = ""
    """What the operating system said, for exceptions about files."""

    def is_a(self, *names: str) -> bool:
        """Return whether it is of one of these classes."""
        return any(name in self.names for name in names)

    @property
    def name(self) -> str:
        """Return the class without its package.

        >>> Cause(("java.io.IOException", "java.lang.Exception")).name
        'IOException'
        """
        return self.names[0].rpartition(".")[2]


def causes_of(error: BaseException | None) -> list[Cause]:
    """Return Java's exception and what caused it, outermost first; nothing for one of Python's own."""
    causes: list[Cause] = []
    throwable = _throwable(error)
    while throwable is not None and len(causes) < _DEEPEST:
        try:
            causes.append(_cause(throwable))
            throwable = throwable.getCause()
        except (Py4JError, OSError):  # the Java process is gone
            break
    return causes


def raised_in_worker(error: BaseException) -> PenstockError | ForeignError | None:
    """Return the first error that a Python worker of ours raised, where that ended a task."""
    if isinstance(error, WorkerError):
        return find_frame(str(error))
    errors = map(framed, reversed(causes_of(error)))
    return next((raised for raised in errors if raised is not None), None)


def framed(cause: Cause) -> PenstockError | ForeignError | None:
    """Return what a worker raised, if this exception is how Spark passes it on."""
    return find_frame(cause.message) if cause.is_a(PYTHON) else None


def is_disk_full(causes: Sequence[Cause]) -> bool:
    """Return whether a file could not be written because the disk is full."""
    return any(cause.reason in _NO_SPACE or cause.is_a(_QUOTA) for cause in causes)


def is_name_too_long(causes: Sequence[Cause]) -> bool:
    """Return whether a folder could not be created because of its name.

    >>> unmade = "Mkdirs failed to create file:/t/name={} (exists=false, cwd=file:/)"
    >>> [is_name_too_long([Cause((), reason=unmade.format(name))]) for name in ("a" * 300, "a word")]
    [True, False]
    """
    return any(
        cause.reason == _TOO_LONG or cause.is_a(_COMPONENT) or any(map(_is_long, _unmade(cause)))
        for cause in causes
    )


def is_unmade_folder(cause: Cause) -> bool:
    """Return whether a folder could not be created: Hadoop does not report why."""
    return cause.reason.startswith(_UNMADE)


def _unmade(cause: Cause) -> list[str]:
    if not is_unmade_folder(cause):
        return []
    return cause.reason[len(_UNMADE) :].rpartition(" (exists=")[0].split("/")


def _is_long(name: str) -> bool:
    return len(name.encode()) > 255


def _throwable(error: Any) -> Any:
    """Return Java's exception: PySpark has it in one of three attributes."""
    if error is None:
        return None
    for holder, attribute in ((error, "java_exception"), (error, "_origin")):
        if (throwable := getattr(holder, attribute, None)) is not None:
            return throwable
    if hasattr(error, "_origin"):  # a PythonException, converted where the other one was handled
        return getattr(error.__context__, "java_exception", None)
    return None


def _cause(throwable: Any) -> Cause:
    names = tuple(_names(throwable.getClass()))
    message = str(throwable.getMessage() or "")
    return Cause(
        names,
        message,
        condition=_asked(throwable.getCondition),
        sqlstate=_asked(throwable.getSqlState),
        reason=_reason(throwable, names, message),
    )


def _names(kind: Any) -> Iterator[str]:
    while kind is not None:
        yield str(kind.getName())
        kind = kind.getSuperclass()


def _asked(method: Callable[[], Any]) -> str:
    """Return the text of a method that not every exception has."""
    try:
        return str(method() or "")
    except Py4JError:
        return ""


def _reason(throwable: Any, names: Sequence[str], message: str) -> str:
    if _FILE_SYSTEM in names:
        return str(throwable.getReason() or "")
    if names[0] == "java.io.FileNotFoundException":  # the path comes first, and may hold anything
        return message.rpartition(" (")[2].removesuffix(")")
    return message if names[0] == "java.io.IOException" else ""
