"""Decodes of other formats than JSON, from Kafka to rows: good records, and a bad one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock import Connection, memory_table, start
from penstock.formats import find_format
from penstock.testing import fill

SCHEMA = "n int not null, s string"
ROWS = [{"n": 1, "s": "a"}, {"n": 2, "s": "é"}, {"n": 3, "s": "x,y"}]
TABLE = pa.Table.from_pylist(ROWS[1:], pa.schema([("n", pa.int32()), ("s", pa.string())]))


def binary(name: str) -> list[bytes]:
    return [find_format(name).encode(ROWS[0]), find_format(name).encode(TABLE), b"\x00bad"]


CASES: dict[str, tuple[Any, list[bytes]]] = {
    "csv": ({"schema": SCHEMA}, [b"1,a", '2,é\n3,"x,y"'.encode(), b"x,b"]),
    "arrow": ({"schema": SCHEMA}, binary("arrow")),
    "dolphindb": ({"schema": SCHEMA}, binary("dolphindb")),
    "auto": ({"schema": SCHEMA}, [b'{"n": 1, "s": "a"}', *binary("arrow")[1:]]),
}


def run(
    connection: Connection, pipeline: Any, topic: str, table: str, decode: Any, values: list[bytes]
) -> tuple[list[dict[str, Any]], int]:
    fill(connection, topic, values)
    definition = pipeline(source={"kafka": topic}, decode=decode, sink={"memory": table})
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        failed = running.progress().failed
    return memory_table(table).to_arrow().to_pylist(), failed


@pytest.mark.parametrize("name", CASES)
def test_records_of_a_format_become_rows_with_their_origin(
    name: str, connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    options, values = CASES[name]
    decode = {name: options | {"metadata": ["offset"]}}
    rows, failed = run(connection, pipeline, topic(), unique, decode, values)
    expected = [row | {"kafka_offset": min(at, 1)} for at, row in enumerate(ROWS)]
    assert (sorted(rows, key=lambda row: row["n"]), failed) == (expected, 1)


def test_values_of_kafkas_serializers_become_a_column(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    values = [find_format("long").encode(number) for number in (1, -(2**63))]
    rows, failed = run(
        connection, pipeline, topic(), unique, {"primitive": "long"}, [*values, b"bad"]
    )
    assert (sorted(row["value"] for row in rows), failed) == ([-(2**63), 1], 1)


def as_hex(value: bytes) -> dict[str, Any]:
    return {"v": value.hex()}


def test_a_parser_gets_bytes(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    decode = {"python": {"function": as_hex, "schema": "v string", "input": "bytes"}}
    rows, failed = run(connection, pipeline, topic(), unique, decode, [b"\xff\x00"])
    assert (rows, failed) == ([{"v": "ff00"}], 0)
