"""What writes the rows of a pipeline: opened from the sink's definition, closed when the attempt ends.

A sink is a value; connections, caches and what was learned of the target live here. An author of a sink
writes `write`, and overrides the rest where the target can do more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple

from typing_extensions import Self, TypeVar

from penstock.errors import ConfigError
from penstock.pipeline.batch import Batch, Delivery, LastWrite, is_repetition
from penstock.pipeline.source_log import Partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from penstock.config import Connection
    from penstock.pipeline.component import Sink

S_co = TypeVar("S_co", bound="Sink", covariant=True, default="Sink")


@dataclass(frozen=True)
class Opening:
    """What a sink is opened with."""

    spark: SparkSession
    pipeline: str
    connection: Connection
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    # The partitions that the source has now, where the engine knows them.
    partitions: tuple[Partition, ...] = ()


class RefusedRow(NamedTuple):
    """A row that the target refused by itself, by the record that it was made of, and the reason."""

    topic: str
    partition: int
    offset: int
    error_type: str
    error: str


class Writer(ABC, Generic[S_co]):
    """Writes the rows of one pipeline to the target of a sink."""

    def __init__(self, sink: S_co, opening: Opening) -> None:
        self.sink = sink
        self.opening = opening

    def prepare(self, schema: StructType) -> None:
        """Make the target ready for rows of this schema, or fail now, before any record is read."""

    def last_write(self) -> LastWrite | None:
        """Return the newest write of the pipeline that the target knows; None where there is none.

        A sink that promises exactly-once answers from the target itself, never from memory. It is
        asked before the target is prepared, too: a target that does not exist has no write.
        """
        return None

    def has(self, batch: Batch) -> bool:
        """Return whether the target has this very write already, by an earlier run of the same batch.

        Raises
        ------
        FencedError
            When the target knows a later epoch.
        """
        known = self.last_write()
        return known is not None and is_repetition(known.mark, batch.mark, batch.pipeline)

    def claim(self, _epoch: int, _continues: Container[int] = ()) -> LastWrite | None:
        """Make `epoch` the newest one of the pipeline, and return the last write before it.

        It may be another number of an epoch that goes on in a new process: `continues` has the earlier
        ones. A write of those becomes the last write of the new number, so that a batch that was
        written is known as a repetition.

        From here on the target refuses writes of earlier epochs with FencedError. Called after
        `prepare`, before the first batch of a new epoch, and before the engine decides where to
        start. The ranges of the last write stay known.

        Raises
        ------
        FencedError
            When the target knows this epoch already, or a later one.
        """
        return self.last_write()

    @abstractmethod
    def write(self, batch: Batch) -> Sequence[RefusedRow] | None:
        """Write the rows; return only when they are safe.

        The first Spark action reads all rows: records are counted as they pass by, and those behind the
        last row that it reads would not be.

        A sink that `names_refused` rows returns those that the target refused, if there are any: all
        others are written.

        Raises
        ------
        FencedError
            When the target knows a later epoch: another process runs this pipeline.
        TransientError
            When the target is unavailable: the batch is run again later.
        RefusedError
            When the target refuses some row for what is in it: the batch is split to find it.
        """

    def maintain(self, batch: Batch) -> None:
        """Do what is due between two batches, such as joining small files; `batch` was the last one."""

    def read_back(self, _schema: StructType) -> DataFrame | None:
        """Return the rows of the target, None before its first write: dead letters are read back.

        `schema` has the columns that are asked for.
        """
        raise ConfigError(
            f"rows that the sink {self.sink.name!r} wrote cannot be read back; dead letters that shall "
            "be listed and replayed go to a topic, files, delta, iceberg or database"
        )

    def stream_writer(self, _rows: DataFrame) -> DataStreamWriter:
        """Return Spark's writer of a stream, where the sink's `in_real_time` says that it has one."""
        raise ConfigError(f"the sink {self.sink.name!r} cannot be written to record by record")

    def close(self) -> None:
        """Release connections; the writer is not used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
