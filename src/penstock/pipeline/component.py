"""What every part of a pipeline is: a pydantic model of its options with methods that the engine calls.

Reading, checking, documentation and the editor's JSON schema all come from the model's fields. A model is
a value: what a run holds is in a `Writer` (sinks) or a `BoundStep`. Authors of components import this
room, never the engine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pydantic import ConfigDict

from penstock.config.models import SafeModel
from penstock.errors import ConfigError
from penstock.pipeline.batch import Delivery
from penstock.pipeline.record_store import RecordStore
from penstock.pipeline.source_log import Offsets, Partition, SourceLog
from penstock.pipeline.writer import Opening, Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.config import Connection

T = TypeVar("T")
# The column a decode adds: null where the record decoded, a fingerprint of its bytes where it did not.
FAILED = "_penstock_failed"
# The columns that tell of which record a row was made, where that is asked for.
ORIGIN = ("_penstock_topic", "_penstock_partition", "_penstock_offset")


@dataclass(frozen=True)
class Reading:
    """What a source is given to read with."""

    spark: SparkSession
    connection: Connection
    start: Offsets
    # One by one, as they come. There are no batches then at whose ends the engine could look.
    in_real_time: bool = False


class Component(SafeModel):
    """The base of sources, decodes, steps and sinks."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, serialize_by_alias=True
    )

    kind: ClassVar[str]
    name: ClassVar[str]
    # The option that a bare value stands for: `sql: SELECT ...` is `sql: {query: SELECT ...}`.
    main_option: ClassVar[str | None] = None


class Source(Component):
    """Where records come from."""

    kind = "source"

    def real_time_obstacle(self) -> str | None:
        """Return what prevents real-time mode; None if nothing does."""
        return "it cannot be read record by record"

    @abstractmethod
    def open_log(self, connection: Connection, group: str, timeout: float = 10.0) -> SourceLog:
        """Connect to the log that it reads, for a group; each request takes `timeout` seconds at most."""

    @abstractmethod
    def reads(self, topic: str) -> bool:
        """Return whether this is one of its topics."""

    @abstractmethod
    def named_topics(self) -> list[str]:
        """Return the topics that it names; none if it reads topics that match a pattern."""

    def topic_pattern(self) -> str | None:
        """Return the pattern of its topics' names; None if it names them."""
        return None

    @property
    @abstractmethod
    def may_skip(self) -> bool:
        """Return whether records that were removed before they were read are skipped and counted."""

    @abstractmethod
    def partitions(self, log: SourceLog, *, is_known: bool) -> list[Partition]:
        """Return the partitions of its topics; `is_known` after the first start."""

    @abstractmethod
    def first_offsets(self, log: SourceLog, partitions: list[Partition]) -> Offsets:
        """Return where to start in partitions of which no offset is known."""

    @abstractmethod
    def read(self, reading: Reading) -> DataFrame:
        """Return the records as a streaming DataFrame with the record columns."""

    @abstractmethod
    def read_range(self, reading: Reading, end: Offsets) -> DataFrame:
        """Return the records from `reading.start` up to these offsets once more, as a batch."""

    @abstractmethod
    def with_headers(self) -> Source:
        """Return the same source, which reads the records' headers, too."""

    @property
    def longest_pause(self) -> float:
        """Return for how long an idle pipeline may wait before it looks for new records, in seconds."""
        return 2.0

    def own(self, by_partition: Mapping[Partition, T]) -> dict[Partition, T]:
        """Return what of this is about partitions of its topics."""
        return {where: what for where, what in by_partition.items() if self.reads(where[0])}


class Decode(Component):
    """Bytes to rows, or an error per record."""

    kind = "decode"
    # Whether it can be part of a stream in real-time mode: in Java, and with no bad record to put aside.
    in_real_time: ClassVar[bool] = False

    def placed(self, _source: Source, _connection: Connection) -> Decode:
        """Return the decode for this source of a cluster; one that looks at records there keeps both."""
        return self

    def bind(self, _topics: Sequence[str], _part: str = "value") -> Decode:
        """Return the decode as one attempt has it; one that reads a schema first returns a copy with it.

        `topics` are those that the source names; `part` is `key` for the decode of keys.
        """
        return self

    def identity(self) -> str:
        """Return a text that changes when other records could fail than before."""
        return f"{self.name}: {self.model_dump_json(by_alias=True, exclude_defaults=True)}"

    @abstractmethod
    def decode(self, records: DataFrame) -> DataFrame:
        """Return the rows, with FAILED null; a record that is bad is one row with FAILED set."""

    @abstractmethod
    def failures(self, records: DataFrame) -> DataFrame:
        """Return the records that are bad, whole, with the columns `error_type` and `error`."""

    @property
    def can_trace(self) -> bool:
        """Return whether it has a `traced` of its own."""
        return type(self).traced is not Decode.traced

    def traced(self, _records: DataFrame) -> DataFrame:
        """Return the rows as `decode` does, each with the columns of its ORIGIN."""
        raise ConfigError(
            f"the decode {self.name!r} cannot tell of which record a row was made, and a step that "
            "keeps state must know it of rows that come too late"
        )


class Step(Component):
    """Rows to rows."""

    kind = "step"
    # Whether it runs in Spark's own Java process, as a step must in real-time mode.
    in_java: ClassVar[bool] = False

    @property
    def traces_in_bulk(self) -> bool:
        """Return whether `traced` costs no more than `apply`: refused rows are found by it then."""
        return False

    def behind(self, _decode: Decode) -> Step:
        """Return the step as one attempt has it; one that needs the decode's schemas returns a copy."""
        return self

    def bind(self) -> BoundStep:
        """Return the step as a run has it; one that reads something first returns a class of its own."""
        return BoundStep(self)

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the transformed rows, using only the options."""
        raise NotImplementedError(f"the step {self.name!r} defines neither 'apply' nor 'bind'")

    def mixes(self) -> str | None:
        """Return what in it depends on more than one row; None if nothing does."""
        return "it does not declare that it processes rows independently"

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return the rows of `apply`, each with the ORIGIN of its input row."""
        return self.apply(rows)


class BoundStep:
    """A step in a run: caches the data that it read at the start, until it is stale."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the rows in their new shape."""
        return self.step.apply(rows)

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return the rows of `apply`, each with the ORIGIN of its input row."""
        return self.step.traced(rows)

    def is_stale(self) -> bool:
        """Return whether something that was read at the start is to be read again."""
        return False

    def close(self) -> None:
        """Release what was read; the step is not used afterwards."""


class Sink(Component):
    """Where rows go, and what the target can do; `open` returns what writes.

    The class docstring says what holds after a crash.
    """

    kind = "sink"
    delivers: ClassVar[frozenset[Delivery]] = frozenset(
        {Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE}
    )
    # Whether its writer returns the rows that the target refused, each by its record. Rows have the
    # columns of their ORIGIN then, wherever decode and steps can tell it.
    names_refused: ClassVar[bool] = False
    # Whether its writer has a `stream_writer`, for real-time mode.
    in_real_time: ClassVar[bool] = False
    # What the refusal says where exactly-once is asked for and not among these.
    why_not: ClassVar[str] = "it has no atomic act that holds rows and progress together"
    # Whether every target of it can store the character NUL in a text: PostgreSQL cannot.
    takes_nul: ClassVar[bool] = True
    # With which of them its tasks run Python: on a cluster they must have what this file imports.
    python_tasks: ClassVar[frozenset[Delivery]] = frozenset()
    # Whether what it writes is named by the batch's label with every delivery: epochs must differ then.
    names_by_label: ClassVar[bool] = False

    @property
    def stores_nothing(self) -> bool:
        """Return whether dead letters that go to it are kept nowhere, as a connector may want it."""
        return False

    def delivery_obstacle(self, delivery: Delivery) -> str | None:
        """Return why it cannot promise a delivery; None where it can."""
        return None if delivery in self.delivers else self.why_not

    def runs_python(self, delivery: Delivery) -> bool:
        """Return whether its tasks run Python with a delivery."""
        return delivery in self.python_tasks

    def storage_paths(self) -> list[str]:
        """Return the folders and URIs that its tasks write to: every machine must see the same there."""
        return []

    def record_store(self, _connection: Connection) -> RecordStore | None:
        """Return its target as a store of whole records, None where it stores rows of a table.

        `connection` is the cluster that the pipeline reads.
        """
        return None

    @abstractmethod
    def open(self, opening: Opening) -> Writer:
        """Return what writes the rows of one pipeline until it is closed."""

    def lookup(self, _spark: SparkSession, _columns: StructType | None) -> DataFrame:
        """Return the table as it is now, whoever wrote it, for rows to be looked up in."""
        raise ConfigError(
            f"{self.name!r} is not a table that rows can be looked up in; files, delta, iceberg and "
            "database are"
        )
