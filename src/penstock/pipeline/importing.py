"""What an import is: a source that is not Kafka. Its records go into a topic, and are read from there.

A system is read in *parts* (tables, files, queues): what one task reads at a time, each with a position
of its own. The position is written in the transaction of the records that were read up to it, so a part
goes on after exactly the last record that is in the topic, whatever ended the process before.

The author of an import writes three small classes: the `Import` with its options, a `System` that finds
the parts which have something, and a `Part` that reads.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pydantic import AliasChoices, Field, field_validator
from typing_extensions import Self

from penstock.errors import PenstockError, TransientError
from penstock.pipeline.batch import Delivery
from penstock.pipeline.component import Reading, Source
from penstock.pipeline.registry import component
from penstock.pipeline.source_log import Offsets, Partition, SourceLog
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.config import Connection
    from penstock.kafka.producing.copies import Copies
    from penstock.kafka.producing.plain_records import PlainRecords

Place = dict[str, Any]
"""Which part of a system it is: plain values, as Kafka Connect's source partition."""
Position = dict[str, Any]
"""How far a part was read: plain values, as Kafka Connect's source offset."""
POSITIONS = "penstock-positions"
"""The topic of the positions of all imports."""
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class UnreadableError(TransientError):
    """Something that an operator must make readable: waited for, unless only a backlog is processed."""


@dataclass(frozen=True)
class BadRecord:
    """What was read and cannot be a record: it goes to the dead letters, with the reason."""

    value: bytes | None
    error: str
    error_type: str = "ValueError"
    key: bytes | None = None


@dataclass(frozen=True)
class Portion:
    """Some of a part's records in their order, and the position after them.

    The columns of `records`: `value` (bytes) and, where a system has them, `key` (bytes), `headers`,
    `timestamp` (milliseconds since 1970), `partition`, `topic`. Values and keys alone need no columns,
    and neither do the `Copies` of records that come from Kafka itself.

    `may_end` is False where reading cannot go on after exactly these records: the next portion is in the
    same transaction, however long that takes.
    """

    records: pa.RecordBatch | PlainRecords | Copies
    position: Position
    bad: tuple[BadRecord, ...] = ()
    may_end: bool = True

    @classmethod
    def of(
        cls,
        values: Sequence[bytes | None],
        position: Position,
        keys: Sequence[bytes | None] | None = None,
        bad: Sequence[BadRecord] = (),
    ) -> Portion:
        """Return records of these values and keys.

        >>> Portion.of([b"1", b"2"], {"line": 2}).records.num_rows
        2
        """
        from penstock.kafka.producing.plain_records import PlainRecords  # noqa: PLC0415 - a slow import

        return cls(PlainRecords(values, keys), position, tuple(bad))


class Reader(ABC):
    """A part that is open for reading, in a task."""

    @abstractmethod
    def take(self, most: int) -> Iterator[Portion]:
        """Yield what comes next, at most about that many records; nothing when there is no more now."""

    def settle(self) -> None:  # noqa: B027 - most systems want nothing
        """Tell the system that Kafka has everything that was taken; called after each transaction."""


class Part(ABC):
    """Something that one task reads at a time. It is sent there: keep it small, without connections."""

    @property
    @abstractmethod
    def place(self) -> Place:
        """Return what distinguishes this part from all others of its system, also after a restart."""

    @property
    def names(self) -> Mapping[str, str]:
        """Return the names that a topic's template may use."""
        return {}

    @property
    def producer(self) -> Mapping[str, Any]:
        """Return settings of librdkafka that the producer of its records needs."""
        return {}

    @abstractmethod
    def open(self, position: Position | None) -> AbstractContextManager[Reader]:
        """Connect, to read on after this position; None for a part that was never read."""


class System(ABC):
    """A system as the driver sees it: it asks what there is to read, and reads nothing itself."""

    @abstractmethod
    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the parts that have something to read; `positions` by `key_of(place)`.

        Cheap: a listing, a query for the newest row. A part that is returned in vain costs a task.
        """

    def close(self) -> None:  # noqa: B027 - most systems hold nothing
        """Close the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Import(Source):
    """The base of sources that are not Kafka."""

    # What it can promise for the records in its topic.
    delivers: ClassVar[frozenset[Delivery]] = frozenset(
        {Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE}
    )
    why_not: ClassVar[str] = "a position cannot be written before its records"
    # The names in its parts, for templates of topics.
    topic_names: ClassVar[frozenset[str]] = frozenset()

    topic: str = Field(
        default="",
        description="The topic that the records are imported into; default: that of the sink if nothing "
        "else happens to them, otherwise `<pipeline>.in`.",
    )
    tasks_max: int = Field(
        default=4,
        ge=1,
        validation_alias=AliasChoices("tasks_max", "tasks.max"),
        description="The most parts that are read at the same time.",
    )
    poll: Duration = Field(
        default=5.0,
        gt=0,
        description="How long to wait before asking again when nothing was there.",
    )
    max_records: int = Field(
        default=20_000, ge=1, description="The most records of one transaction, about."
    )

    record_headers: bool = Field(
        default=False,
        description="Whether steps see the headers of records, in the column `headers`.",
    )
    max_records_per_batch: int | None = Field(
        default=None,
        ge=1,
        description="The most records that steps and sink take in one batch; default: as `kafka`.",
    )

    @field_validator("topic")
    @classmethod
    def _is_a_template(cls, given: str) -> str:
        return checked_template(given, cls.topic_names) if given else given

    @abstractmethod
    def system(self) -> System:
        """Return the system as the driver sees it; nothing is connected yet, or closed by `close`."""

    def system_for(self, name: str, target: Connection) -> System:  # noqa: ARG002 - of no use to most
        """Return the system for a pipeline of this name, whose records go to the cluster `target`."""
        return self.system()

    def topic_obstacle(self, topic: str, *, alone: bool) -> str | None:  # noqa: ARG002 - of no use to most
        """Return what is wrong with a template of topics; `alone`: no pipeline is behind the import."""
        return None

    def into(self, topic: str) -> Self:
        """Return the same import, into this topic."""
        return self.model_copy(update={"topic": topic})

    def topic_of(self, part: Part) -> str:
        """Return the topic that a part's records go to."""
        return filled(self.topic, part.names)

    def read_with_headers(self) -> Self:
        """Return the same import, whose topic is read with the headers of its records."""
        return self.model_copy(update={"record_headers": True})

    def with_batches_of(self, records: int) -> Self:
        """Return the same import, of whose topic one batch takes at most this many records."""
        return self.model_copy(update={"max_records_per_batch": records})

    # -- the topic, read as any other

    @property
    def _log_source(self) -> Source:
        fields = {name for _, name, _, _ in Formatter().parse(self.topic) if name}
        topics = {"pattern": _pattern(self.topic)} if fields else {"topics": [self.topic]}
        options: dict[str, Any] = {**topics, "headers": self.record_headers}
        if self.max_records_per_batch is not None:
            options["max_records_per_batch"] = self.max_records_per_batch
        return component("source", "kafka").model_validate(options)  # type: ignore[return-value]

    def real_time_obstacle(self) -> str | None:
        """Return what prevents real-time mode."""
        return "it is imported in rounds, not record by record"

    def open_log(self, connection: Connection, group: str, timeout: float = 10.0) -> SourceLog:
        """Connect to the topic."""
        return self._log_source.open_log(connection, group, timeout)

    def reads(self, topic: str) -> bool:
        """Return whether this is its topic."""
        return bool(self.topic) and self._log_source.reads(topic)

    def named_topics(self) -> list[str]:
        """Return its topic."""
        return self._log_source.named_topics() if self.topic else []

    def topic_pattern(self) -> str | None:
        """Return the pattern of its topics' names, where parts have topics of their own."""
        return self._log_source.topic_pattern() if self.topic else None

    @property
    def may_skip(self) -> bool:
        """Return False: what was removed before it was read is lost."""
        return False

    def partitions(self, log: SourceLog, *, is_known: bool) -> list[Partition]:
        """Return the partitions of the topic."""
        return self._log_source.partitions(log, is_known=is_known)

    def first_offsets(self, log: SourceLog, partitions: list[Partition]) -> Offsets:
        """Return where to start: at the first record."""
        return self._log_source.first_offsets(log, partitions)

    def read(self, reading: Reading) -> DataFrame:
        """Return the records of the topic."""
        return self._log_source.read(reading)

    def read_range(self, reading: Reading, end: Offsets) -> DataFrame:
        """Return records of the topic once more."""
        return self._log_source.read_range(reading, end)

    def with_headers(self) -> Source:
        """Return what reads the topic with its headers."""
        return self._log_source.with_headers()


class Counted(NamedTuple):
    """What a listener has done since it was asked last, and what prevents it from doing more."""

    records: int
    error: PenstockError | None = None


class Listener(ABC):
    """A listener that is open, in the driver's process: others send it records."""

    @abstractmethod
    def start(self) -> None:
        """Listen from now on; raise where that is not possible."""

    @abstractmethod
    def counted(self) -> Counted:
        """Return what was done since the last call."""

    @abstractmethod
    def close(self) -> None:
        """Take nothing more; what was taken is in the topic when this returns, or was refused."""


class ListeningImport(Import):
    """The base of imports that others send records to: they run in the driver's process, not in tasks.

    A record is acknowledged to its sender when it is in the topic, so that there is no position.
    """

    delivers: ClassVar[frozenset[Delivery]] = frozenset({Delivery.AT_LEAST_ONCE})
    why_not: ClassVar[str] = "a sender that gets no reply sends its records again"
    poll: Duration = Field(default=0.5, gt=0, description="How often records are counted.")

    @abstractmethod
    def listener(self, connection: Connection, is_full: Callable[[], bool]) -> Listener:
        """Return the listener; while `is_full` it refuses records for now."""

    @abstractmethod
    def topics(self) -> list[str]:
        """Return the topics that it writes to."""

    def system(self) -> System:
        """Return nothing to ask."""
        return NoSystem()


class NoSystem(System):
    """What a listener reads: nothing."""

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:  # noqa: ARG002
        """Return nothing."""
        return []


def key_of(place: Place) -> str:
    """Return the text under which a part's position is known: its place, in one order.

    >>> key_of({"table": "orders", "schema": "public"})
    '{"schema":"public","table":"orders"}'
    """
    return json.dumps(place, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def checked_template(given: str, allowed: frozenset[str]) -> str:
    """Return a template of topic names, or raise what is wrong with it.

    >>> checked_template("shop.{table}", frozenset({"table"}))
    'shop.{table}'
    >>> checked_template("shop.{tabel}", frozenset({"table"}))
    Traceback (most recent call last):
    ValueError: a topic cannot have {tabel} in its name here; allowed: {table}
    """
    try:
        parts = [*Formatter().parse(given)]
    except ValueError as error:
        raise ValueError(f"{given!r} is not a name with fields in braces: {error}") from None
    fields = [name for _, name, _, _ in parts if name is not None]
    for name in fields:
        if name not in allowed:
            known = ", ".join(f"{{{each}}}" for each in sorted(allowed)) or "none"
            raise ValueError(f"a topic cannot have {{{name}}} in its name here; allowed: {known}")
    fixed = "".join(text for text, _, _, _ in parts)
    if not _TOPIC.fullmatch(fixed or "x"):
        raise ValueError(
            f"{given!r} cannot be a topic; allowed: letters, digits, dot, dash and underscore"
        )
    return given


def filled(template: str, names: Mapping[str, str]) -> str:
    """Return the topic of a template; letters that a topic cannot have become dashes.

    >>> filled("shop.{table}", {"table": "Order Lines"})
    'shop.Order-Lines'
    """
    allowed = {name: re.sub(r"[^A-Za-z0-9._-]", "-", value) for name, value in names.items()}
    return template.format_map(allowed)[:249]


def _pattern(template: str) -> str:
    parts = Formatter().parse(template)
    return "".join(re.escape(text) + (".+" if name else "") for text, name, _, _ in parts)
