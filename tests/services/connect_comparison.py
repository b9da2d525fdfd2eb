"""Runs a chain of transforms in Spark and in Kafka's own classes, and compares each record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema
from tests.services.connect_cases import Sample
from tests.services.connect_payloads import (
    EPOCH,
    MILLI,
    from_spark,
    to_spark,
    with_singles,
)
from tests.services.connect_transforms import ConnectTransforms

from penstock.connect.transforms.binding import bind
from penstock.formats.connect import Schema
from penstock.formats.connect.json_schemas import from_document, to_document
from penstock.steps.connect_transforms.binding import Bound
from penstock.steps.connect_transforms.spark_types import spark_type

ERROR = "error"
NOT_TRIED = {ERROR: "not tried"}
"""Stands for a record that Kafka refuses and that was not run here: it is not counted as compared."""
_REST = "timestamp timestamp, headers array<struct<key:string,value:binary>>"


def real(service: ConnectTransforms, config: dict[str, str], sample: Sample) -> list[Any]:
    """Return what Kafka's classes make of each record: None where it is dropped, ERROR where refused."""
    records = [
        record
        | {
            "key": _document(record["key"], sample.key),
            "value": _document(record["value"], sample.value),
        }
        for record in sample.records
    ]
    replies = service.apply(config, records)
    if isinstance(replies, dict):
        raise ValueError(f"Connect refuses the configuration {config}: {replies}")
    return [{ERROR: reply[ERROR]} if reply and ERROR in reply else reply for reply in replies]


def ours(spark: Any, config: dict[str, str], sample: Sample, theirs: list[Any]) -> list[Any]:
    """Return what Penstock makes of each record, in the same form.

    Records that Kafka refuses are tried one by one, three at most: each is a query of its own.
    """
    bound = bind(config, sample.key, sample.value)
    frame = _frame(spark, sample)
    refused = [n for n, reply in enumerate(theirs) if reply and ERROR in reply]
    try:
        found = dict(_rows(bound, frame.filter(~f.col("n").isin(refused)) if refused else frame))
        tried = refused[:3]
    except PySparkException:
        found, tried = {}, [*range(len(theirs))]
    for n in tried:
        try:
            found |= dict(_rows(bound, frame.filter(f.col("n") == n)))
        except PySparkException:
            found[n] = {ERROR: "refused"}
    found |= {n: NOT_TRIED for n in refused if n not in tried}
    return [found.get(n) for n in range(len(theirs))]


def same(theirs: Any, made: Any) -> bool:
    """Return whether two results are the same; what comes of a null has no schema in Connect."""
    if theirs is None or made is None or ERROR in theirs or ERROR in made:
        return (theirs and [*theirs]) == (made and [*made])
    return (
        theirs["topic"] == made["topic"]
        and theirs["headers"] == made["headers"]
        and all(_same_part(theirs[part], made[part]) for part in ("key", "value"))
    )


def _same_part(theirs: dict[str, Any], made: dict[str, Any]) -> bool:
    if "unwritten" in theirs:
        return False
    if "schema" not in theirs:
        return bool(_canonical(theirs["payload"]) == _canonical(made["payload"]))
    payload = with_singles(theirs["payload"], from_document(theirs["schema"]))
    return bool(_canonical({**theirs, "payload": payload}) == _canonical(made))


def _canonical(document: Any) -> Any:
    """Return a document in which whole numbers are whole, and moments without a schema are texts."""
    if isinstance(document, dict):
        if [*document] == ["$moment"]:
            moment = EPOCH + document["$moment"] * MILLI
            return (
                f"{moment:%Y-%m-%d %H:%M:%S}" + f".{moment:%f}".rstrip("0").rstrip(".") + "+00:00"
            )
        return {key: _canonical(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_canonical(each) for each in document]
    if isinstance(document, float) and document.is_integer():
        return int(document)
    return document


def _document(payload: Any, schema: Schema | None) -> dict[str, Any]:
    return {"payload": payload} | ({"schema": to_document(schema)} if schema else {})


def _frame(spark: Any, sample: Sample) -> Any:
    """Return the records as a table that Spark has in its plan: a query of it starts no tasks."""
    kinds = [spark_type(s) if s else t.StringType() for s in (sample.key, sample.value)]
    fields = [
        *t._parse_datatype_string(f"n int, topic string, partition int, offset bigint, {_REST}"),
        *(t.StructField(name, kind) for name, kind in zip(("key", "value"), kinds, strict=True)),
    ]
    schema = to_arrow_schema(t.StructType(fields))
    rows = [_row(n, record, sample) for n, record in enumerate(sample.records)]
    columns = zip(*rows, strict=True)
    arrays = [pa.array([*c], field.type) for c, field in zip(columns, schema, strict=True)]
    frame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))
    for name, given in (("key", sample.key), ("value", sample.value)):
        frame = frame if given else frame.withColumn(name, f.parse_json(name))
    return frame


def _row(number: int, record: dict[str, Any], sample: Sample) -> tuple[Any, ...]:
    stamp = record["timestamp"]
    headers = [{"key": k, "value": None if v is None else v.encode()} for k, v in record["headers"]]
    parts = [
        to_spark(record[name], schema) if schema else _json(record[name])
        for name, schema in (("key", sample.key), ("value", sample.value))
    ]
    moment = None if stamp is None else EPOCH + timedelta(milliseconds=stamp)
    return (number, record["topic"], record["partition"], record["offset"], moment, headers, *parts)


def _json(payload: Any) -> str | None:
    return None if payload is None else json.dumps(payload)


def _rows(bound: Bound, frame: Any) -> Iterator[tuple[int, Any]]:
    made = bound.apply(frame)
    for name, schema in (("key", bound.key_schema), ("value", bound.value_schema)):
        made = made if schema else made.withColumn(name, f.to_json(name))
    for row in made.collect():
        yield (
            row["n"],
            {
                "topic": row["topic"],
                "headers": [
                    [k, None if v is None else bytes(v).decode()] for k, v in row["headers"]
                ],
                "key": _collected(row["key"], bound.key_schema),
                "value": _collected(row["value"], bound.value_schema),
            },
        )


def _collected(value: Any, schema: Schema | None) -> dict[str, Any]:
    if schema is None:
        return {"payload": None if value is None else json.loads(value)}
    return {"schema": to_document(schema), "payload": from_spark(value, schema)}
