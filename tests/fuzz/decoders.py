"""Every decoder: good bytes to begin with, how it is called, and the one error that it may raise."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
from tests.fuzz.registry import OneSchema, message_file

from penstock.compat.dolphindb.consuming import answers
from penstock.decode.avro_decode import AvroColumns
from penstock.decode.json_schema_decode import JsonSchemaColumns
from penstock.decode.kernels import text_kernel
from penstock.decode.kernels.auto_kernel import AutoKernel
from penstock.decode.kernels.csv_kernel import CsvKernel
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.message_kernel import arrow_kernel, dolphindb_kernel
from penstock.decode.kernels.outcome import Decoded
from penstock.decode.kernels.primitive_kernel import PrimitiveKernel
from penstock.decode.kernels.registry_kernel import (
    FormatColumns,
    RegistryKernel,
    RegistryPlan,
    Wanted,
)
from penstock.decode.protobuf_decode import ProtobufColumns
from penstock.errors import FormatError
from penstock.formats import FORMATS, Format, find_format
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Registry
from penstock.formats.registry import Schema as RegisteredSchema
from penstock.kafka.consuming.decoding import Decoder as RecordDecoder
from penstock.pipeline.schema import Schema
from penstock.record import Record

_VECTORS = Path(__file__).parents[1] / "unit/formats/dolphindb-wire-vectors.json"
_JSON_TOKENS = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\u", b"\\ud800", b"null", b"true", b"NaN", b"1e999",
    b"-0", b"1e-400", b"9" * 25, b"0." + b"1" * 40, b'{"a":', b"[[[[[[[[", b"\xff", b"\xed\xa0\x80",
]  # fmt: skip
_JSON = [
    b'{"a":[1,2.5,null,"x"],"b":{"c":true}}',
    b"[123456789012345678901234567890]",
    b'["\\u00e9\\ud83d\\ude00",-1e10,{}]',
]
_KERNEL = (
    "id bigint not null, price decimal(10,2), name string, day date, at timestamp, local timestamp_ntz, "
    "raw binary, flags array<boolean>, inner struct<x: double, y: array<int>>, more map<string,float>"
)
_ROW = (
    b'{"id":1,"price":"1.50","name":"\\u00e9","day":"2024-02-29","at":"2024-01-01T00:00:00.5Z",'
    b'"local":"2024-01-01 10:00:00","raw":"aGk=","flags":[true,null],"inner":{"x":1.5,"y":[1,2]},'
    b'"more":{"k":1.5}}'
)
_TEXTS = ["2024-02-29", "2024-01-01T02:00:00.5+02:00", "2024-01-01 10:00:00", "1.50e3", "aGk="]
_HEAD = b"\0\0\0\0\1"


@dataclass(frozen=True)
class Decoder:
    """A decoder under test."""

    seeds: Sequence[bytes]
    decode: Callable[[bytes], Any]
    refuses: type[Exception] = FormatError
    tokens: Sequence[bytes] = ()
    decode_all: Callable[[list[bytes]], int] | None = None
    """Decodes many at once, and returns how many were good; where it raises, each is tried alone."""


def _dolphindb() -> list[bytes]:
    return [bytes.fromhex(each["hex"]) for each in json.loads(_VECTORS.read_text())]


def _arrow() -> list[bytes]:
    table = pa.table(
        {
            "id": pa.array([1, None, 3]),
            "name": pa.array(["a", None, "é"]),
            "symbol": pa.array(["x", "y", "x"]).dictionary_encode(),
            "rows": pa.array([[1.5], [2.5, None], [3.5]]),
            "at": pa.array([datetime(2024, 1, 1)] * 3),
        }
    )
    values = (7, "a", [1, None], {"a": [1]}, table, date(2024, 1, 1), UUID(int=7), [[1], [2]])
    seeds = [find_format("arrow").encode(each) for each in values]
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return [*seeds, bytes(sink.getvalue())]


_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "dolphindb": _dolphindb,
    "arrow": _arrow,
    "json": lambda: _JSON,
    "auto": lambda: _dolphindb() + _arrow() + _JSON,
    "plain": lambda: ["é".encode(), b"abc"],
    "string": lambda: ["é€😀".encode(), b"abc"],
    "bytes": lambda: [b"abc"],
    "short": lambda: [b"\0\1"],
    "integer": lambda: [b"\0\1\0\1"],
    "long": lambda: [b"\0\1" * 4],
    "float": lambda: [b"\x3f\x80\0\0"],
    "double": lambda: [b"\x3f\xf0\0\0\0\0\0\0"],
    "uuid": lambda: [b"00000000-0000-0000-0000-000000000001"],
}


def _looked_at(format: Format) -> Callable[[bytes], Any]:
    def decode(data: bytes) -> None:
        value = format.decode(data, "t")
        if isinstance(value, pa.Array | pa.Table):
            value.validate(full=True)

    return decode


def _format(name: str) -> Decoder:
    tokens = _JSON_TOKENS if name in ("json", "auto") else ()
    return Decoder(_SEEDS[name](), _looked_at(find_format(name)), tokens=tokens)


_AVRO_FIELDS: dict[str, Any] = {
    "id": "long", "name": ["null", "string"], "price": "double", "flag": "boolean",
    "tags": {"type": "array", "items": "string"}, "more": {"type": "map", "values": "int"},
    "day": {"type": "int", "logicalType": "date"},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "clock": {"type": "int", "logicalType": "time-millis"},
    "money": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "key": {"type": "string", "logicalType": "uuid"},
    "kind": {"type": "enum", "name": "k", "symbols": ["A", "B"]},
    "raw": {"type": "fixed", "name": "f", "size": 4},
}  # fmt: skip
_AVRO_BODY = (
    b"\x02\x02\x04hi" + bytes(8) + b"\x01" + b"\x04\x02a\x02b\0" + b"\x02\x02k\x04\0" + b"\x04"
    b"\x06" + b"\x08" + b"\x04\x01\x02" + b"\x48" + str(UUID(int=7)).encode() + b"\x02" + b"abcd"
)


def _avro() -> Decoder:
    schema = {"type": "record", "name": "r"}
    fields = {**_AVRO_FIELDS, "next": ["null", "r"]}
    rows = [{"name": name, "type": kind} for name, kind in fields.items()]
    bodies = [_AVRO_BODY + b"\0", _AVRO_BODY + b"\x02" + _AVRO_BODY + b"\0"]
    format = Avro(OneSchema(json.dumps(schema | {"fields": rows}), "AVRO"))
    for body in bodies:
        format.decode(_HEAD + body)
    return Decoder([_HEAD + body for body in bodies], _looked_at(format))


_TRADE = {"id": "int64", "name": "string", "raw": "bytes", "all": "*Leg"}
_LEG_FIELDS = {"price": "double", "numbers": "*int64", "flag": "bool", "text": "*string"}
_LEG = b"\x09" + bytes(8) + b"\x12\x03\x01\x02\x03" + b"\x18\x01" + b"\x22\x01x"
_TRADE_BODY = b"\x08\x96\x01\x12\x02hi\x1a\x01\xff" + b"\x22" + bytes((len(_LEG),)) + _LEG


def _protobuf() -> Decoder:
    file = message_file({"Trade": _TRADE | {"self": "Trade"}, "Leg": _LEG_FIELDS})
    seeds = [_HEAD + b"\0" + _TRADE_BODY + b"\x2a\x02\x08\x01", _HEAD + b"\x02\x02" + _LEG]
    format = Protobuf(OneSchema(file, "PROTOBUF"))
    for seed in seeds:
        format.decode(seed)
    return Decoder(seeds, _looked_at(format))


def _json_schema() -> Decoder:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": ["number", "string", "null"]}}},
        "additionalProperties": {"anyOf": [{"type": "object"}, {"type": "integer", "minimum": 0}]},
    }
    format = JsonSchema(OneSchema(json.dumps(schema), "JSON"))
    return Decoder([_HEAD + each for each in _JSON], _looked_at(format), tokens=_JSON_TOKENS)


def _record() -> Decoder:
    """What a poll of the DolphinDB functions does with a record: key, value and headers of any bytes."""
    records_of = RecordDecoder("auto", "plain")

    def decode(data: bytes) -> None:
        headers = [("h", data), ("none", None)]
        record = Record.of("t", 0, 1, data, data, 1, headers)
        (answer,) = answers(lambda: records_of([record.message]))
        if answer[0]:
            raise FormatError(answer[0])

    return Decoder(_SEEDS["auto"](), decode, tokens=_JSON_TOKENS)


def _json_kernel() -> Decoder:
    kernel = JsonKernel(Schema.parse(_KERNEL))

    def decode_all(given: list[bytes]) -> int:
        rows, failures = kernel.decode(pa.array([_ROW, *given, _ROW], pa.binary()))
        assert rows.num_rows + len(failures) == len(given) + 2, "neither a row nor a failure"
        bad = {failure.index for failure in failures}
        assert not bad & {0, len(given) + 1}, "a good record failed"
        rows.validate(full=True)
        return len(given) - len(bad)

    def decode(data: bytes) -> None:
        if not decode_all([data]):
            raise FormatError("no row")

    seeds = [_ROW, b'{"id":2}', b'{"id":3,"name":"x","flags":[true],"more":{}}', _JSON[0]]
    return Decoder(seeds, decode, tokens=_JSON_TOKENS, decode_all=decode_all)


def _kernel(kernel: Callable[[pa.RecordBatch], Decoded], seeds: list[bytes]) -> Decoder:
    """A kernel of a decode: each record is rows or one failure; the first and last are good."""

    def decode_all(given: list[bytes]) -> int:
        values = pa.array([seeds[0], *given, seeds[0]], pa.binary())
        decoded = kernel(pa.RecordBatch.from_arrays([values], ["value"]))
        bad = {failure.index for failure in decoded.failures}
        assert len(bad) == len(decoded.failures), "two failures of one record"
        assert not bad & {0, len(given) + 1}, "a good record failed"
        decoded.rows.validate(full=True)
        if decoded.origins is None:
            assert decoded.rows.num_rows == len(values), "a row is missing"
        else:
            assert len(decoded.origins) == decoded.rows.num_rows
            assert not bad & set(decoded.origins.to_pylist()), "a bad record has rows"
        return len(given) - len(bad)

    def decode(data: bytes) -> None:
        if not decode_all([data]):
            raise FormatError("no row")

    return Decoder(seeds, decode, tokens=_JSON_TOKENS, decode_all=decode_all)


_COLUMNS = (
    "id bigint, name string, symbol string, rows array<double>, at timestamp_ntz, d decimal(9,2)"
)
_LINES = [
    b'1,"a ""b""",x,1.50,2024-02-29,2024-01-01T00:00:00Z,true,aGk=\n2,,,,,,,',
    b"-7,\xc3\xa9,y,0.5,0001-01-01,2024-01-01 10:00:00.5,false,",
    b'3,"multi\nline",z,1e3,,,,\r\n',
]


def _csv_kernel() -> Decoder:
    types = "n int, s string, t string, d double, day date, at timestamp, b boolean, raw binary"
    decoder = _kernel(CsvKernel(Schema.parse(types)), _LINES)
    tokens = [
        b'"',
        b'""',
        b",",
        b"\n",
        b"\r",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"\xff",
        b"1e999",
        b"9" * 25,
    ]
    return replace(decoder, tokens=tokens)


def _message_kernel(kernel: Callable[[pa.RecordBatch], Decoded], name: str) -> Decoder:
    good = find_format(name).encode({"id": 1, "name": "a"})
    return _kernel(kernel, [good, *_SEEDS[name]()])


@dataclass(frozen=True)
class _OneRegistry:
    """The option `registry` with a registry that has one schema."""

    text: str
    kind: str

    def client(self) -> Registry:
        return OneSchema(self.text, self.kind)


def _registry_kernel(columns: FormatColumns, text: str, bodies: list[bytes]) -> Decoder:
    registry: Any = _OneRegistry(text, columns.kind)
    plan = RegistryPlan(columns, registry, Wanted(RegisteredSchema(text, columns.kind), id=1))
    return _kernel(RegistryKernel(plan), [_HEAD + body for body in bodies])


def _avro_kernel() -> Decoder:
    fields = [{"name": name, "type": kind} for name, kind in _AVRO_FIELDS.items()]
    schema = {"type": "record", "name": "r", "fields": fields}
    return _registry_kernel(AvroColumns(), json.dumps(schema), [_AVRO_BODY, _AVRO_BODY * 2])


def _protobuf_kernel() -> Decoder:
    file = message_file({"Trade": _TRADE, "Leg": _LEG_FIELDS})
    return _registry_kernel(ProtobufColumns(), file, [b"\0" + _TRADE_BODY, b"\x02\x02" + _LEG])


def _json_schema_kernel() -> Decoder:
    kinds = {
        "id": {"type": "integer"},
        "name": {"type": ["string", "null"]},
        "price": {"type": "number"},
        "flags": {"type": "array", "items": {"type": "boolean"}},
        "inner": {"type": "object", "properties": {"x": {"type": "number"}}},
    }
    schema = {"type": "object", "properties": kinds, "required": ["id"]}
    rows = [b'{"id":1,"name":"a","price":1.5,"flags":[true],"inner":{"x":1}}', *_JSON]
    return _registry_kernel(JsonSchemaColumns(), json.dumps(schema), rows)


def _primitive_kernel() -> Decoder:
    return _kernel(PrimitiveKernel("long", "n"), [b"\0\1" * 4, b"\0\1"])


def _text_kernel() -> Decoder:
    def decode(data: bytes) -> None:
        given = data.decode("utf-8", "replace")
        readers: list[Callable[[str], Any]] = [
            text_kernel.read_date, text_kernel.read_instant, text_kernel.read_local_time,
            text_kernel.read_base64,
            lambda one: text_kernel.read_decimal(one, 10, 2),
        ]  # fmt: skip
        refused = [error for read in readers if (error := _refusal(read, given))]
        if len(refused) == len(readers):
            raise FormatError(str(refused[0]))

    tokens = [b"e999999999", b"-99", b"+23:59", b"9" * 30, b"\xd9\xa1", b"0000", b"=="]
    return Decoder([each.encode() for each in _TEXTS], decode, tokens=tokens)


def _refusal(read: Callable[[str], Any], given: str) -> ValueError | None:
    try:
        read(given)
    except ValueError as error:
        return error
    return None


_OTHERS: dict[str, Callable[[], Decoder]] = {
    "avro": _avro,
    "protobuf": _protobuf,
    "json_schema": _json_schema,
    "record": _record,
    "json_kernel": _json_kernel,
    "text_kernel": _text_kernel,
    "csv_kernel": _csv_kernel,
    "arrow_kernel": lambda: _message_kernel(arrow_kernel(Schema.parse(_COLUMNS)), "arrow"),
    "dolphindb_kernel": lambda: _message_kernel(
        dolphindb_kernel(Schema.parse(_COLUMNS)), "dolphindb"
    ),
    "one_column_kernel": lambda: _kernel(
        dolphindb_kernel(Schema.parse("v string")),
        [find_format("dolphindb").encode(["a"]), *_dolphindb()],
    ),
    "auto_kernel": lambda: _kernel(
        AutoKernel(Schema.parse(_COLUMNS)),
        [b'[{"id":1,"name":"a"},{"id":2}]', b'{"id":1,"rows":[1.5]}', *_SEEDS["auto"]()],
    ),
    "avro_kernel": _avro_kernel,
    "protobuf_kernel": _protobuf_kernel,
    "json_schema_kernel": _json_schema_kernel,
    "primitive_kernel": _primitive_kernel,
    "uuid_kernel": lambda: _kernel(PrimitiveKernel("uuid", "v"), [str(UUID(int=7)).encode()]),
    "string_kernel": lambda: _kernel(PrimitiveKernel("string", "v"), ["é€😀".encode(), b"abc"]),
}
NAMES = (*FORMATS, *_OTHERS)
"""Every decoder: the formats by their names, then the others."""


def make(name: str) -> Decoder:
    """Make a decoder by its name."""
    return _OTHERS[name]() if name in _OTHERS else _format(name)
