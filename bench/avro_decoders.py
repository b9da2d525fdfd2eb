"""How fast are Avro bodies read into Arrow rows: Penstock's columnar reader against what else there is.

Alternating, best of N, in one run: `python -m bench.avro_decoders [--rounds N] [--spark --jar FILE]`.
The same rows as JSON go through the JSON kernel. The time is the processor time of this process: on a
busy machine it is the one to trust. With `--spark` Spark's own `from_avro` is compared in Spark.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from bench.json_decoders import SYMBOLS, best_of, discard, show, spark
from penstock.decode.kernels.avro.avro_kernel import AvroBodies
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.formats.avro.avro_primitives import Body
from penstock.formats.avro.avro_reader import Readers
from penstock.formats.avro.avro_schema import Parsed
from penstock.formats.registry import Registry, Schema

ROWS = 8192
START = datetime(2024, 1, 1, tzinfo=timezone.utc)
Row = dict[str, Any]


def field(name: str, type_: Any) -> Row:
    return {"name": name, "type": type_}


def record(name: str, *fields: Row) -> Row:
    return {"type": "record", "name": name, "fields": list(fields)}


TIME = {"type": "long", "logicalType": "timestamp-micros"}
SCHEMAS = {
    "flat": record(
        "Trade",
        field("symbol", "string"),
        field("price", "double"),
        field("size", "long"),
        field("time", TIME),
        field("side", {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}),
        field("note", ["null", "string"]),
    ),
    "nested": record(
        "Quote",
        field("symbol", "string"),
        field("time", TIME),
        field("quote", record("Prices", field("bid", "double"), field("ask", "double"))),
        field(
            "legs",
            {"type": "array", "items": record("Leg", field("id", "long"), field("px", "double"))},
        ),
        field("tags", {"type": "array", "items": "string"}),
    ),
}


def flat(i: int) -> Row:
    return {
        "symbol": random.choice(SYMBOLS),
        "price": round(random.uniform(1, 1000), 2),
        "size": random.randrange(1, 1000),
        "time": START + timedelta(microseconds=1357 * i),
        "side": random.choice(["BUY", "SELL"]),
        "note": None if i % 3 else f"note {i}",
    }


def nested(i: int) -> Row:
    return {
        "symbol": random.choice(SYMBOLS),
        "time": START + timedelta(microseconds=1357 * i),
        "quote": {"bid": i + 0.5, "ask": i + 1.5},
        "legs": [{"id": i + at, "px": at * 1.25} for at in range(i % 4)],
        "tags": ["a", f"b{i % 10}"],
    }


RECORDS = {"flat": flat, "nested": nested}


def bodies_of(shape: str, rows: list[Row]) -> pa.Array:
    schema = fastavro.parse_schema(SCHEMAS[shape])
    bodies = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        bodies.append(out.getvalue())
    return pa.array(bodies, pa.binary())


def json_of(rows: list[Row]) -> pa.Array:
    texts = [json.dumps(row, default=datetime.isoformat).encode() for row in rows]
    return pa.array(texts, pa.binary())


def kernel(shape: str) -> AvroBodies:
    parsed = Parsed(Schema(json.dumps(SCHEMAS[shape]), "AVRO"), Registry("http://none"))
    return AvroBodies(parsed, parsed)


def fastavro_rows(shape: str, columns: pa.Schema) -> Callable[[pa.Array], pa.Table]:
    schema = fastavro.parse_schema(SCHEMAS[shape])

    def decode(bodies: pa.Array) -> pa.Table:
        rows = [fastavro.schemaless_reader(io.BytesIO(b), schema) for b in bodies.to_pylist()]
        return pa.Table.from_pylist(rows, schema=columns)

    return decode


def single_rows(shape: str, columns: pa.Schema) -> Callable[[pa.Array], pa.Table]:
    parsed = Parsed(Schema(json.dumps(SCHEMAS[shape]), "AVRO"), Registry("http://none"))
    read = Readers(parsed.names, parsed.names).make(parsed.root, parsed.root)

    def decode(bodies: pa.Array) -> pa.Table:
        rows = [read(Body.of(body), 0)[0] for body in bodies.to_pylist()]
        return pa.Table.from_pylist(rows, schema=columns)

    return decode


def in_process(shape: str, rounds: int) -> None:
    rows = [RECORDS[shape](i) for i in range(ROWS)]
    bodies, texts = bodies_of(shape, rows), json_of(rows)
    own = kernel(shape)
    columns, json_kernel = own.arrow_schema, JsonKernel(own.schema)
    by_fastavro, by_one = fastavro_rows(shape, columns), single_rows(shape, columns)
    damaged = pa.array(
        [body[:5] if at % 1000 == 7 else body for at, body in enumerate(bodies.to_pylist())]
    )
    cases: dict[str, Callable[[], Any]] = {
        "columnar": lambda: own(bodies)[0],
        "JSON kernel, as JSON": lambda: json_kernel.decode(texts)[0],
        "fastavro": lambda: by_fastavro(bodies),
        "client's reader": lambda: by_one(bodies),
    }
    for name, run in cases.items():
        assert run().to_pylist() == rows, name
    cases["columnar, 1/1000 cut"] = lambda: own(damaged)
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, run in cases.items():
            for _ in range(10 if name.startswith("columnar") else 1):
                began = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - began)
    print(f"\n{shape}, {bodies.nbytes // ROWS} bytes a row as Avro, {texts.nbytes // ROWS} as JSON")
    for name, seconds in sorted(best.items(), key=lambda item: item[1]):
        ratio = best["JSON kernel, as JSON"] / seconds
        print(f"{name:24}{ROWS / seconds / 1000:10.0f} k rows/s{ratio:8.2f}", flush=True)


def in_spark(shape: str, rows: int, rounds: int, jar: str) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    text, own = json.dumps(SCHEMAS[shape]), kernel(shape)
    ddl = own.schema.ddl().replace(" not null", "")

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = kernel(shape)
        for batch in batches:
            yield reader(batch.column(0))[0]

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jar} pyspark-shell"
        session = spark()
        few = bodies_of(shape, [RECORDS[shape](i) for i in range(50_000)])
        for part in range(rows // len(few)):
            pq.write_table(pa.table({"value": few}), Path(folder) / f"{part}.parquet")
        frame = session.read.parquet(folder)
        parsed = frame.select(from_avro(f.col("value"), text, {"mode": "FAILFAST"}).alias("row"))
        mapped = frame.mapInArrow(decode, ddl)
        cases = {
            "from_avro": lambda: discard(parsed.select("row.*")),
            "columnar": lambda: discard(mapped),
        }
        best_of(1, cases)
        show(f"Spark local[2], {shape}, {rows} rows", best_of(rounds, cases), rows, "from_avro")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=8)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--spark", action="store_true")
    options.add_argument("--jar", default="", help="the file of org.apache.spark:spark-avro_2.13")
    given = options.parse_args()
    for shape in SCHEMAS:
        in_process(shape, given.rounds)
    for shape in SCHEMAS if given.spark else ():
        in_spark(shape, given.rows, given.rounds, given.jar)


if __name__ == "__main__":
    main()
