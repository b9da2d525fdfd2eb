"""Our converters and those of Apache Kafka read and write the same: on generated schemas and values."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from tests.services.connect_converters import Converter, Converters, RefusedError
from tests.unit.decode.connect_strategies import schemas_with_payloads, structs

from penstock.decode.kernels.connect.envelopes import EnvelopePlan, EnvelopeReader, Origins
from penstock.decode.kernels.connect.record_kernel import Primitives
from penstock.encode.connect_encodes import converter_encode
from penstock.encode.schema_registration import Target
from penstock.formats.connect import BOOLEAN, FLOAT32, FLOAT64, INT16, INT32, INT64, Schema
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.header_texts import header_text
from penstock.formats.connect.header_values import parse_value
from penstock.formats.connect.json_schemas import from_document

APACHE = "org.apache.kafka.connect."
JSON = f"{APACHE}json.JsonConverter"
TARGET = Target("t", "value")
REAL = re.compile(rb"-?\d\.\d+E-?\d+|-?\d+\.\d+")
SLOW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(schema: Schema, records: list[bytes]) -> pa.Array:
    count = len(records)
    where = Origins(pa.array(["t"] * count), pa.array([0] * count), pa.array(range(count)))
    plan = EnvelopePlan(schema, known_ends={("t", 0): count})
    made = EnvelopeReader(plan)(pa.array(records, pa.binary()), where)
    assert list(made.failures) == []
    return made.values


def written(schema: Schema, column: pa.Array, **options: Any) -> list[bytes]:
    chosen = ConverterOptions(form="json", **options)
    return converter_encode(chosen, schema, TARGET)(column).to_pylist()


def same_numbers(data: bytes | None) -> bytes | None:
    """The bytes with real numbers as Python prints them: Java 17 prints a digit more of some."""
    return data and REAL.sub(lambda found: repr(float(found[0])).encode(), data)


@pytest.fixture(scope="module")
def envelopes(java: Converters) -> Converter:
    return java.converter(JSON, {})


def has_text(document: dict[str, Any]) -> bool:
    """Whether Java has a text for all values: bytes have none."""
    return '"bytes", "optional"' not in json.dumps(document)


@SLOW
@given(drawn=schemas_with_payloads(structs()))
def test_json_with_schemas_is_read_and_written_as_connect_does(
    java: Converters, envelopes: Converter, drawn: tuple[dict[str, Any], list[Any]]
) -> None:
    document, payloads = drawn
    records = [json.dumps({"schema": document, "payload": each}).encode() for each in payloads]
    schema = from_document(document)
    ours = written(schema, read(schema, records))
    theirs = [java.round_trip(envelopes, record) for record in records]
    assert [*map(same_numbers, ours)] == [*map(same_numbers, theirs)]


@pytest.mark.parametrize("value", ["1.5", "0", "-0.00", "12345678901234567890.12"])
def test_decimals_as_numbers(java: Converters, value: str) -> None:
    money = {
        "type": "bytes",
        "name": f"{APACHE}data.Decimal",
        "parameters": {"scale": "2"},
        "version": 1,
    }
    document = {"type": "struct", "fields": [{**money, "field": "m"}]}
    exact = f"{value}.00" if "." not in value else value if value[-3] == "." else f"{value}0"
    record = f'{{"schema":{json.dumps(document)},"payload":{{"m":{exact}}}}}'.encode()
    schema = from_document(document)
    for form in ("BASE64", "NUMERIC"):
        theirs = java.round_trip(java.converter(JSON, {"decimal.format": form}), record)
        assert written(schema, read(schema, [record]), decimals=form.lower()) == [theirs]


@pytest.mark.parametrize(
    "text",
    ["plain", "a\x00\x1f\x7f\u2028/\"\\", "\b\t\n\f\r", "é€😀", "\\u001f", ""],
)  # fmt: skip
def test_texts_have_the_same_escapes(java: Converters, envelopes: Converter, text: str) -> None:
    document = {"type": "struct", "fields": [{"type": "string", "field": text or "x", "doc": text}]}
    record = json.dumps({"schema": document, "payload": {text or "x": text}}).encode()
    try:
        schema = from_document(document)
        ours = written(schema, read(schema, [record]))
    except AssertionError:
        assert set(text) & set('"\\\x00\x1f\b\t\n\f\r')  # such names are refused
        return
    assert ours == [java.round_trip(envelopes, record)]


def test_texts_with_control_characters_have_the_same_escapes(
    java: Converters, envelopes: Converter
) -> None:
    document = {
        "type": "struct",
        "fields": [{"type": "string", "field": "x", "doc": "\x01\\u001f"}],
    }
    text = "".join(map(chr, range(0x80))) + "\u2028\\u001f"
    record = json.dumps({"schema": document, "payload": {"x": text}}).encode()
    schema = from_document(document)
    assert written(schema, read(schema, [record])) == [java.round_trip(envelopes, record)]


NUMBERS = [1.0, 0.001, 1e7, 9999999.0, 1e-5, 1.5e300, 5e-324, 123456.789, 1e16, 1.1e21]


def test_real_numbers_are_printed_as_java_prints_them(
    java: Converters, envelopes: Converter
) -> None:
    fields = [{"type": "double", "field": f"f{at}"} for at in range(len(NUMBERS))]
    document = {"type": "struct", "fields": fields}
    payload = {f"f{at}": number for at, number in enumerate(NUMBERS)}
    record = json.dumps({"schema": document, "payload": payload}).encode()
    schema = from_document(document)
    ours, theirs = written(schema, read(schema, [record]))[0], java.round_trip(envelopes, record)
    # The smallest number: Java before 19 prints 4.9E-324.
    assert ours == theirs or ours.replace(b"5.0E-324", b"4.9E-324") == theirs


@pytest.mark.parametrize(
    "record",
    [b"", b"1", b'{"schema":{"type":"int32"}}', b'{"schema":1,"payload":1}', b"{",
     b'{"schema":{"type":"int32"},"payload":null}', b'{"schema":{"type":"int32"},"payload":1,"x":1}',
     b'{"schema":{"type":"array","items":{"type":"int32"}},"payload":[null]}',
     b'{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Date"},"payload":"x"}'],
)  # fmt: skip
def test_what_connect_refuses_is_a_bad_record(
    java: Converters, envelopes: Converter, record: bytes
) -> None:
    with pytest.raises(RefusedError):
        java.round_trip(envelopes, record)
    where = Origins(pa.array(["t"]), pa.array([0]), pa.array([0]))
    for schema in (INT32.or_null(), from_document({"type": "array", "items": {"type": "int32"}})):
        assert EnvelopeReader(EnvelopePlan(schema))(pa.array([record], pa.binary()), where).failures


@pytest.mark.parametrize(
    ("name", "form", "schema", "data"),
    [
        ("converters.ShortConverter", "short", INT16, b"\xff\xfe"),
        ("converters.IntegerConverter", "int", INT32, b"\x80\0\0\0"),
        ("converters.LongConverter", "long", INT64, b"\x7f" + b"\xff" * 7),
        ("converters.DoubleConverter", "double", FLOAT64, b"\x3f\xf1" + b"\0" * 6),
        ("converters.BooleanConverter", "boolean", BOOLEAN, b"\1"),
        ("converters.BooleanConverter", "boolean", BOOLEAN, b"\0"),
    ],
)
def test_primitive_converters(
    java: Converters, name: str, form: str, schema: Schema, data: bytes
) -> None:
    where = Origins(pa.array(["t"]), pa.array([0]), pa.array([0]))
    made = Primitives(form)()(pa.array([data], pa.binary()), where)
    ours = converter_encode(ConverterOptions(form=form), schema, TARGET)(made.values).to_pylist()
    assert ours == [data]
    theirs = java.converter(f"{APACHE}{name}", {})
    read_by_java = theirs.made.toConnectData("t", data).value()
    assert read_by_java == made.values[0].as_py()
    for bad in (b"", b"abc"):
        with pytest.raises(RefusedError):
            java.round_trip(theirs, bad)
        assert Primitives(form)()(pa.array([bad], pa.binary()), where).failures


def test_floats_of_four_bytes(java: Converters) -> None:
    converter = java.converter(f"{APACHE}converters.FloatConverter", {})
    assert converter.made.toConnectData("t", b"\x3f\x80\0\0").value() == 1.0
    encode = converter_encode(ConverterOptions(form="float"), FLOAT32, TARGET)
    assert encode(pa.array([1.0], pa.float32())).to_pylist() == [b"\x3f\x80\0\0"]


@SLOW
@given(drawn=schemas_with_payloads(structs().filter(has_text)))
def test_structs_as_text(
    java: Converters, envelopes: Converter, drawn: tuple[dict[str, Any], list[Any]]
) -> None:
    document, payloads = drawn
    record = json.dumps({"schema": document, "payload": payloads[0]}).encode()
    schema = from_document(document)
    encode = converter_encode(ConverterOptions(form="string"), schema, TARGET)
    ours = encode(read(schema, [record]))[0].as_py()
    theirs = java.as_text(envelopes, java.converter(f"{APACHE}storage.StringConverter", {}), record)
    assert same_numbers(ours) == same_numbers(theirs)


HEADERS = [
    "1", "300", "70000", "3000000000", "123456789012345678901234567890", "1.5", "0.1", "1e3", "1.0",
    "-5", "+5", "true", "TRUE", "false", "", "abc", " a b ", "2024-02-29", "10:00:00.000Z",
    "2024-02-29T10:00:00.000Z", "2024-02-29T10:00:00Z", "[1,2]", "{\"a\":1}", "{1:2}", "[1,300]",
    "[1,1.5]", "[null,1]", "[abc]", "{\"a\":[1]}", "\"quoted\"", "1 2", "a:b", "a,b", "[1", "5L", "0x10",
    "-", "1.", "NaN", "é", "[true,false]", "[2024-02-29]", "{\"t\":10:00:00.000Z}", "  5 ", "true ", "\\",
    "0.0000000001", "3.4e39", "1e-50", "[1,]", "[,1]", "12345678.5",
]  # fmt: skip


@pytest.mark.parametrize("text", HEADERS)
def test_headers_have_the_same_types_and_texts(java: Converters, text: str) -> None:
    converter = java.header_converter(f"{APACHE}storage.SimpleHeaderConverter")
    kind, again = java.header(converter, text.encode())
    schema, value = parse_value(text)
    names = {"float": "float32", "double": "float64"}
    assert schema is not None
    ours = schema.name or names.get(schema.type.value, schema.type.value)
    assert (ours, header_text(schema, value).encode()) == (kind, again)
