"""What every part of a pipeline is: one pydantic model that describes its options and does the work.

Reading, checking, documentation and the editor's JSON schema all come from the model's fields; the one
method of each kind is what the engine calls. Authors of components import this file, never the engine.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.config import Connection

Partition = tuple[str, int]
Offsets = dict[Partition, int]

# The column a decode adds: null where the record decoded, a fingerprint of its bytes where it did not.
FAILED = "_penstock_failed"
# The columns that tell of which record a row was made, where that is asked for.
ORIGIN = ("_penstock_topic", "_penstock_partition", "_penstock_offset")


class Delivery(str, Enum):
    """What is promised about each record when processes die."""

    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True)
class Reading:
    """What a source is given to read with."""

    spark: SparkSession
    connection: Connection
    start: Offsets
    # One by one, as they come. There are no batches then at whose ends the engine could look.
    in_real_time: bool = False


@dataclass(frozen=True)
class Opening:
    """What a sink is told before the first record is read."""

    spark: SparkSession
    schema: StructType
    pipeline: str
    connection: Connection
    delivery: Delivery = Delivery.AT_LEAST_ONCE


class Mark(NamedTuple):
    """The place of one write in its pipeline's life; a later write has a greater one."""

    epoch: int
    batch: int
    part: int


@dataclass(frozen=True)
class Batch:
    """One hand-over: rows, and exactly which records of the source they came from.

    A batch in which something is refused is written in parts, one after the other, each a hand-over.
    """

    rows: DataFrame
    pipeline: str
    epoch: int
    id: int
    connection: Connection
    ranges: dict[Partition, tuple[int, int]] = field(default_factory=dict)
    # The first one since the start: an earlier process may have written it, in part or as a whole.
    may_repeat: bool = True
    part: int = 0
    delivery: Delivery = Delivery.AT_LEAST_ONCE

    @property
    def mark(self) -> Mark:
        """What a sink keeps with the rows: it has this write if its mark is as great or greater."""
        return Mark(self.epoch, self.id, self.part)

    @property
    def label(self) -> str:
        """The batch's own name: the same when it is run again, and no other batch has it."""
        # A sign that no pipeline's name can have, so that none is the beginning of another.
        return "~".join((self.pipeline, *map(str, self.mark)))

    @property
    def records(self) -> int:
        """How many offsets the batch spans, dropped and filtered records included."""
        return sum(end - start for start, end in self.ranges.values())


class Component(BaseModel):
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
        """Say what is in the way of real-time mode, None where nothing is."""
        return "it cannot be read record by record"

    @abstractmethod
    def read(self, reading: Reading) -> DataFrame:
        """Return the records as a streaming DataFrame with the record columns."""


class Decode(Component):
    """Bytes to rows, or an error per record."""

    kind = "decode"
    # Whether it can be part of a stream in real-time mode: in Java, and with no bad record to put aside.
    in_real_time: ClassVar[bool] = False

    @abstractmethod
    def decode(self, records: DataFrame) -> DataFrame:
        """Return the rows, with FAILED null; a record that is bad is one row with FAILED set."""

    @abstractmethod
    def failures(self, records: DataFrame) -> DataFrame:
        """Return the records that are bad, whole, with the columns `error_type` and `error`."""

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

    @abstractmethod
    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the rows in their new shape."""

    @property
    def is_stale(self) -> bool:
        """Whether something that it read at the start is to be read again."""
        return False

    def mixes(self) -> str | None:
        """Say what in it looks at more than one row at a time; None where nothing does."""
        return "it does not say that it takes each row by itself"

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return the rows as `apply` does, each with the ORIGIN of the row that it was made of."""
        return self.apply(rows)


EVERY_DELIVERY = frozenset(Delivery)


class Sink(Component):
    """Where rows go. The class docstring says what holds after a crash."""

    kind = "sink"
    delivers: ClassVar[frozenset[Delivery]] = frozenset(
        {Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE}
    )
    # Whether rows can be handed to it one by one, in real-time mode.
    in_real_time: ClassVar[bool] = False
    # What the refusal says where exactly-once is asked for and not among these.
    why_not: ClassVar[str] = "it has no atomic act that holds rows and progress together"
    # With which of them its tasks run Python: on a cluster they must have what this file imports.
    python_tasks: ClassVar[frozenset[Delivery]] = frozenset()

    def places(self) -> list[str]:
        """Return the folders and URIs that its tasks write to: every machine must see the same there."""
        return []

    def prepare(self, opening: Opening) -> None:
        """Make the target ready for rows of this schema, or fail now, before any record is read."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Write the rows; return only when they are safe.

        Raises
        ------
        TransientError
            When the target is away: the batch is run again later.
        RefusedError
            When the target refuses some row for what is in it: the batch is split to find it.
        """

    def read_back(self, _opening: Opening) -> DataFrame | None:
        """Return what the target holds now, None before its first write: dead letters are read back."""
        raise ConfigError(
            f"what the sink {self.name!r} was given cannot be read back; dead letters that shall be "
            "listed and replayed go to a topic, files, delta, iceberg or jdbc"
        )

    def lookup(self, _spark: SparkSession, _columns: StructType | None) -> DataFrame:
        """Return the table as it is now, whoever wrote it, for rows to be looked up in."""
        raise ConfigError(
            f"{self.name!r} is no table that rows can be looked up in; files, delta, iceberg and jdbc are"
        )

    def tidy(self, batch: Batch) -> None:
        """Do what is due between two batches, such as joining small files."""
