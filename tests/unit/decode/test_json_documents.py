"""Columns of the JSON decode that come from paths, from the elements of an array, or from the rest."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from penstock.decode.json import JsonDecode
from penstock.decode.kernels.json.json_documents import DocumentKernel, Layout
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.json_paths import parse_path
from penstock.errors import ConfigError


def decode(*records, **options):
    kernel = JsonDecode(**options).kernel()()
    return kernel(pa.record_batch({"value": pa.array(records, pa.binary())}))


def rows(*records, **options):
    decoded = decode(*records, **options)
    assert decoded.failures == []
    return decoded.rows.to_pylist()


def failure(record, **options):
    (found,) = decode(record, **options).failures
    return found.error_type, found.message


def test_fields_that_are_not_declared_are_kept_as_they_were_written():
    record = b'{"id":1, "x": 1.50, "y": {"z": [1e400, "\\u00e9"]}}'
    assert rows(record, b'{"id":2}', schema="id int", rest="more") == [
        {"id": 1, "more": '{"x":1.50,"y":{"z": [1e400, "\\u00e9"]}}'},
        {"id": 2, "more": None},
    ]


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none() | st.booleans()))
def test_declared_fields_and_the_rest_are_the_whole_record(record):
    record.pop("id", None)
    (row,) = rows(json.dumps({"id": 1, **record}).encode(), schema="id int", rest="more")
    assert json.loads(row["more"] or "{}") == record


def test_without_options_the_kernel_is_the_direct_one():
    assert isinstance(JsonDecode(schema="id int").kernel()(), JsonKernel)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.a.b[1].c", 5),
        ("$['a']['b'][1][\"c\"]", 5),
        ("$.a.b[7].c", None),
        ("$.a.x.c", None),
        ("$.n.x[0]", None),
        ("$.missing", None),
        ("$['it\\'s']", 6),
    ],
)
def test_a_path_leads_to_a_value_or_to_null(path, value):
    record = b'{"a": {"b": [0, {"c": 5}]}, "n": null, "it\'s": 6, "c": 1}'
    assert rows(record, schema="c int", paths={"c": path}) == [{"c": value}]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b'{"a": 1}', "$.a: found the number 1, expected an object"),
        (b'{"a": {"b": {}}}', "$.a.b: found an object, expected an array"),
        (b'{"a": {"b": ["x"]}}', "c: found the text 'x', declared int"),
    ],
)
def test_another_type_at_a_path_is_the_error_of_the_record(record, message):
    assert failure(record, schema="c int", paths={"c": "$.a.b[0]"}) == ("WrongType", message)


@pytest.mark.parametrize(
    "path", ["a", "$", "$[0]", "$.", "$.a[*]", "$..a", "$.a[-1]", "$.a b", "$.a['"]
)
def test_a_path_that_is_not_supported_is_refused(path):
    with pytest.raises(ConfigError, match="is not a path"):
        parse_path(path)


def test_each_element_becomes_a_row_and_knows_its_record():
    decoded = decode(
        b'{"id":1,"legs":[{"px":5},{"px":6,"id":9}]}',
        b'{"id":2,"legs":[]}',
        b'{"id":3}',
        b'{"id":4,"legs":[null]}',
        schema="id int, px int",
        explode="legs",
    )
    assert [tuple(row.values()) for row in decoded.rows.to_pylist()] == [(1, 5), (9, 6), (4, None)]
    assert (decoded.origins.to_pylist(), decoded.failures) == ([0, 0, 3], [])


def test_records_without_elements_are_kept_on_request():
    explode = {"field": "legs", "keep_empty": True}
    records = [
        b'{"id":1,"legs":[]}',
        b'{"id":2}',
        b'{"id":3,"legs":null}',
        b'{"id":4,"legs":[{"px":1}]}',
    ]
    decoded = decode(*records, schema="id int, px int", explode=explode)
    assert decoded.rows.column("px").to_pylist() == [None, None, None, 1]
    assert decoded.origins.to_pylist() == [0, 1, 2, 3]


def test_elements_that_are_not_objects_are_the_value_of_their_field():
    assert rows(b'{"id":1,"tags":["a","b"]}', schema="id int, tags string", explode="tags") == [
        {"id": 1, "tags": "a"},
        {"id": 1, "tags": "b"},
    ]


def test_paths_and_the_rest_apply_to_the_rows_of_an_exploded_record():
    found = rows(
        b'{"id":1,"u":0,"legs":[{"px":{"v":5},"q":1},{"q":2}]}',
        schema="id int, price int",
        explode="legs",
        paths={"price": "$.legs.px.v"},
        rest="rest",
    )
    assert [(row["price"], json.loads(row["rest"])) for row in found] == [
        (5, {"u": 0, "px": {"v": 5}, "q": 1}),
        (None, {"u": 0, "q": 2}),
    ]


def test_a_record_with_one_bad_element_fails_as_a_whole():
    good, bad = b'{"id":1,"legs":[{"px":5}]}', b'{"id":2,"legs":[{"px":1},{"px":"x"},{"px":"y"}]}'
    decoded = decode(good, bad, b"{", good, schema="id int, px int", explode="legs")
    assert (decoded.rows.column("px").to_pylist(), decoded.origins.to_pylist()) == ([5, 5], [0, 3])
    assert [(one.index, one.error_type) for one in decoded.failures] == [
        (1, "WrongType"),
        (2, "MalformedJson"),
    ]
    assert decoded.failures[0].message == "legs[1]: px: found the text 'x', declared int"


def test_a_field_to_explode_that_is_not_an_array_is_an_error():
    found = failure(b'{"legs":{}}', schema="px int", explode="legs")
    assert found == ("WrongType", "legs: found an object, explode expects an array")


def test_a_record_whose_rows_would_take_too_much_memory_is_refused(monkeypatch):
    monkeypatch.setenv("PENSTOCK_MAX_DECODED_BYTES", str(2**20))
    record = b'{"s":"%s","legs":[%s1]}' % (b"x" * 100_000, b"1," * 20)
    assert failure(record, schema="s string, legs int", explode="legs")[0] == "TooLarge"


@pytest.mark.parametrize("record", [None, b"", b"[]", b"{", b'{"a":"\xff"}', b"[" * 1000])
def test_records_that_are_not_objects_fail_as_in_the_direct_kernel(record):
    batch = pa.record_batch({"value": pa.array([record], pa.binary())})
    schema = JsonDecode(schema="a string").schema_
    direct, rewritten = JsonKernel(schema)(batch), DocumentKernel(schema, Layout(rest="r"))(batch)
    assert list(rewritten.failures) == list(direct.failures)
    assert rewritten.rows.num_rows == 0


def test_an_empty_batch_has_the_columns():
    assert decode(schema="id int", rest="r").rows.schema.names == ["id", "r"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"paths": {"idd": "$.a"}}, "'idd' is not a declared column"),
        ({"paths": {"id": "$.*"}}, "is not a path"),
        ({"rest": "ID"}, "two fields are called"),
        ({"explode": {"field": "a", "keep": True}}, "keep"),
    ],
)
def test_options_that_cannot_work_are_refused(options, says):
    with pytest.raises(ValidationError, match=says):
        JsonDecode(schema="id int", **options)
