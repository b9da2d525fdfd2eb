"""Which JSON decoder is fastest: Penstock's kernel against what else a good engineer would take.

Alternating, best of N, in one run: `python -m bench.json_decoders [--rows N] [--kernel-only]`.
Only Penstock's is strict; the others are measured as they come, so their figures flatter them.
In Spark the processor time of all processes is shown as well: on a busy machine it is the one to trust.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.pipeline.schema import Schema

Decode = Callable[[pa.Array], pa.RecordBatch]
SCHEMAS = {
    "flat": "symbol string not null, price double, size int, side string, ts timestamp, id bigint",
    "nested": "symbol string not null, ts timestamp, quote struct<bid: double, ask: double,"
    " sizes: array<int>>, legs array<struct<id: bigint, px: double>>, tags array<string>",
}
SYMBOLS = ["AAPL", "MSFT", "INTC", "NVDA", "GOOG"]


def flat(i: int) -> bytes:
    price, size = round(random.uniform(1, 1000), 2), random.randrange(1, 1000)
    return (
        f'{{"symbol":"{random.choice(SYMBOLS)}","price":{price},"size":{size},"side":"buy",'
        f'"ts":"2024-01-01T00:00:00.{i % 1000:03d}Z","id":{1_000_000 + i}}}'
    ).encode()


def nested(i: int) -> bytes:
    bid = round(random.uniform(1, 1000), 2)
    return (
        f'{{"symbol":"{random.choice(SYMBOLS)}","ts":"2024-01-01T00:00:00.{i % 1000:03d}Z",'
        f'"quote":{{"bid":{bid},"ask":{bid + 1},"sizes":[{i % 7},{i % 11},{i % 13}]}},'
        f'"legs":[{{"id":{i},"px":{bid}}},{{"id":{i + 1},"px":{bid}}}],"tags":["a","b{i % 10}"]}}'
    ).encode()


RECORDS = {"flat": flat, "nested": nested}


def with_text_times(schema: pa.Schema) -> pa.Schema:
    return schema.set(schema.get_field_index("ts"), pa.field("ts", pa.string()))


def with_times(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    at = schema.get_field_index("ts")
    times = batch.column(at).cast(schema.field(at).type)
    return batch.set_column(at, schema.field(at), times)


def penstock(schema: Schema) -> Decode:
    kernel = JsonKernel(schema)
    return lambda values: kernel.decode(values)[0]


def pyarrow_reader(schema: Schema) -> Decode:
    columns = pa.schema([f.with_nullable(True) for f in arrow_schema(schema)])
    parse = pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore")

    def decode(values: pa.Array) -> pa.RecordBatch:
        lines = pa.py_buffer(b"\n".join(values.to_pylist()))
        read = pj.ReadOptions(use_threads=False, block_size=lines.size + 1)
        table = pj.read_json(pa.BufferReader(lines), read_options=read, parse_options=parse)
        return table.combine_chunks().to_batches()[0]

    return decode


def msgspec_rows(schema: Schema) -> Decode:
    import msgspec

    columns = arrow_schema(schema)
    wire = with_text_times(columns)
    parse = msgspec.json.Decoder(typed("Row", wire)).decode

    def decode(values: pa.Array) -> pa.RecordBatch:
        rows = [parse(value) for value in values.to_pylist()]
        if any(pa.types.is_nested(field.type) for field in wire):
            batch = pa.RecordBatch.from_pylist(msgspec.to_builtins(rows), schema=wire)
        else:
            cells = [[getattr(row, name) for row in rows] for name in wire.names]
            arrays = [pa.array(found, field.type) for found, field in zip(cells, wire, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=wire)
        return with_times(batch, columns)

    return decode


def typed(name: str, fields: pa.Schema | pa.StructType) -> type:
    import msgspec

    kinds = [(field.name, python_type(field.type) | None, None) for field in fields]
    return msgspec.defstruct(name, kinds, gc=False)


def python_type(type_: pa.DataType) -> type:
    if pa.types.is_struct(type_):
        return typed("Inner", type_.fields)
    if pa.types.is_list(type_):
        return list[python_type(type_.value_type) | None]  # type: ignore[misc,return-value]
    if pa.types.is_integer(type_):
        return int
    return float if pa.types.is_floating(type_) else str


def orjson_rows(schema: Schema) -> Decode:
    import orjson

    columns = arrow_schema(schema)
    wire = with_text_times(columns)

    def decode(values: pa.Array) -> pa.RecordBatch:
        rows = [orjson.loads(value) for value in values.to_pylist()]
        return with_times(pa.RecordBatch.from_pylist(rows, schema=wire), columns)

    return decode


def polars_ndjson(schema: Schema) -> Decode:
    import polars as pl

    columns = arrow_schema(schema)
    wire = with_text_times(columns)
    types = pl.from_arrow(wire.empty_table()).schema

    def decode(values: pa.Array) -> pa.RecordBatch:
        frame = pl.read_ndjson(b"\n".join(values.to_pylist()), schema=types)
        table = frame.to_arrow().cast(wire).combine_chunks()
        return with_times(table.to_batches()[0], columns)

    return decode


DECODERS: dict[str, Callable[[Schema], Decode]] = {
    "penstock": penstock,
    "pyarrow reader": pyarrow_reader,
    "msgspec": msgspec_rows,
    "orjson": orjson_rows,
    "polars": polars_ndjson,
}


Times = dict[str, float]


def best_of(rounds: int, cases: dict[str, Callable[[], object]]) -> tuple[Times, Times]:
    """Run all cases in turn, `rounds` times; give the best time of each, and processor time."""
    clock, processor = (dict.fromkeys(cases, float("inf")) for _ in range(2))
    for _ in range(rounds):
        for name, run in cases.items():
            start, used = time.perf_counter(), processor_time()
            run()
            clock[name] = min(clock[name], time.perf_counter() - start)
            processor[name] = min(processor[name], processor_time() - used)
    return clock, processor


def processor_time() -> float:
    """Seconds that this process, Spark's JVM and its Python workers have computed."""
    own = psutil.Process()
    return sum(sum(process.cpu_times()) for process in [own, *own.children(recursive=True)])


def show(title: str, times: tuple[Times, Times], rows: int, base: str) -> None:
    clock, processor = times
    print(f"\n{title}\n{'':24}{'k rows/s':>10}{'ratio':>8}{'cpu us/row':>12}{'ratio':>8}")
    for name, seconds in sorted(clock.items(), key=lambda item: item[1]):
        print(f"{name:24}{rows / seconds / 1000:10.0f}{clock[base] / seconds:8.2f}", end="")
        used = max(processor[name], 1e-9)
        print(f"{used / rows * 1e6:12.2f}{processor[base] / used:8.2f}" if rows > 10_000 else "")
    sys.stdout.flush()


def kernel_level(shape: str, rounds: int) -> None:
    rows, schema = 10_000, Schema.parse(SCHEMAS[shape])
    records = [RECORDS[shape](i) for i in range(rows)]
    values = pa.array(records, pa.binary())
    cases: dict[str, Callable[[], object]] = {}
    for name, make in DECODERS.items():
        cases[name] = partial(make(schema), values)
    decode = penstock(schema)
    for name, bad in {
        "penstock, 1/1000 broken": b'{"symbol":1}',
        "penstock, 1/1000 no date": records[0].replace(b"2024-01", b"2024-13"),
    }.items():
        spoiled = pa.array(
            [bad if i % 1000 == 7 else r for i, r in enumerate(records)], pa.binary()
        )
        cases[name] = partial(decode, spoiled)
    size = sum(map(len, records)) // rows
    title = f"kernel, {shape} ({size} bytes), batches of {rows}; ratio to pyarrow's reader"
    show(title, best_of(rounds * 4, cases), rows, "pyarrow reader")


def in_spark(shape: str, rows: int, rounds: int) -> None:
    from pyspark.sql import functions as f

    text, schema = SCHEMAS[shape], Schema.parse(SCHEMAS[shape])
    with tempfile.TemporaryDirectory() as folder:
        session = spark()
        frame = session.read.parquet(written(folder, shape, rows))
        parsed = f.from_json(f.col("value").cast("string"), text, {"mode": "PERMISSIVE"})
        cases = {"from_json": lambda: discard(frame.select(parsed.alias("row")).select("row.*"))}
        for name, make in DECODERS.items():
            mapped = frame.mapInArrow(over_batches(make, schema), text.replace(" not null", ""))
            cases[name] = partial(discard, mapped)
        best_of(1, cases)
        title = f"Spark local[2], {shape}, {rows} rows to noop; ratio to from_json"
        show(title, best_of(rounds, cases), rows, "from_json")
        if shape == "flat":
            sizes = batch_sizes(session, cases["penstock"], rounds)
            show("penstock by maxRecordsPerBatch; ratio to 10000", sizes, rows, "10000")


def batch_sizes(session, run: Callable[[], object], rounds: int) -> tuple[Times, Times]:  # type: ignore[no-untyped-def]
    def sized(size: int) -> Callable[[], object]:
        def case() -> None:
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", size)
            run()

        return case

    return best_of(
        rounds, {str(n): sized(n) for n in (1000, 4096, 8192, 10000, 16384, 32768, 65536)}
    )


def over_batches(make: Callable[[Schema], Decode], schema: Schema):  # type: ignore[no-untyped-def]
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decode = make(schema)
        for batch in batches:
            yield decode(batch.column(0))

    return run


def discard(frame) -> None:  # type: ignore[no-untyped-def]
    frame.write.format("noop").mode("overwrite").save()


def written(folder: str, shape: str, rows: int) -> str:
    path = Path(folder) / "values"
    path.mkdir()
    for part in range(4):
        values = [RECORDS[shape](i) for i in range(rows // 4)]
        pq.write_table(pa.table({"value": pa.array(values, pa.binary())}), path / f"{part}.parquet")
    return str(path)


def spark():  # type: ignore[no-untyped-def]
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.files.maxPartitionBytes": "16m",
    }
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    return builder.getOrCreate()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--kernel-only", action="store_true")
    given = options.parse_args()
    # Spark keeps every core busy with a worker of its own: a second thread would be another's.
    os.environ["POLARS_MAX_THREADS"] = "1"
    for shape in SCHEMAS:
        kernel_level(shape, given.rounds)
    for shape in () if given.kernel_only else SCHEMAS:
        in_spark(shape, given.rows if shape == "flat" else given.rows // 2, given.rounds)


if __name__ == "__main__":
    main()
