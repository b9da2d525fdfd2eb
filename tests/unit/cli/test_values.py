import json

import numpy as np
import pyarrow as pa
import pytest

from penstock.cli.lines import Draft, LineReader
from penstock.cli.option_values import ValueFormat, format_to_read, format_to_write
from penstock.cli.printing import Output, Printer
from penstock.errors import ConfigError, FormatError, RecordError
from penstock.formats import FORMATS, find_format
from penstock.formats.json_text import json_text
from penstock.record import Record

UUID = b"123e4567-e89b-12d3-a456-426614174000"


def of(name: str) -> ValueFormat:
    return ValueFormat(find_format(name))


def record(value: bytes | None) -> Record:
    return Record.of("t", 0, 7, key=b"k", value=value, timestamp=3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain", b"a\xff"),
        ("bytes", b"a\xff"),
        ("string", "é".encode()),
        ("short", b"-5"),
        ("integer", b"70000"),
        ("long", b"9223372036854775807"),
        ("float", b"1.5"),
        ("double", b"0.1"),
        ("uuid", UUID),
        ("json", b'{"a":[1,null,"\xc3\xa9"]}'),
        ("arrow", b'{"a":[1,2]}'),
        ("arrow", b'"text"'),
        ("dolphindb", b"[1,2,3]"),
        ("dolphindb", b"7"),
    ],
)
def test_what_produce_takes_is_what_consume_prints(name: str, text: bytes) -> None:
    assert of(name).text(of(name).of_text(text)) == text


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "auto"])
def test_every_format_can_be_named_for_writing_and_for_reading(name: str) -> None:
    assert format_to_write(name.upper()).name == format_to_read(name).name == name


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("long", b"1.5", "the text is not a valid long; write a whole number, for example 42"),
        ("long", b"", "the text is not a valid long"),
        ("double", b"1e999", "the text is not a valid double; write a number"),
        ("uuid", b"\xff", "the text is not a valid uuid; write a UUID, for example"),
        ("string", b"\xff", "the text is not a valid string"),
        ("json", b"{", "not JSON"),
        ("short", b"40000", "short cannot hold this number"),
    ],
)
def test_a_text_that_is_no_such_value_is_refused(name: str, text: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        of(name).of_text(text)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("avro", "needs a schema registry.*in Python: Consumer.*Avro.*Allowed here: plain, json"),
        ("hex", "for records use --output hex"),
        ("jsn", "did you mean 'json'"),
    ],
)
def test_a_format_that_cannot_be_read_with_is_refused_by_name(name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        format_to_read(name)


def test_auto_is_refused_for_writing() -> None:
    with pytest.raises(ConfigError, match="--format auto is for reading; allowed: plain, json"):
        format_to_write("auto")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", b'"a"'),
        (
            pa.table({"a": [1, None], "b": [b"x", b"\xff"]}),
            b'{"a":[1,null],"b":["x",{"base64":"/w=="}]}',
        ),
        ({"big": 10**30, "odd": {1, 2}}, b'{"big":%d,"odd":[1,2]}' % 10**30),
        ([float("nan"), float("inf"), 1 + 2j], b'[null,"inf","(1+2j)"]'),
        (np.array([[1, 2], [3, 4]]), b"[[1,2],[3,4]]"),
    ],
)
def test_any_value_has_a_json_text(value: object, text: bytes) -> None:
    assert json_text(value) == text


def test_what_dolphindb_has_and_json_has_not_is_shown_all_the_same() -> None:
    matrix = find_format("dolphindb").encode(np.array([[1, 2], [3, 4]]))
    assert of("auto").text(matrix) == b"[[1,2],[3,4]]"


def test_a_line_becomes_a_value_of_the_format() -> None:
    reader = LineReader(separator=":", format=of("long"))
    assert list(reader.drafts([b"k:258"])) == [Draft(b"k", b"\0\0\0\0\0\0\1\2")]
    assert list(LineReader(format=of("json")).drafts([b"null"])) == [Draft(None, None)]


def test_a_line_that_is_no_value_of_the_format_is_refused_by_its_number() -> None:
    with pytest.raises(
        RecordError, match=r"^line 2: the text is not a valid long.*the 1 before it were sent"
    ):
        list(LineReader(format=of("long")).drafts([b"1", b"one"]))


def test_the_value_of_a_json_line_becomes_a_value_of_the_format() -> None:
    lines = [
        b'{"value": 258}',
        b'{"value": "258"}',
        b'{"value": null}',
        b'{"value_base64": "/w=="}',
    ]
    drafts = LineReader(as_json=True, format=of("long")).drafts(lines)
    assert [draft.value for draft in drafts] == [b"\0\0\0\0\0\0\1\2"] * 2 + [None, b"\xff"]


def test_a_record_that_does_not_decode_is_shown_with_its_error_and_counted() -> None:
    printer = Printer(Output.text, ":", of("long"))
    assert printer(record(b"ab")) == (
        b"k:error: t[0] offset 7: long is 8 bytes long, not 2: b'ab'\n"
    )
    assert printer(record(b"\0\0\0\0\0\0\1\2")) == b"k:258\n"
    assert printer.failed == 1


def test_a_document_holds_the_decoded_value_or_the_bytes_and_the_error() -> None:
    printer = Printer(Output.json, None, of("json"))
    good = json.loads(printer(record(b'{"a": 100000000000000000000}')))
    assert good["value"] == {"a": 10**20}
    assert json.loads(printer(record(None)))["value"] is None
    bad = json.loads(printer(record(b"{")))
    assert (bad["value_base64"], bad["error"][:8]) == ("ew==", "not JSON")
    assert "value" not in bad
    assert list(LineReader(as_json=True).drafts([json.dumps(bad).encode()])) == [
        Draft(b"k", b"{", (), 3)
    ]


def test_bytes_and_decoding_are_not_asked_for_together() -> None:
    with pytest.raises(ConfigError, match="--output hex shows bytes, and --format long decodes"):
        Printer(Output.hex, None, of("long"))
