"""Bad records, whole, with where they came from and what was wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructType

from penstock.engine.counting import Failures, Written, aggregated, counted, failures_in
from penstock.engine.stateful.plan import plan_of
from penstock.errors import PipelineFailedError
from penstock.pipeline import CLAIMED, FAILED, Batch, Decode, Pipeline, Ranges, Reading, Writer
from penstock.pipeline.derived_names import dead_letters_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from penstock.config import Connection


# A table of dead letters: where a record came from, what was wrong with it, and the record as it was.
TABLE = (
    StructType()
    .add("pipeline", "string")
    .add("epoch", "long")
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


def write_dead_letters(
    records: DataFrame, decode: Decode, written: Written, batch: Batch, writer: Writer
) -> str:
    """Find the bad records of a batch once more and write them; return the last one as an example.

    Decoding must fail on the same records twice. If it does not, a record could be in neither the
    table nor the dead letters, so the batch fails instead, and is run again.
    """
    bad = [*undecoded(records, decode, written.failures), *_refused(records, written)]
    seen = write_bad_records(bad, batch, writer)
    require_the_same(written.failures, seen)
    if seen["others"] != len(written.refused):
        raise PipelineFailedError(
            f"{len(written.refused)} records were refused and {seen['others']} of them are still in "
            "Kafka: the others were removed before they could be written to the dead letters"
        )
    return str(seen["example"])


def write_failures(records: DataFrame, decode: Decode, batch: Batch, writer: Writer) -> None:
    """Write the records that do not decode to the dead letters, if there are any."""
    (counts,) = decode.decode(records).agg(*failures_in()).collect()
    failures = Failures(counts["failed"], counts["fingerprint"])
    if failures.count:
        write_dead_letters(records, decode, Written(0, failures), batch, writer)


def finish_dead_letters(
    pipeline: Pipeline, reading: Reading, writer: Writer, epoch: int, ranges: Ranges
) -> None:
    """Read the records once more and write those that do not decode to the dead letters.

    The process that wrote the rows ended before it committed them, and its checkpoint is not known here.
    """
    plan = plan_of(pipeline)
    if plan.stream:
        return  # rows with state are made of many batches: a new epoch begins with empty state
    only = plan.branches[0]
    start = {place: begin for place, (begin, _) in ranges.items()}
    end = {place: end for place, (_, end) in ranges.items()}
    records = only.source.with_headers().read_range(replace(reading, start=start), end)
    batch = unfinished_batch(pipeline, epoch, ranges, records, reading.connection)
    write_failures(records, only.decode, batch, writer)


def unfinished_batch(
    pipeline: Pipeline, epoch: int, ranges: Ranges, records: DataFrame, connection: Connection
) -> Batch:
    """Return the batch under whose mark the dead letters are written: after the claim, before batch 0."""
    return Batch(
        rows=records,
        pipeline=pipeline.name,
        epoch=epoch,
        id=CLAIMED,
        part=1,  # the claim itself is part 0
        connection=connection,
        ranges=ranges,
        delivery=pipeline.delivery,
    )


def write_bad_records(parts: Sequence[DataFrame], batch: Batch, writer: Writer) -> dict[str, Any]:
    """Write bad records to the dead letters; return their counts, and the last one as an example.

    `failed` and `fingerprint` are of those that did not decode, `others` counts all the rest.
    """
    counts = [
        *failures_in(),
        f.count_if(f.col("stage") != "decode").alias("others"),
        # The last one in the order of offsets, however the records are spread over partitions.
        f.max_by(
            f.concat_ws(": ", _place(), "error_type", "error"),
            f.struct("offset", "topic", "partition"),
        ).alias("example"),
    ]
    seen, found = Observation(), reduce(DataFrame.unionByName, parts)
    bad = found.observe(seen, *counts)
    is_topic = writer.sink.record_store(batch.connection) is not None
    rows = _for_topic(bad, batch) if is_topic else _for_table(bad, batch, writer.sink.takes_nul)
    writer.write(replace(batch, rows=rows, pipeline=dead_letters_of(batch.pipeline)))
    return counted(seen) or aggregated(found, counts)


def undecoded(records: DataFrame, decode: Decode, failures: Failures) -> Iterator[DataFrame]:
    """Yield the records that do not decode, if there are any."""
    if failures.count:
        yield decode.failures(records).withColumn("stage", f.lit("decode"))


def _refused(records: DataFrame, written: Written) -> Iterator[DataFrame]:
    if not written.refused:
        return
    refused = records.sparkSession.createDataFrame(
        list(written.refused),
        "topic string, partition int, offset long, stage string, error_type string, error string",
    )
    joined = records.join(f.broadcast(refused), ["topic", "partition", "offset"])
    yield joined.withColumn(FAILED, f.lit(None).cast("long"))


def require_the_same(failures: Failures, second: dict[str, Any]) -> None:
    """Raise if other records failed the second time than the first."""
    if Failures(second["failed"], second["fingerprint"]) != failures:
        raise PipelineFailedError(
            f"decoding is not repeatable: {failures.count} records failed the first time and "
            f"{second['failed']} the second; a parser must give the same result for the same record"
        )


def _place() -> Column:
    return f.concat_ws("-", f.col("topic"), f.col("partition"), f.col("offset"))


def _origin(batch: Batch) -> dict[str, Column]:
    return {
        "pipeline": f.lit(batch.pipeline.partition("~")[0]),
        "epoch": f.lit(batch.epoch).cast("long"),
        "batch": f.lit(batch.id).cast("long"),
        "stage": f.col("stage"),
        "topic": f.col("topic"),
        "partition": f.col("partition"),
        "offset": f.col("offset"),
        "timestamp": f.col("timestamp"),
        "error_type": f.col("error_type"),
        "error": f.col("error"),
    }


def _for_table(failed: DataFrame, batch: Batch, takes_nul: bool) -> DataFrame:
    known = failed if takes_nul else _without_nul(failed)
    origin = [column.alias(name) for name, column in _origin(batch).items()]
    return known.select(*origin, "key", "value", "headers")


def _without_nul(failed: DataFrame) -> DataFrame:
    """Return records in whose texts the sign for NUL stands for NUL; bytes stay as they are."""

    def shown(text: Column) -> Column:
        return f.translate(text, "\x00", "\u2400")

    headers = f.transform(
        "headers", lambda x: f.struct(shown(x["key"]).alias("key"), x["value"].alias("value"))
    )
    texts = {name: shown(f.col(name)) for name in ("error_type", "error")}
    return failed.withColumns({**texts, "headers": headers})


def _for_topic(failed: DataFrame, batch: Batch) -> DataFrame:
    """Return the records with their key, value and headers, and with headers for the origin."""
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
    return _utc(column) if name == "timestamp" else column.cast("string")


def _utc(time: Column) -> Column:
    """Return a time as text in UTC: `date_format` would write it in the session's time zone."""
    since_1970 = f.make_dt_interval(secs=f.unix_seconds(time))
    second = f.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'") + since_1970
    day_and_time = f.replace(second.cast("string"), f.lit(" "), f.lit("T"))
    micros = f.pmod(f.unix_micros(time), f.lit(1_000_000))
    fraction = f.lpad(micros.cast("string"), 6, "0")
    return f.concat(day_and_time, f.lit("."), fraction, f.lit("Z"))
