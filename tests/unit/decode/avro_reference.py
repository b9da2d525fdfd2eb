"""Schemas, bodies and the values of the client's reader, to compare the columnar reader with."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa

from penstock.decode.kernels.avro.avro_kernel import AvroBodies
from penstock.formats.avro.avro_primitives import Body, Reader
from penstock.formats.avro.avro_reader import Readers
from penstock.formats.avro.avro_schema import Names, Parsed, kind_of, resolved
from penstock.formats.avro.avro_writer import Writers
from penstock.formats.registry import Registry, Schema

REGISTRY = Registry("http://memory")


def parsed(schema: Any) -> Parsed:
    return Parsed(Schema(json.dumps(schema), "AVRO"), REGISTRY)


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def body_of(schema: Parsed, value: Any) -> bytes:
    out = bytearray()
    Writers(schema.names).make(schema.root)(value, out)
    return bytes(out)


def single(read: Reader, body: bytes) -> Any:
    """Read one body as the client does; None where it refuses it."""
    try:
        value, end = read(Body.of(body), 0)
    except Exception:
        return None
    return value if end == len(body) else None


def plain(value: Any, schema: Any, names: Names) -> Any:
    """Return a value of a table in the form in which the client's reader returns it."""
    kind, schema = kind_of(schema, names), resolved(schema, names)
    if value is None:
        return None
    if kind == "union":
        return _of_union(value, schema, names)
    if kind == "record":
        return {
            each["name"]: plain(value[each["name"]], each["type"], names)
            for each in schema["fields"]
        }
    if kind == "array":
        return [plain(item, schema["items"], names) for item in value]
    if kind == "map":
        assert len({key for key, _ in value}) == len(value)
        return {key: plain(item, schema["values"], names) for key, item in value}
    return _scalar(value, schema)


def _of_union(value: Any, union: Sequence[Any], names: Names) -> Any:
    branches = [branch for branch in union if kind_of(branch, names) != "null"]
    if len(branches) == 1:
        return plain(value, branches[0], names)
    pairs = zip(value.values(), branches, strict=True)
    ((chosen, branch),) = [(each, branch) for each, branch in pairs if each is not None]
    return plain(chosen, branch, names)


def _scalar(value: Any, schema: Any) -> Any:
    name = schema.get("logicalType") if isinstance(schema, dict) else None
    if name == "uuid":
        return UUID(value)
    if name == "duration":
        return struct.pack("<III", value["months"], value["days"], value["millis"])
    if name in ("time-millis", "time-micros"):
        unit = timedelta(milliseconds=1) if name == "time-millis" else timedelta(microseconds=1)
        return (datetime(1, 1, 1) + value * unit).time()
    return value


def same(left: Any, right: Any) -> bool:
    """Compare values; numbers that became floats of 32 bits are rounded, and NaN equals itself."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        rounded = pa.scalar(right, pa.float32()).as_py()
        return left in (right, rounded) or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and bool(left == right)


def check(written: Parsed, wanted: Parsed, bodies: Sequence[bytes]) -> int:
    """Decode bodies at once; each row must be what the client reads, each failure one for the client.

    Return how many were good.
    """
    kernel = AvroBodies(written, wanted)
    read = Readers(written.names, wanted.names).make(written.root, wanted.root)
    rows, failures = kernel(pa.array(bodies, pa.binary()))
    rows.validate(full=True)
    assert rows.schema.equals(kernel.arrow_schema)
    bad = {failure.index: failure for failure in failures}
    assert len(bad) == len(failures) and rows.num_rows + len(bad) == len(bodies)
    left = iter(rows.to_pylist())
    for at, body in enumerate(bodies):
        value = single(read, body)
        if at in bad:
            assert value is None, (body.hex(), value, bad[at])
            assert bad[at].message and "please report" not in bad[at].message
        else:
            row = plain(next(left), wanted.root, wanted.names)
            assert value is not None, (body.hex(), row)
            assert same(row, value), (body.hex(), row, value)
    return rows.num_rows
