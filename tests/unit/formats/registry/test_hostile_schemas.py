"""A schema in a registry may be anything: a record of it is a FormatError, and nothing else."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from penstock.errors import ConfigError, FormatError
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Reference, Schema

BODIES = [b"", b"\0", b"\x02a", b'{"a":{"a":{"a":1}}}', b"[[[]]]", b"\xff" * 20, b"\x00" * 50]


def _nested(inner: str, before: str, after: str, times: int) -> str:
    return before * times + inner + after * times


def _record(fields: object) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": fields})


AVRO = {
    "nothing": "",
    "null": "null",
    "a number": "5",
    "a list of lists": "[[[[]]]]",
    "an empty union": "[]",
    "deep arrays": _nested('"int"', '{"type":"array","items":', "}", 5000),
    "deep lists": _nested("", "[", "]", 100_000),
    "deep types": _nested('"int"', '{"type":', "}", 900),
    "no items": '{"type":"array"}',
    "items of a wrong kind": '{"type":"array","items":5}',
    "no values": '{"type":"map"}',
    "contains itself": _record([{"name": "a", "type": "R"}]),
    "array of itself": _record([{"name": "a", "type": {"type": "array", "items": "R"}}]),
    "unknown type": '"zzz"',
    "unknown type with a method's name": '"make"',
    "type with a method's name": '{"type":"__init__"}',
    "fields of a wrong kind": _record(5),
    "a field without a name": _record([{"type": "int"}]),
    "a field that is a list": _record([[]]),
    "a name that is a list": json.dumps({"type": "record", "name": [], "fields": []}),
    "a name that is a number": json.dumps({"type": "fixed", "name": 5, "size": 1}),
    "aliases of a wrong kind": _record([{"name": "a", "type": "int", "aliases": 5}]),
    "symbols of a wrong kind": '{"type":"enum","name":"E","symbols":5}',
    "symbols that are no texts": '{"type":"enum","name":"E","symbols":[[],{}]}',
    "a negative size": '{"type":"fixed","name":"F","size":-5}',
    "a size that is a text": '{"type":"fixed","name":"F","size":"x"}',
    "a huge size": '{"type":"fixed","name":"F","size":%s}' % ("9" * 400),
    "a decimal of a wrong kind": '{"type":"bytes","logicalType":"decimal","precision":"x","scale":[]}',
    "a huge decimal": '{"type":"bytes","logicalType":"decimal","precision":1e9,"scale":-99999999999}',
    "a logical type of a wrong kind": '{"type":"int","logicalType":[]}',
    "a default of a wrong kind": _record([{"name": "a", "type": "int", "default": {}}]),
    "a surrogate": '"\\ud800"',
}
JSON = {
    "nothing": "",
    "a number": "5",
    "true": "true",
    "refers to itself": '{"$ref":"#"}',
    "refers to itself inside": '{"allOf":[{"$ref":"#"}]}',
    "refers to nothing": '{"$ref":"#/definitions/none"}',
    "refers to the network": '{"$ref":"http://127.0.0.1:1/x"}',
    "refers to a file": '{"$ref":"file:///etc/passwd"}',
    "a reference of a wrong kind": '{"$ref":5}',
    "a schema of a wrong kind": '{"$schema":5}',
    "an unknown schema": '{"$schema":"urn:none"}',
    "an id of a wrong kind": '{"$id":[]}',
    "not a pattern": '{"pattern":"("}',
    "not a pattern of names": '{"patternProperties":{"(":{}}}',
    "a type of a wrong kind": '{"type":5}',
    "an unknown type": '{"type":"zzz"}',
    "items of a wrong kind": '{"items":5,"properties":5}',
    "a multiple of nothing": '{"multipleOf":0}',
    "deep": _nested("{}", '{"allOf":[', "]}", 400),
    "too deep": _nested("{}", '{"allOf":[', "]}", 50_000),
    "a dynamic reference": '{"$schema":"https://json-schema.org/draft/2020-12/schema","$dynamicRef":"#x"}',
}


def _file(**fields: object) -> str:
    return b64encode(FileDescriptorProto(**fields).SerializeToString()).decode()  # type: ignore[arg-type]


PROTOBUF = {
    "nothing": "",
    "text": "syntax = 'proto3';",
    "not a description": b64encode(b"\xff" * 40).decode(),
    "no message": _file(name="a.proto"),
    "no name": _file(message_type=[{"name": ""}]),
    "twice the same message": _file(name="a.proto", message_type=[{"name": "A"}, {"name": "A"}]),
    "needs a file that is not there": _file(name="a.proto", dependency=["b.proto"]),
    "needs itself": _file(name="a.proto", dependency=["a.proto"]),
    "needs a module that is not there": _file(name="a.proto", dependency=["google/type/zzz.proto"]),
    "a field of an unknown type": _file(
        name="a.proto",
        message_type=[{"name": "A", "field": [{"name": "x", "number": 1, "type_name": ".none"}]}],
    ),
    "a field number that is not allowed": _file(
        name="a.proto",
        message_type=[{"name": "A", "field": [{"name": "x", "number": 0, "type": 1, "label": 1}]}],
    ),
    "an unknown syntax": _file(name="a.proto", syntax="zzz", message_type=[{"name": "A"}]),
}
CASES = [
    pytest.param(kind, text, id=f"{kind.name}: {name}")
    for kind, texts in ((Avro, AVRO), (JsonSchema, JSON), (Protobuf, PROTOBUF))
    for name, text in texts.items()
]


@pytest.mark.parametrize(("kind", "text"), CASES)
def test_a_hostile_schema_is_a_format_error_for_each_record_or_reads_it(kind, text, new_registry):
    registry = new_registry()
    number = registry.register("s", Schema(text, kind.kind))
    form = kind(registry)
    for body in BODIES:
        try:
            form.decode(b"\0" + number.to_bytes(4, "big") + body)
        except FormatError:
            continue


@pytest.mark.parametrize(
    ("kind", "text"), [case for case in CASES if case.values[0] is not Protobuf]
)
def test_a_hostile_schema_that_is_given_is_a_typed_error(kind, text, new_registry):
    try:
        kind(new_registry(), text).encode({"a": 1}, "t")
    except (ConfigError, FormatError):
        return


@pytest.mark.parametrize("kind", [Avro, JsonSchema, Protobuf])
def test_schemas_that_refer_to_each_other_without_end_are_a_format_error(kind, new_registry):
    registry = new_registry()
    text = {Avro: '"other"', JsonSchema: '{"$ref":"other"}', Protobuf: _file(name="a.proto")}[kind]
    for subject, other in (("a", "b"), ("b", "a")):
        registry.register(
            subject, Schema(text, kind.kind, (Reference(f"other-{other}", other, 1),))
        )
    try:
        kind(registry).decode(b"\0\0\0\0\1" + b"{}")
    except FormatError as error:
        assert "schema 1" in str(error)
