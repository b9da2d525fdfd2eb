"""Inferred columns: every sampled record decodes with them, and types are as narrow as possible."""

import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.cli.definition_text import definition_text
from penstock.decode.inference import infer
from penstock.decode.json import JsonDecode
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.pipeline import read_pipeline
from penstock.pipeline.schema import Schema

stamps = st.datetimes().map(lambda at: at.isoformat())
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.dates().map(str)
    | stamps
    | stamps.map(lambda text: f"{text}Z")
)
names = st.sampled_from(["a", "b", "C", "c", 'q"', "my name", "ü", ""]) | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
samples = st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=5)


def columns(*records):
    found = infer(
        [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    )
    return {column.name: column.type.ddl() for column in found.columns}, found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(samples)
def test_every_sampled_record_decodes_with_the_inferred_schema(sample):
    records = [json.dumps(record).encode() for record in sample]
    found = infer(records)
    assert found.failed == 0
    if found.columns:
        schema = Schema.parse(Schema(found.columns).ddl())
        rows, failures = JsonKernel(schema).decode(pa.array(records, pa.binary()))
        assert (rows.num_rows, failures) == (len(records), [])


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(samples)
def test_the_definition_is_valid_and_decodes_the_sample(tmp_path_factory, sample):
    records = [json.dumps(record).encode() for record in sample]
    found = infer(records)
    if not found.columns:
        return
    file = tmp_path_factory.mktemp("inferred") / "pipeline.yaml"
    file.write_text(definition_text("my.topic", found), encoding="utf-8")
    decode = read_pipeline(file).decode
    assert isinstance(decode, JsonDecode)
    decoded = decode.kernel()()(pa.record_batch({"value": pa.array(records, pa.binary())}))
    assert (decoded.rows.num_rows, list(decoded.failures)) == (len(records), [])


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        ([1, 2], "bigint"),
        ([1, 2.5], "double"),
        ([-(2**63), 2**63 - 1], "bigint"),
        ([2**63], "decimal(38,0)"),
        ([1, -(10**38) + 1], "decimal(38,0)"),
        ([2**63, 2.5], "double"),
        ([10**38], "double"),
        ([True, None], "boolean"),
        (["a", "2024-01-01"], "string"),
        (["2024-01-01", "2024-02-29"], "date"),
        (["2024-01-01", "2024-01-01T10:00:00Z"], "timestamp"),
        ([None], "string"),
        ([[1], [], [None, 2.5]], "array<double>"),
        ([[]], "array<string>"),
        ([{"x": 1}, {"y": "a"}], "struct<x:bigint,y:string>"),
        ([{}], "map<string,string>"),
        ([{f"k{at}": at} for at in range(30)], "map<string,bigint>"),
        ([{f"k{at}": at for at in range(30)}] * 9, None),
    ],
)
def test_the_type_is_the_narrowest_that_all_values_fit(given, type_):
    found, _ = columns(*({"v": value} for value in given))
    assert found["v"] == type_ if type_ else found["v"].startswith("struct<k0:bigint,")


def test_a_field_with_several_kinds_is_left_out_with_the_reason():
    found, whole = columns({"v": 1, "w": "a"}, {"v": "x"})
    assert (found, whole.left_out) == ({"w": "string"}, ("v",))
    assert whole.remarks["v"] == "left out: values of several kinds (integer, text)"
    assert "    rest: rest  #" in definition_text("t", whole)


def test_numbers_beyond_double_and_names_that_spark_takes_for_one_are_left_out():
    _, whole = columns(b'{"v": 1e400, "a": 1, "A": 2}')
    assert whole.left_out == ("v", "A")


def test_records_that_are_not_json_objects_are_counted():
    found, whole = columns({"a": 1}, b"no", b"[1]", b"")
    assert (found, whole.records, whole.failed) == ({"a": "bigint"}, 4, 3)
    assert definition_text("t", whole).startswith(
        "# Inferred from 4 records of the topic t; 3 of them are not JSON objects.\n"
    )
