"""The JSON kernel: good rows in order, a failure with words for each bad record, nothing in between."""

import pickle
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.strict import ReferenceDecoder
from penstock.errors import ConfigError
from penstock.pipeline.schema import Schema

EVERYTHING = Schema.parse(
    "s string not null, d double, f float, i int, b bigint, de decimal(5,2), wide decimal(38,10),"
    " da date, t timestamp, n timestamp_ntz, bi binary, bo boolean, a array<int>,"
    " st struct<x: int not null, y: string, z: struct<q: decimal(3,1) not null>>,"
    " m map<string,double>, l array<struct<x: tinyint not null>>"
)
NOTHING = dict.fromkeys(EVERYTHING.names)


def decode(*records, schema=EVERYTHING):
    return JsonKernel(schema).decode(pa.array(records, pa.binary()))


def failure(record, schema=EVERYTHING):
    good = b'{"s": "good"}'
    batch, failures = decode(good, record, good, schema=schema)
    assert [row["s"] for row in batch.to_pylist()] == ["good", "good"]
    (found,) = failures
    assert found.index == 1
    return found.error_type, found.message


def test_every_type_is_read():
    batch, failures = decode(
        b'{"s":"\\u00e9","d":1.5,"f":0.5,"i":-1,"b":9223372036854775807,"de":1.5,'
        b'"wide":"1234567890123456789012345678.0123456789","da":"2024-02-29",'
        b'"t":"2024-01-01T02:00:00.123456+02:00","n":"2024-01-01 02:00:00","bi":"aGk=","bo":true,'
        b'"a":[1,null],"st":{"x":1,"z":{"q":"1.5"},"w":0},"m":{"k":1,"n":null},"l":[{"x":1},null]}'
    )
    assert failures == []
    assert batch.to_pylist() == [
        {
            "s": "é",
            "d": 1.5,
            "f": 0.5,
            "i": -1,
            "b": 9223372036854775807,
            "de": Decimal("1.50"),
            "wide": Decimal("1234567890123456789012345678.0123456789"),
            "da": date(2024, 2, 29),
            "t": datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=timezone.utc),
            "n": datetime(2024, 1, 1, 2, 0),
            "bi": b"hi",
            "bo": True,
            "a": [1, None],
            "st": {"x": 1, "y": None, "z": {"q": Decimal("1.5")}},
            "m": [("k", 1.0), ("n", None)],
            "l": [{"x": 1}, None],
        }
    ]


def test_what_is_missing_or_null_and_not_required_is_null():
    nulls = ", ".join(f'"{name}": null' for name in EVERYTHING.names[1:])
    batch, failures = decode(b'{"s":"a"}', b'{"s":"a", ' + nulls.encode() + b"}")
    assert (batch.to_pylist(), failures) == ([NOTHING | {"s": "a"}] * 2, [])


def test_unknown_fields_are_ignored_whatever_they_hold():
    batch, failures = decode(b'{"s":"a","x":[{"y":1e999}],"S":1,"z":%s}' % (b"9" * 5000))
    assert (batch.to_pylist(), failures) == ([NOTHING | {"s": "a"}], [])


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2024-01-01T00:00:00Z", datetime(2024, 1, 1)),
        ("2024-01-01 00:00:00", datetime(2024, 1, 1)),
        ("2024-01-01T00:00:00.1", datetime(2024, 1, 1, 0, 0, 0, 100000)),
        ("2024-01-01T00:00:00.123456000Z", datetime(2024, 1, 1, 0, 0, 0, 123456)),
        ("2024-01-01T00:00:00+0530", datetime(2023, 12, 31, 18, 30)),
        ("2024-01-01T00:00-01:00", datetime(2024, 1, 1, 1)),
        ("2024-01-01", datetime(2024, 1, 1)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1)),
    ],
)
def test_a_timestamp_is_an_instant_and_without_a_zone_it_is_utc(written, instant):
    schema = Schema.parse("t timestamp")
    zoned, plain = b'{"t":"2024-06-01T00:00:00Z"}', b'{"t":"2024-06-01T00:00:00"}'
    batch, failures = decode(zoned, b'{"t":"%s"}' % written.encode(), plain, schema=schema)
    assert failures == []
    assert batch.column("t")[1].as_py() == instant.replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("record", "error_type", "says"),
    [
        (None, "EmptyValue", "the value is null; a JSON object is expected"),
        (b"", "EmptyValue", "the value is empty"),
        (b"  ", "MalformedJson", "not JSON"),
        (b"null", "WrongType", "found null; a JSON object is expected"),
        (b'[{"s":"a"}]', "WrongType", "found an array; a JSON object is expected"),
        (b'{"s":"a"', "MalformedJson", "truncated"),
        (b'{"s":"a"}x', "MalformedJson", "trailing characters (byte 10)"),
        (b'{"s":"a"}{"s":"b"}', "MalformedJson", "trailing characters"),
        (b'{"s":"a"}\n{"s":"b"}', "MalformedJson", "trailing characters"),
        (b'{"s":"a"}null{"s":"b"}', "MalformedJson", "trailing characters"),
        (b'{"s":"a","d":NaN}', "MalformedJson", "byte 13"),
        (b'{"s":"a","x":-Infinity}', "MalformedJson", "byte 14"),
        (b'{"s":"\xff"}', "NotUtf8", "byte 6"),
        (b'{"s":"a","x":"\xff"}', "NotUtf8", "byte 14"),
        (b'\xef\xbb\xbf{"s":"a"}', "MalformedJson", "byte 0"),
        (b"{}", "MissingField", "s: found nothing, declared string not null"),
        (b'{"s":null}', "MissingField", "s: found null, declared string not null"),
        (b'{"s":1}', "WrongType", "s: found the number 1, declared string"),
        (b'{"s":"a","d":"x"}', "WrongType", "d: found the text 'x', declared double"),
        (b'{"s":"a","d":1e400}', "OutOfRange", "d: found the number 1e400, declared double"),
        (b'{"s":"a","f":1e300}', "OutOfRange", "f: found the number 1e300, declared float"),
        (b'{"s":"a","i":1.0}', "WrongType", "i: found the number 1.0, declared int"),
        (b'{"s":"a","i":2147483648}', "OutOfRange", "declared int: its range is -2147483648 to"),
        (b'{"s":"a","b":9223372036854775808}', "OutOfRange", "declared bigint"),
        (b'{"s":"a","de":1.234}', "OutOfRange", "at most 2 digits are allowed after the point"),
        (b'{"s":"a","de":1234.5}', "OutOfRange", "at most 3 digits are allowed before the point"),
        (b'{"s":"a","de":true}', "WrongType", "de: found true, declared decimal(5,2)"),
        (b'{"s":"a","de":" 1"}', "OutOfRange", "a decimal is a number"),
        (b'{"s":"a","da":"2024-02-30"}', "OutOfRange", "da: found the text '2024-02-30'"),
        (b'{"s":"a","da":"0000-01-01"}', "OutOfRange", "da:"),
        (
            b'{"s":"a","t":1704067200}',
            "WrongType",
            "declare bigint (or double) and convert it with",
        ),
        (b'{"s":"a","t":"2024-01-01T00:00:00.1234567Z"}', "OutOfRange", "at most 6 digits"),
        (b'{"s":"a","t":"0001-01-01T00:00:00+01:00"}', "OutOfRange", "years are 0001 to 9999"),
        (b'{"s":"a","n":"2024-01-01T00:00:00Z"}', "OutOfRange", "a timestamp_ntz has no zone"),
        (b'{"s":"a","bi":"a"}', "OutOfRange", "binary is base64 text"),
        (b'{"s":"a","bo":1}', "WrongType", "bo: found the number 1, declared boolean"),
        (b'{"s":"a","a":[1,"x"]}', "WrongType", "a[1]: found the text 'x', declared int"),
        (b'{"s":"a","st":{}}', "MissingField", "st.x: found nothing, declared int not null"),
        (b'{"s":"a","st":{"x":1,"z":{"q":null}}}', "MissingField", "st.z.q: found null"),
        (b'{"s":"a","m":{"k":"v"}}', "WrongType", "m['k']: found the text 'v', declared double"),
        (b'{"s":"a","l":[{"x":1},{"x":128}]}', "OutOfRange", "l[1].x: found the number 128"),
        (b'{"s":"a","l":{}}', "WrongType", "l: found an object, declared array<struct<x:tinyint"),
    ],
)
def test_what_does_not_fit_is_the_error_of_its_record_alone(record, error_type, says):
    found = failure(record)
    assert found[0] == error_type
    assert says in found[1]


def test_a_long_value_is_cut_short_in_the_message():
    _, message = failure(b'{"s":"a","d":"%s"}' % (b"x" * 1000))
    assert message == f"d: found the text '{'x' * 40}...', declared double"


def test_a_field_given_twice_counts_last_and_must_fit_each_time():
    batch, failures = decode(b'{"s":"a","s":"b"}', b'{"s":1,"s":"b"}')
    assert [row["s"] for row in batch.to_pylist()] == ["b"]
    assert [found.index for found in failures] == [1]


def test_two_documents_in_one_value_do_not_make_up_for_an_empty_one():
    batch, failures = decode(b'{"s":"a"}{"s":"b"}', b"", b'{"s":"c"}')
    assert [row["s"] for row in batch.to_pylist()] == ["c"]
    assert [found.index for found in failures] == [0, 1]


def test_a_document_cannot_go_on_in_the_next_value():
    batch, failures = decode(b'{"s":"a","x":"}', b'{"}', b'{"s":"b"}{"s":"c"}')
    assert (batch.num_rows, [found.index for found in failures]) == (0, [0, 1, 2])


def test_bad_records_are_found_among_many_and_the_others_keep_their_order():
    bad = {7: b'{"s":1}', 5000: b'{"s":"x","t":"no"}', 9000: b'{"s":"x","de":1.234}', 19_999: b"{"}
    records = [bad.get(at, b'{"s":"%d","t":"2024-01-01T00:00:00Z"}' % at) for at in range(20_000)]
    batch, failures = decode(*records)
    assert [found.index for found in failures] == list(bad)
    assert batch.column("s").to_pylist() == [str(at) for at in range(20_000) if at not in bad]


def test_pretty_printed_json_and_blanks_around_it_are_fine():
    batch, failures = decode(b'\n {\n  "s": "a"\n}\r\n', b'{"s":\t"b"}')
    assert ([row["s"] for row in batch.to_pylist()], failures) == (["a", "b"], [])


def test_an_empty_batch_gives_an_empty_batch_with_the_columns():
    batch, failures = decode()
    assert (batch.num_rows, batch.schema.names, failures) == (0, list(EVERYTHING.names), [])


def test_a_batch_of_only_bad_records_has_no_rows():
    batch, failures = decode(b"{", None)
    assert (batch.num_rows, batch.schema.names) == (0, list(EVERYTHING.names))
    assert [found.index for found in failures] == [0, 1]


def test_a_slice_of_large_binary_values_is_read_as_well():
    values = pa.array([b"{", b'{"s":"a"}', b'{"s":"b"}'], pa.large_binary()).slice(1)
    batch, failures = JsonKernel(EVERYTHING).decode(values)
    assert ([row["s"] for row in batch.to_pylist()], failures) == (["a", "b"], [])


def test_good_batches_never_use_the_reference_decoder(monkeypatch):
    def asked(*_):
        raise AssertionError("the reference decoder was called")

    monkeypatch.setattr(ReferenceDecoder, "decode", asked)
    monkeypatch.setattr(ReferenceDecoder, "cell", asked)
    test_every_type_is_read()


def test_the_kernel_pickles():
    kernel = pickle.loads(pickle.dumps(JsonKernel(EVERYTHING)))
    assert kernel.decode(pa.array([b'{"s":"a"}']))[0].to_pylist() == [NOTHING | {"s": "a"}]


def test_a_name_that_json_cannot_be_matched_with_is_refused():
    with pytest.raises(ConfigError, match="cannot be a field of JSON here"):
        JsonKernel(Schema.parse({'a"b': "int"}))


DEEP = """
import pyarrow as pa
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.pipeline.schema import Schema
n = 100_000
deep = [
    b'{"s":"a","x":' + b"[" * n + b"]" * n + b"}",
    b'{"s":' * n + b"1" + b"}" * n,
    b"[" * n,
    b'{"a":' * n,
    b'{"s":"a","x":"' + b"[" * n + b'"}',
    b'{"s":"a","x":[' + b"[]," * n + b"[]]}",
]
batch, failures = JsonKernel(Schema.parse("s string, a array<int>")).decode(pa.array(deep))
print([(found.index, found.error_type) for found in failures], batch.num_rows)
"""


def test_deep_nesting_is_an_error_of_its_record_and_never_a_crash():
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, check=False)
    expected = [(at, "TooDeep") for at in range(4)]
    assert (done.returncode, done.stdout.strip()) == (0, f"{expected} 2"), done.stderr


def test_a_record_whose_objects_would_take_too_much_memory_is_refused_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_MAX_DECODED_BYTES", str(2**20))
    kernel = JsonKernel(Schema.parse("id bigint, more array<array<int>>"))
    large = b'{"id":2,"more":[' + b"[]," * 20_000 + b"[]]}"
    rows, failures = kernel.decode(pa.array([b'{"id":1}', large, b'{"id":3}']))
    assert rows.column("id").to_pylist() == [1, 3]
    (failure,) = failures
    assert (failure.index, failure.error_type) == (1, "TooLarge")
    assert "allowed are 1048576" in failure.message


def test_large_records_are_decoded_a_few_at_a_time() -> None:
    kernel = JsonKernel(Schema.parse("id bigint, text string"))
    text = "x" * (9 * 2**20)
    records = [b'{"id":%d,"text":"%s"}' % (at, text.encode()) for at in range(3)]
    assert list(kernel._slices(pa.array([*records, b"{}"]))) == [(0, 1), (1, 1), (2, 2048 * 4)]
    rows, failures = kernel.decode(pa.array([*records, b"{}"]))
    assert (rows.column("id").to_pylist(), failures) == ([0, 1, 2, None], [])
