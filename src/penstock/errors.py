"""Every error that Penstock raises, in one tree. The class determines the command line's exit code.

PenstockError                 exit 1
├── ConfigError               exit 2   invalid input: key, value, file, definition
│   ├── DefinitionError       exit 2   a pipeline definition, with every problem and its line
│   └── NotFoundError         exit 2   what was asked for by its name does not exist
├── SetupError                exit 3   this machine lacks something: Java, a jar, a port, a writable path
│   └── MissingExtraError     exit 3   an optional part of the package is not installed
├── TransientError            exit 4   another system is unavailable; the same call may work later
│   ├── BrokerUnavailableError exit 4
│   ├── GroupInUseError       exit 4   consumers are members of a group whose offsets are to be set
│   ├── QueueFullError        exit 4   the queue of records to be sent is full
│   ├── NoMessageError        exit 4   no record arrived within the timeout
│   └── SchemaChangedError    exit 4   records have a newer schema than the table: the next attempt has it
├── WakeupError               exit 1   another thread interrupted this call on purpose
├── TerminalError             exit 1   the work cannot continue, and a retry would not help
│   ├── PipelineFailedError   exit 1
│   │   └── DataLossError     exit 1   records were deleted from Kafka before the pipeline read them
│   ├── FencedError           exit 1   another producer or member took this one's place
│   ├── AbortableError        exit 1   a transaction must be aborted; then the work may start again
│   └── OffsetOutOfRangeError exit 1   the records at this offset were deleted, or do not exist yet
└── RecordError               exit 1   one record is bad; the others are not affected
    ├── FormatError           exit 1   a value that a format cannot encode, or bytes that it cannot decode
    └── RefusedError          exit 1   a step or a sink refuses a row because of its values
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches


class PenstockError(Exception):
    """The base class: catch this to catch every error of Penstock."""

    exit_code = 1


class ConfigError(PenstockError):
    """Invalid input; the message names what was given and what is allowed."""

    exit_code = 2


@dataclass(frozen=True)
class Problem:
    """One problem of a definition, and its location.

    >>> str(Problem(("steps", 0, "sql"), "is required", line=7))
    'line 7: steps[0].sql: is required'
    """

    path: tuple[str | int, ...]
    message: str
    line: int | None = None

    @property
    def where(self) -> str:
        """Return the location in a readable form."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(parts).lstrip(".")

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        return ": ".join(part for part in (line, self.where, self.message) if part)


class DefinitionError(ConfigError):
    """The definition of a pipeline or a flow that cannot be run, with all its problems at once."""

    def __init__(
        self, problems: Sequence[Problem], origin: str = "pipeline", what: str = "pipeline"
    ) -> None:
        self.problems = list(problems)
        self.origin = origin
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{origin} is not a valid {what}:\n{lines}")


class NotFoundError(ConfigError):
    """What was asked for by its name does not exist."""


class SetupError(PenstockError):
    """This machine lacks something; the message says what and how to get it."""

    exit_code = 3


class MissingExtraError(SetupError):
    """An optional part of the package is needed and not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs an extra: pip install 'penstock[{extra}]'")


_EXTRA_OF = {
    **dict.fromkeys(("pyspark", "pandas", "sqlglot"), "spark"),
    **dict.fromkeys(("pyarrow", "numpy"), "arrow"),
    **dict.fromkeys(("psycopg", "pymysql"), "databases"),
    "duckdb": "duckdb",
    "pika": "rabbitmq",
    **dict.fromkeys(("fastavro", "google", "jsonschema", "referencing"), "registry"),
}


def missing_extra(
    missing: ModuleNotFoundError, needed_for: str, subpackage_extra: str | None = None
) -> Exception:
    """Return the error that names the extra to install, or the given one if none would help.

    `subpackage_extra` is the extra of a subpackage that needs more than the one missing module.

    >>> str(missing_extra(ModuleNotFoundError(name="pyspark.sql"), "a pipeline"))
    "a pipeline needs an extra: pip install 'penstock[spark]'"
    """
    extra = _EXTRA_OF.get((missing.name or "").partition(".")[0])
    return MissingExtraError(subpackage_extra or extra, needed_for) if extra else missing


class TransientError(PenstockError):
    """Another system is unavailable or busy: the same call may work after `retry_after` seconds."""

    exit_code = 4

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BrokerUnavailableError(TransientError):
    """No broker of the connection responds."""


class GroupInUseError(TransientError):
    """The group has active members, so that only they may commit its offsets."""


class QueueFullError(TransientError):
    """The local queue of a producer is full, and the brokers accepted nothing for a while."""


class NoMessageError(TransientError):
    """No record arrived within the timeout."""


class SchemaChangedError(TransientError):
    """Records have a newer schema than the table: the next attempt has its columns."""


class WakeupError(PenstockError):
    """Another thread called `wakeup` and interrupted this call."""


class TerminalError(PenstockError):
    """The work cannot continue, and a retry would not help."""


class PipelineFailedError(TerminalError):
    """A pipeline stopped because of an error; the message is the reason."""


class DataLossError(PipelineFailedError):
    """Records were deleted from Kafka before the pipeline read them, and it may not skip them."""


class FencedError(TerminalError):
    """Another producer or group member took this one's place: stop this one, do not retry."""


class AbortableError(TerminalError):
    """The transaction must be aborted; after that the same work may start again."""


class OffsetOutOfRangeError(TerminalError):
    """The records at this offset were deleted, or do not exist yet, and no reset is allowed."""


class RecordError(PenstockError):
    """One record is bad: it does not decode, or does not fit."""


class FormatError(RecordError):
    """A value that a format cannot encode, or bytes that it cannot decode."""


class RefusedError(RecordError):
    """A step or a sink refuses a row because of its values; the other rows are not affected.

    `stage` says which of them: `step` or `write`.
    """

    def __init__(self, message: str, stage: str = "write") -> None:
        super().__init__(message)
        self.stage = stage


def nearest(given: str, allowed: Sequence[str]) -> str:
    """Return a hint at the name that was probably meant.

    >>> nearest("bootstrap.server", ["bootstrap.servers", "client.id"])
    "did you mean 'bootstrap.servers'?"
    >>> nearest("zzz", ["a", "b"])
    'allowed: a, b'
    """
    if close := get_close_matches(given, allowed, n=1, cutoff=0.6):
        return f"did you mean {close[0]!r}?"
    return f"allowed: {', '.join(sorted(allowed))}"
