"""Small bytes that describe gigabytes. Run as a program, it decodes them and prints what each one took.

Each row is a JSON object: the bomb's name, the size of its bytes, how far the memory grew, the error.
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.fuzz.registry import OneSchema, message_file

from penstock.compat.dolphindb.dolphindb_values import to_python
from penstock.errors import PenstockError
from penstock.formats import find_format
from penstock.formats.arrow.arrow_stream import _Table
from penstock.formats.avro import Avro
from penstock.formats.protobuf import Protobuf

Bomb = tuple[Any, bytes]
ROOM = 1536 * 2**20
MANY = 300_000_000
_COUNT = struct.Struct("<i")


def arrow_stream(array: pa.Array, mark: str = "scalar", times: int = 1, codec: str = "") -> bytes:
    schema = pa.schema([("value", array.type)], metadata={"penstock.shape": mark})
    options = pa.ipc.IpcWriteOptions(compression=codec or None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for _ in range(times):
            writer.write_batch(pa.record_batch([array], schema))
    return bytes(sink.getvalue())


def one_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def overlapping(levels: int) -> pa.Array:
    values = pa.array([1])
    for _ in range(levels):
        every = pa.array(np.zeros(1000, "i4")), pa.array(np.full(1000, len(values), "i4"))
        values = pa.ListViewArray.from_arrays(*every, values)
    return one_list(values)


def symbols_in_arrow() -> pa.Array:
    text = pa.array(["x" * 100_000])
    return one_list(pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, "i4")), text))


def text_views() -> pa.Array:
    views = np.tile(np.array([100_000, 0x78787878, 0, 0], "<i4"), 50_000)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(b"x" * 100_000)]
    return one_list(pa.Array.from_buffers(pa.string_view(), 50_000, buffers))


def shared_fields() -> bytes:
    """A schema whose vector of fields names one field, with long metadata, again and again."""
    schema = pa.schema([pa.field("a", pa.null(), metadata={"k": "v" * 20_000})])
    data = bytearray(schema.serialize().to_pybytes()[8:])
    table = _Table.at(bytes(data), struct.unpack_from("<I", data)[0]).table(2)
    assert table is not None
    slot, (start, _) = table.find(1), table.vector(1)
    field = start + struct.unpack_from("<I", data, start)[0]
    count, base = 20_000, len(data)
    copy = base + 4 + 4 * count
    copy += -copy % 8
    struct.pack_into("<I", data, slot, base - slot)
    data += struct.pack("<I", count)
    data += b"".join(struct.pack("<I", copy + field - (base + 4 + 4 * at)) for at in range(count))
    data += bytes(copy - len(data)) + bytes(data[:base])
    data += bytes(-len(data) % 8)
    return struct.pack("<Ii", 0xFFFFFFFF, len(data)) + bytes(data) + b"\xff" * 4 + bytes(4)


def lying_length() -> bytes:
    data = bytearray(arrow_stream(pa.array(np.zeros(100_000, "i8")), "vector", codec="zstd"))
    place = data.index(struct.pack("<q", 800_000), data.index(struct.pack("<q", 100_000)) + 8)
    struct.pack_into("<q", data, place, 2**40)
    return bytes(data)


def symbols() -> bytes:
    base = b"".join([_COUNT.pack(1), _COUNT.pack(2), b"\0", b"x" * 300_000, b"\0"])
    return b"\x91\x01" + _COUNT.pack(10_000) + _COUNT.pack(1) + base + _COUNT.pack(1) * 10_000


def any_vector(item: bytes, count: int) -> bytes:
    return b"\x19\x01" + _COUNT.pack(count) + _COUNT.pack(1) + item * count


def numbers(count: int) -> bytes:
    return (
        b"\x04\x01" + _COUNT.pack(count) + _COUNT.pack(1) + np.arange(count, dtype="<i4").tobytes()
    )


def wide_matrix() -> bytes:
    labels = b"\x04\x01" + _COUNT.pack(0) + _COUNT.pack(1)
    return b"\x04\x03\x01" + labels + b"\x04\x03" + _COUNT.pack(0) + _COUNT.pack(2**31 - 1)


def avro() -> Bomb:
    fields = [{"name": f"n{at}", "type": "null"} for at in range(2000)]
    record = {"type": "record", "name": "r", "fields": [*fields, {"name": "i", "type": "int"}]}
    schema = json.dumps({"type": "array", "items": record})
    body = b"\xc0\x9a\x0c" + bytes(100_000) + b"\0"
    return Avro(OneSchema(schema, "AVRO")), b"\0\0\0\0\1" + body


def protobuf() -> Bomb:
    wide = {f"n{at}": "int64" for at in range(1000)}
    file = message_file({"Outer": {"all": "*Wide"}, "Wide": wide})
    return Protobuf(OneSchema(file, "PROTOBUF")), b"\0\0\0\0\1\0" + b"\x0a\0" * 500_000


def named(name: str, data: bytes) -> Bomb:
    return find_format(name), data


BOMBS: dict[str, Callable[[], Bomb]] = {
    "arrow: a list of nulls with one length": lambda: named(
        "arrow", arrow_stream(pa.FixedSizeListArray.from_arrays(pa.nulls(MANY), MANY))
    ),
    "arrow: a list of nulls": lambda: named("arrow", arrow_stream(one_list(pa.nulls(MANY)))),
    "arrow: lists that overlap": lambda: named("arrow", arrow_stream(overlapping(4))),
    "arrow: one text, often": lambda: named("arrow", arrow_stream(symbols_in_arrow())),
    "arrow: views of one text": lambda: named("arrow", arrow_stream(text_views())),
    "arrow: zstd": lambda: named(
        "arrow", arrow_stream(pa.array(np.zeros(2**20, "i8")), "vector", 180, "zstd")
    ),
    "arrow: lz4": lambda: named(
        "arrow", arrow_stream(pa.array(np.zeros(2**20, "i8")), "vector", 180, "lz4")
    ),
    "arrow: a length that is not true": lambda: named("arrow", lying_length()),
    "arrow: one field, often": lambda: named("arrow", shared_fields()),
    "arrow: a column of nulls": lambda: named("auto", arrow_stream(pa.nulls(2**30), "vector")),
    "dolphindb: a set of symbols": lambda: named("dolphindb", b"\x11\x04" + symbols()),
    "dolphindb: a dictionary of symbols": lambda: named(
        "dolphindb", b"\x11\x05" + numbers(10_000) + symbols()
    ),
    "dolphindb: a vector of symbols": lambda: named("dolphindb", symbols()),
    "dolphindb: vectors of nothing": lambda: named(
        "dolphindb", any_vector(b"\0\x01" + _COUNT.pack(2**20) + _COUNT.pack(1), 90_000)
    ),
    "dolphindb: small vectors": lambda: named("dolphindb", any_vector(numbers(0), 500_000)),
    "dolphindb: a matrix of columns only": lambda: named("dolphindb", wide_matrix()),
    "avro: records of nulls": avro,
    "protobuf: empty messages": protobuf,
    "json: empty lists": lambda: named("json", b"[" + b"[]," * 10_000_000 + b"[]]"),
    "json: empty objects": lambda: named("json", b"[" + b"{}," * 2_000_000 + b"{}]"),
}


def run(name: str) -> dict[str, Any]:
    """Decode one bomb, and convert what it became as the DolphinDB functions do."""
    format, data = BOMBS[name]()
    before = _forget_peak()
    error = ""
    try:
        to_python(format.decode(data, "t"))
    except PenstockError as problem:
        error = f"{type(problem).__name__}: {problem}"
    return {"name": name, "bytes": len(data), "grown": _peak() - before, "error": error}


def _forget_peak() -> int:
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _bound_memory() -> None:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))


if __name__ == "__main__":
    _bound_memory()
    for each in BOMBS:
        print(json.dumps(run(each)), flush=True)
