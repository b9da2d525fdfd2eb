"""Every error that Penstock raises, in one tree. The command line's exit code hangs on the class.

PenstockError                 exit 1
├── ConfigError               exit 2   what the user wrote is wrong: key, value, file, definition
│   └── DefinitionError       exit 2   a pipeline definition, with every problem and its line
├── SetupError                exit 3   this machine lacks something: Java, a jar, a port, a writable path
│   └── MissingExtraError     exit 3   an optional part of the package is not installed
├── TransientError            exit 4   another system is away; the same call may work later
│   ├── BrokerUnavailableError exit 4
│   ├── QueueFullError        exit 4   more records are waiting to be sent than the queue takes
│   └── NoMessageError        exit 4   no record came in the time that was given
├── WakeupError               exit 1   another thread ended this wait, on purpose
├── TerminalError             exit 1   the work cannot go on, and trying again would not help
│   ├── PipelineFailedError   exit 1
│   │   └── DataLossError     exit 1   records were removed from Kafka before the pipeline read them
│   ├── FencedError           exit 1   another producer or member took this one's place
│   ├── AbortableError        exit 1   a transaction must be aborted; then the work may begin again
│   └── OffsetOutOfRangeError exit 1   the records at this offset are gone, or not there yet
└── RecordError               exit 1   one record is bad; its neighbours are not
    ├── FormatError           exit 1   a value that a format cannot write, or bytes that it cannot read
    └── RefusedError          exit 1   a step or a sink refuses a row for what is in it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches


class PenstockError(Exception):
    """The base of them all: catch this to catch everything that Penstock says."""

    exit_code = 1


class ConfigError(PenstockError):
    """What was written down is wrong; the message names what was given and what is allowed."""

    exit_code = 2


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a definition, and where it stands.

    >>> str(Problem(("steps", 0, "sql"), "is required", line=7))
    'line 7: steps[0].sql: is required'
    """

    path: tuple[str | int, ...]
    message: str
    line: int | None = None

    @property
    def where(self) -> str:
        """The place, written as a person would."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(parts).lstrip(".")

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        return ": ".join(part for part in (line, self.where, self.message) if part)


class DefinitionError(ConfigError):
    """A pipeline definition that cannot be run, with all its problems at once."""

    def __init__(self, problems: Sequence[Problem], origin: str = "pipeline") -> None:
        self.problems = list(problems)
        self.origin = origin
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{origin} is not a valid pipeline:\n{lines}")


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
    **dict.fromkeys(("fastavro", "google", "jsonschema", "referencing"), "registry"),
}


def missing_extra(
    missing: ModuleNotFoundError, needed_for: str, room: str | None = None
) -> Exception:
    """Return the error that names the extra to install, or the given one where none would help.

    `room` is the extra of a part of the package that needs more than the one missing module.

    >>> str(missing_extra(ModuleNotFoundError(name="pyspark.sql"), "a pipeline"))
    "a pipeline needs an extra: pip install 'penstock[spark]'"
    """
    extra = _EXTRA_OF.get((missing.name or "").partition(".")[0])
    return MissingExtraError(room or extra, needed_for) if extra else missing


class TransientError(PenstockError):
    """Another system is away or busy: the same call may work after `retry_after` seconds."""

    exit_code = 4

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BrokerUnavailableError(TransientError):
    """No broker of the connection answers."""


class QueueFullError(TransientError):
    """The local queue of a producer is full, and the brokers took nothing for a while."""


class NoMessageError(TransientError):
    """No record came in the time that was given."""


class WakeupError(PenstockError):
    """Another thread called `wakeup`: the wait that was going on ends here."""


class TerminalError(PenstockError):
    """The work cannot go on, and trying again would not help."""


class PipelineFailedError(TerminalError):
    """A pipeline stopped because of an error; the message is the reason."""


class DataLossError(PipelineFailedError):
    """Records were removed from Kafka before the pipeline read them, and it may not go on without."""


class FencedError(TerminalError):
    """Another producer or group member took this one's place: end this one, do not try again."""


class AbortableError(TerminalError):
    """The transaction must be aborted; after that the same work may begin again."""


class OffsetOutOfRangeError(TerminalError):
    """The records at this offset are gone, or not there yet, and no reset is allowed."""


class RecordError(PenstockError):
    """One record is bad: it does not decode, or does not fit."""


class FormatError(RecordError):
    """A value that a format cannot write, or bytes that it cannot read."""


class RefusedError(RecordError):
    """A step or a sink refuses some row for what is in it; the others are not to blame."""


def nearest(given: str, allowed: Sequence[str]) -> str:
    """Say what was probably meant.

    >>> nearest("bootstrap.server", ["bootstrap.servers", "client.id"])
    "did you mean 'bootstrap.servers'?"
    >>> nearest("zzz", ["a", "b"])
    'allowed: a, b'
    """
    if close := get_close_matches(given, allowed, n=1, cutoff=0.6):
        return f"did you mean {close[0]!r}?"
    return f"allowed: {', '.join(sorted(allowed))}"
