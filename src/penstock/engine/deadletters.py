"""Bad records, whole, with where they came from and what was wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructType

from penstock.engine.counting import Failures, counted, failures_in
from penstock.engine.splitting import Written
from penstock.errors import PenstockError, PipelineFailedError, TransientError
from penstock.kafka import Admin
from penstock.pipeline import FAILED, Batch, Decode, Opening, Pipeline, Sink
from penstock.sinks.kafka import KafkaSink, largest_record

if TYPE_CHECKING:
    from pyspark.sql import Column

    from penstock.config import Connection


# A dead letter's headers: its origin and its error.
_HEADERS = 65_536
# A table of dead letters: where a record came from, what was wrong with it, and the record as it was.
TABLE = (
    StructType()
    .add("pipeline", "string")
    .add("epoch", "integer")
    .add("batch", "long")
    .add("stage", "string")
    .add("topic", "string")
    .add("partition", "integer")
    .add("offset", "long")
    .add("timestamp", "timestamp")
    .add("error_type", "string")
    .add("error", "string")
    .add("key", "binary")
    .add("value", "binary")
    .add("headers", ArrayType(StructType().add("key", "string").add("value", "binary")))
)


def dead_letters_of(pipeline: str) -> str:
    """The name under which a pipeline's dead letters are written: their marks are their own.

    >>> dead_letters_of("orders")
    'orders.dead-letters'
    """
    return f"{pipeline}.dead-letters"


def write_dead_letters(
    records: DataFrame, decode: Decode, written: Written, batch: Batch, sink: Sink
) -> str:
    """Find the bad records of a batch once more and write them; return one of them as an example.

    Decoding must fail on the same records twice. If it does not, a record could be in neither place,
    so the batch fails instead, and is run again.
    """
    found = [*undecoded(records, decode, written.failures), *_refused(records, written)]
    seen = put_away(found, batch, sink)
    require_the_same(written.failures, seen)
    if seen["others"] != len(written.refused):
        raise PipelineFailedError(
            f"{len(written.refused)} records were refused and {seen['others']} of them are still in "
            "Kafka: the others were removed before they could be put away"
        )
    return str(seen["example"])


def put_away(found: Sequence[DataFrame], batch: Batch, sink: Sink) -> dict[str, Any]:
    """Write bad records to the dead letters; return their counts, and one of them as an example.

    `failed` and `fingerprint` are of those that did not decode, `others` counts all the rest.
    """
    seen = Observation()
    bad = reduce(DataFrame.unionByName, found).observe(
        seen,
        *failures_in(),
        f.count_if(f.col("stage") != "decode").alias("others"),
        f.first(f.concat_ws(": ", _place(), "error_type", "error")).alias("example"),
    )
    rows = _for_topic(bad, batch) if isinstance(sink, KafkaSink) else _for_table(bad, batch)
    target = _into_topic(sink, batch) if isinstance(sink, KafkaSink) else sink
    target.write(replace(batch, rows=rows, pipeline=dead_letters_of(batch.pipeline)))
    return counted(seen)


def undecoded(records: DataFrame, decode: Decode, failures: Failures) -> Iterator[DataFrame]:
    """Give the records that do not decode, where there are any."""
    if failures.count:
        yield decode.failures(records).withColumn("stage", f.lit("decode"))


def _refused(records: DataFrame, written: Written) -> Iterator[DataFrame]:
    if not written.refused:
        return
    refused = records.sparkSession.createDataFrame(
        list(written.refused),
        "topic string, partition int, offset long, stage string, error_type string, error string",
    )
    found = records.join(f.broadcast(refused), ["topic", "partition", "offset"])
    yield found.withColumn(FAILED, f.lit(None).cast("long"))


def require_the_same(failures: Failures, found: dict[str, Any]) -> None:
    """Refuse to go on if other records failed the second time than the first."""
    if Failures(found["failed"], found["fingerprint"]) != failures:
        raise PipelineFailedError(
            f"decoding is not repeatable: {failures.count} records failed the first time and "
            f"{found['failed']} the second; a parser must give the same result for the same record"
        )


def _place() -> Column:
    return f.concat_ws("-", f.col("topic"), f.col("partition"), f.col("offset"))


def _origin(batch: Batch) -> dict[str, Column]:
    return {
        "pipeline": f.lit(batch.pipeline.partition("~")[0]),
        "epoch": f.lit(batch.epoch),
        "batch": f.lit(batch.id).cast("long"),
        "stage": f.col("stage"),
        "topic": f.col("topic"),
        "partition": f.col("partition"),
        "offset": f.col("offset"),
        "timestamp": f.col("timestamp"),
        "error_type": f.col("error_type"),
        "error": f.col("error"),
    }


def _for_table(failed: DataFrame, batch: Batch) -> DataFrame:
    origin = [column.alias(name) for name, column in _origin(batch).items()]
    return failed.select(*origin, "key", "value", "headers")


def _for_topic(failed: DataFrame, batch: Batch) -> DataFrame:
    """Key, value and headers stay as they were; the origin is in headers of its own."""
    added = [
        f.struct(
            f.lit(f"penstock.{name}").alias("key"),
            _text(name, column).cast("binary").alias("value"),
        )
        for name, column in _origin(batch).items()
    ]
    own = f.coalesce(f.col("headers"), f.array().cast("array<struct<key:string,value:binary>>"))
    return failed.select("key", "value", f.concat(own, f.array(*added)).alias("headers"))


def _text(name: str, column: Column) -> Column:
    if name == "timestamp":
        return f.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    return column.cast("string")


def prepare_dead_letters(pipeline: Pipeline, opening: Opening, topics: Iterable[str]) -> None:
    """Make the place of dead letters ready for whatever these topics may have."""
    sink = pipeline.dead_letter_sink
    if isinstance(sink, KafkaSink):
        sink.columns.check(TABLE)
        sink.open(opening.connection, partial(_roomy, opening.connection, topics))
    else:
        sink.prepare(replace(opening, schema=TABLE, pipeline=dead_letters_of(pipeline.name)))


def _into_topic(sink: KafkaSink, batch: Batch) -> KafkaSink:
    """Return the sink that writes whole records, into a topic that is there."""
    whole = sink.model_copy(update={"key": "key", "value": "value", "headers": "headers"})
    topics = {topic for topic, _ in batch.ranges}
    whole.open(batch.connection, partial(_roomy, batch.connection, topics))
    return whole


def _roomy(connection: Connection, topics: Iterable[str]) -> dict[str, Any]:
    """How a topic must be made that takes what these topics take, and the headers beside it."""
    with Admin(connection) as admin:
        largest = max((_largest(admin, topic) for topic in topics), default=0)
    return {"max.message.bytes": largest + _HEADERS} if largest else {}


def _largest(admin: Admin, topic: str) -> int:
    try:
        return largest_record(admin, topic) or 0
    except TransientError:
        raise
    except PenstockError:
        return 0  # gone meanwhile, or this user may not see its settings
