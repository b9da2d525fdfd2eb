"""The same rows as JSON, Avro, Protobuf and JSON Schema into Parquet; Avro against hand-written Spark.

The hand-written job does what Spark's guide leaves to its reader: in each batch it finds the schema ids,
asks the registry for their schemas, and decodes each with `from_avro`.
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from bench.data import PARTITIONS, SCHEMA
from bench.data import trades as json_trades
from bench.harness import Result, Side, race
from bench.peers.jars import fetch
from penstock import Pipeline, start
from penstock.config import Connection
from penstock.embedded import SchemaRegistry
from penstock.engine import spark_session
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Registry
from penstock.kafka import Admin, Producer
from penstock.pipeline.definition import SparkOptions

_numbers = itertools.count()
_KINDS = {"id": "long", "symbol": "string", "price": "double", "size": "int", "side": "string"}
_PROTOBUF = {"long": 3, "string": 9, "double": 1, "int": 5}
_JSON = {"long": "integer", "string": "string", "double": "number", "int": "integer"}


def run(connection: Connection, rows: int, rounds: int) -> list[Result]:
    scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    with SchemaRegistry() as started:
        registry = Registry(started.url, timeout=30)
        encoders = _encoders(registry)
        for name, encode in encoders.items():
            _fill(connection, f"bench-{name}", rows, encode)
        conf = {"spark.jars": ",".join(map(str, fetch("spark-avro")))}
        spark_session(SparkOptions(conf=conf))
        sides = _Sides(connection, started.url, scratch)
        runs = [Side(name, rows, sides.ours(name, rows)) for name in encoders]
        runs.append(Side("from_avro by hand", rows, sides.by_hand(registry)))
        try:
            best = race("formats -> Parquet", runs, rounds)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return [
        Result("Avro -> Parquet, against JSON", rows, best["avro"], best["json"], 0.8),
        Result(
            "Avro -> Parquet, against from_avro", rows, best["avro"], best["from_avro by hand"], 1.0
        ),
        Result("Protobuf -> Parquet, against JSON", rows, best["protobuf"], best["json"]),
        Result("JSON Schema -> Parquet, against JSON", rows, best["json_schema"], best["json"]),
    ]


def _encoders(registry: Registry) -> dict[str, Callable[[dict[str, Any], str], bytes]]:
    fields = [{"name": name, "type": kind} for name, kind in _KINDS.items()]
    avro = Avro(registry, {"type": "record", "name": "Trade", "fields": fields})
    properties = {name: {"type": _JSON[kind]} for name, kind in _KINDS.items()}
    json_schema = JsonSchema(registry, {"type": "object", "properties": properties})
    message = _message()
    protobuf = Protobuf(registry, message)
    return {
        "json": lambda row, _: orjson.dumps(row),
        "avro": avro.encode,
        "protobuf": lambda row, topic: protobuf.encode(message(**row), topic),
        "json_schema": json_schema.encode,
    }


def _message() -> Any:
    file = FileDescriptorProto(name="bench.proto", package="bench", syntax="proto3")
    trade = file.message_type.add(name="Trade")
    for number, (name, kind) in enumerate(_KINDS.items(), start=1):
        type_: Any = _PROTOBUF[kind]
        trade.field.add(
            name=name, number=number, type=type_, label=FieldDescriptorProto.LABEL_OPTIONAL
        )
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("bench.Trade"))


def _fill(
    connection: Connection, topic: str, rows: int, encode: Callable[[dict[str, Any], str], bytes]
) -> None:
    trades = [encode(_row(trade), topic) for trade in json_trades(1000)]
    with Admin(connection) as admin:
        admin.create_topic(topic, PARTITIONS)
    with Producer(connection, **{"linger.ms": 50, "batch.size": 1_000_000}) as producer:
        for number in range(rows):
            producer.produce(topic, None, trades[number % 1000], partition=number % PARTITIONS)


def _row(trade: bytes) -> dict[str, Any]:
    row = json.loads(trade)
    return {name: row[name] for name in _KINDS}


class _Sides:
    def __init__(self, connection: Connection, registry: str, scratch: Path) -> None:
        self.connection = connection
        self.registry = registry
        self.scratch = scratch

    def ours(self, name: str, rows: int) -> Callable[[], None]:
        options: Any = {"schema": SCHEMA} if name == "json" else {"registry": self.registry}

        def once() -> None:
            number = next(_numbers)
            path = str(self.scratch / f"ours-{number}")
            pipeline = Pipeline(
                name=f"bench-formats-{number}",
                connection=self.connection,
                source={"kafka": f"bench-{name}"},
                decode={name: options},
                sink={"files": path},
                state=str(self.scratch / "state"),
            )
            with start(pipeline, once=True) as running:
                running.wait()
                assert running.progress().rows == rows, running.progress()
            shutil.rmtree(path, ignore_errors=True)

        return once

    def by_hand(self, registry: Registry) -> Callable[[], None]:
        def once() -> None:
            path = str(self.scratch / f"raw-{next(_numbers)}")
            reader = spark_session().readStream.format("kafka").options(**self.connection.spark())
            records = reader.option("subscribe", "bench-avro").option("startingOffsets", "earliest")
            writer = records.load().writeStream.option("checkpointLocation", f"{path}-checkpoint")

            def write(batch: DataFrame, _number: int) -> None:
                _write_avro(batch, registry, path)

            writer.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
            shutil.rmtree(path, ignore_errors=True)

        return once


def _write_avro(batch: DataFrame, registry: Registry, path: str) -> None:
    ids = f.expr("conv(hex(substring(value, 2, 4)), 16, 10)")
    for (found,) in batch.select(ids).distinct().collect():
        schema = registry.schema(int(found))
        row = from_avro(f.expr("substring(value, 6)"), schema.text).alias("row")
        rows = batch.where(ids == found).select(row).select("row.*")
        rows.write.mode("append").parquet(path)
