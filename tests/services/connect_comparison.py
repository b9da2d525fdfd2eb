"""Runs a chain of transforms in Spark and in Kafka's own classes, and compares each record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql import types as t
from tests.services.connect_cases import Sample
from tests.services.connect_payloads import EPOCH, MILLI, from_spark, to_spark
from tests.services.connect_transforms import ConnectTransforms

from penstock.connect.transforms.binding import bind
from penstock.formats.connect import Schema
from penstock.formats.connect.json_schemas import to_document
from penstock.steps.connect_transforms.binding import Bound
from penstock.steps.connect_transforms.spark_types import spark_type

ERROR = "error"
HEADERS = "array<struct<key:string,value:binary>>"


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
    return [ERROR if reply and ERROR in reply else reply for reply in replies]


def ours(spark: Any, config: dict[str, str], sample: Sample) -> list[Any]:
    """Return what Penstock makes of each record, in the same form."""
    bound = bind(config, sample.key, sample.value)
    frame = _frame(spark, sample)
    try:
        found = dict(_rows(bound, frame))
    except PySparkException:
        found = {}
        for n in range(len(sample.records)):
            try:
                found |= dict(_rows(bound, frame.filter(f.col("n") == n)))
            except PySparkException:
                found[n] = ERROR
    return [found.get(n) for n in range(len(sample.records))]


def same(theirs: Any, made: Any) -> bool:
    """Return whether two results are the same; a null of Connect has no schema, a column has one."""
    if not isinstance(theirs, dict) or not isinstance(made, dict):
        return bool(theirs == made)
    return (
        theirs["topic"] == made["topic"]
        and theirs["headers"] == made["headers"]
        and all(_same_part(theirs[part], made[part]) for part in ("key", "value"))
    )


def _same_part(theirs: dict[str, Any], made: dict[str, Any]) -> bool:
    if theirs.get("payload") is None and made["payload"] is None and "unwritten" not in theirs:
        return True
    return bool(_canonical(theirs) == _canonical(made))


def _canonical(document: Any) -> Any:
    """Return a document in which whole numbers are whole, and moments without a schema are texts."""
    if isinstance(document, dict):
        if [*document] == ["$moment"]:
            moment = EPOCH + document["$moment"] * MILLI
            return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{moment:%f}".rstrip("0").rstrip("."))
        return {key: _canonical(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_canonical(each) for each in document]
    if isinstance(document, float) and document.is_integer():
        return int(document)
    return document


def _document(payload: Any, schema: Schema | None) -> dict[str, Any]:
    return {"payload": payload} | ({"schema": to_document(schema)} if schema else {})


def _frame(spark: Any, sample: Sample) -> Any:
    fields = [t.StructField("n", t.IntegerType())]
    for name, kind in (("topic", "string"), ("partition", "int"), ("offset", "bigint")):
        fields.append(t.StructField(name, t._parse_datatype_string(kind)))
    fields.append(t.StructField("timestamp", t.TimestampType()))
    fields.append(t.StructField("headers", t._parse_datatype_string(HEADERS)))
    for name, schema in (("key", sample.key), ("value", sample.value)):
        fields.append(t.StructField(name, spark_type(schema) if schema else t.StringType()))
    frame = spark.createDataFrame(
        [_row(n, r, sample) for n, r in enumerate(sample.records)], t.StructType(fields)
    )
    for name, schema in (("key", sample.key), ("value", sample.value)):
        frame = frame if schema else frame.withColumn(name, f.parse_json(name))
    return frame


def _row(number: int, record: dict[str, Any], sample: Sample) -> tuple[Any, ...]:
    stamp = record["timestamp"]
    headers = [(k, None if v is None else v.encode()) for k, v in record["headers"]]
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
