"""The fast path of the JSON kernel accepts only what the reference decoder accepts, with equal values.

Schemas are made at random, records to fit them; then records with one odd value, and with broken bytes.
"""

import base64
import json
from decimal import Context
from decimal import Decimal as PythonDecimal

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.decode.kernels import text_kernel
from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.json import build
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.strict import ReferenceDecoder
from penstock.decode.kernels.outcome import MisfitError
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct
from penstock.pipeline.schema import Schema

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
NAMES = ["a", "b", "C", "my name", "ü", "`.$"]
digits = st.text("0123456789", min_size=1, max_size=8)
exponents = st.sampled_from(["", "", "", "e2", "E-1", "e+0"])
zones = st.sampled_from(["", "Z", "+02:00", "-0530", "+00", "-23:59"])
days = st.dates().map(str)
clocks = st.builds(
    "{}{}{}".format,
    st.times().map(lambda found: str(found.replace(microsecond=0))),
    st.sampled_from(["", ".1", ".123", ".123456", ".120000000"]),
    zones,
)
# What is on the edge of being accepted, for any type.
ODD = [
    *("null", "true", '""', "[]", "{}", "[1]", '{"a":1}', '"abc"', '"é\\ud83d\\ude00\\u0000"'),
    *(
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1e2",
        "1e400",
        "-1e400",
        "1e-400",
        "3.4028235677973366e38",
        "1e39",
    ),
    *("127", "128", "-129", "32768", "2147483648", "9223372036854775807", "9223372036854775808"),
    *(
        "123456789012345678901234567890",
        "0.1",
        "123.456",
        "99999.5",
        '"1.5"',
        '"+1."',
        '".5"',
        '" 1"',
    ),
    *('"1_0"', '"NaN"', '"1e2"', '"1e99999999999999999999"', "1e99999", "9" * 39, "9" * 5000),
    '"340282366920938463463374607431768211457"',
    *('"2024-02-30"', '"0000-01-01"', '"9999-12-31"', '"2024-1-1"', '"\\uff12024-01-01"'),
    *('"0001-01-01T00:00:00+01:00"', '"9999-12-31T23:59:59.999999Z"', '"9999-12-31T23:59:59-01"'),
    *('"2024-01-01"', '"2024-01-01T10"', '"2024-01-01 10:30"', '"2024-01-01T24:00:00"'),
    *('"2024-01-01T00:00:60Z"', '"2024-01-01T00:00:00.1234567Z"', '"2024-01-01T00:00:00+24:00"'),
    *('"2024-01-01T00:00:00."', '"2024-01-01T00:00:00z"', '"2024-01-01T00:00:00Z\\n"'),
    *('"aGk="', '"aGk"', '"aG k="', '"=aGk"', '"aGk=aGk="', '"é"'),
    *("NaN", "Infinity", "-Inf", "01", "+1", "1.", ".5", "-", "tru", '"\\x"', '"\\ud800"', '"\t"'),
]
odd = st.sampled_from(ODD)

decimals = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: Decimal(precision, scale))
)
scalars = st.sampled_from(
    [
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
        *("string", "binary", "date", "timestamp", "timestamp_ntz"),
    ]
).map(Scalar)


def structs(types):
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique_by=str.lower)
    field = st.tuples(types, st.booleans())
    return names.flatmap(
        lambda found: st.lists(field, min_size=len(found), max_size=len(found)).map(
            lambda rest: Struct(tuple(Field(n, *r) for n, r in zip(found, rest, strict=True)))
        )
    )


types = st.recursive(
    scalars | decimals,
    lambda inner: inner.map(Array) | inner.map(Map) | structs(inner),
    max_leaves=5,
)
schemas = structs(types).map(lambda struct: Schema(struct.fields))


def json_of(type_):
    """JSON text that fits a type, nearly always."""
    if isinstance(type_, Struct):
        return _object_of(type_)
    if isinstance(type_, Array):
        return st.lists(nullable(type_.element), max_size=3).map(
            lambda found: f"[{','.join(found)}]"
        )
    if isinstance(type_, Map):
        pairs = st.dictionaries(st.text(max_size=3), nullable(type_.value), max_size=3)
        return pairs.map(_object)
    if isinstance(type_, Decimal):
        return _decimal_of(type_)
    return _scalar_of(type_.name)


def nullable(type_):
    return st.one_of(json_of(type_), json_of(type_), json_of(type_), st.just("null"))


def _scalar_of(name):
    if name in BITS:
        limit = 2 ** (BITS[name] - 1)
        return st.integers(-limit, limit - 1).map(str)
    width = 32 if name == "float" else 64
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=width).map(repr)
    text = st.text(max_size=6)
    return {
        "boolean": st.sampled_from(["true", "false"]),
        "float": numbers,
        "double": numbers | st.integers(-(10**20), 10**20).map(str),
        "string": text.map(json.dumps) | text.map(lambda t: json.dumps(t, ensure_ascii=False)),
        "binary": st.binary(max_size=6).map(lambda b: f'"{base64.b64encode(b).decode()}"'),
        "date": days.map(json.dumps),
        "timestamp": st.builds('"{}{}{}"'.format, days, st.sampled_from("T "), clocks),
        "timestamp_ntz": st.datetimes().map(lambda found: json.dumps(found.isoformat())),
    }[name]


def _decimal_of(type_):
    whole = st.integers(0, 10 ** (type_.precision - type_.scale) - 1)
    part = st.text("0123456789", min_size=1, max_size=type_.scale) if type_.scale else st.just("0")
    plain = st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), whole, part)
    return plain | plain.map(json.dumps) | whole.map(str)


def _object_of(struct):
    def members(values):
        pairs = zip(struct.fields, values, strict=True)
        return _object({f.name: v for f, v in pairs if v is not None} | {"unknown": '{"x":[1.5]}'})

    value = [json_of(f.type) if f.required else nullable(f.type) | st.none() for f in struct.fields]
    return st.tuples(*value).map(members)


def _object(members):
    inner = ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items())
    return f"{{{inner}}}"


def records_of(schema):
    return json_of(schema.struct).map(str.encode)


@st.composite
def odd_records(draw, schema):
    """A record with one odd value somewhere at the top."""
    field = draw(st.sampled_from(schema.fields))
    others = {f.name: draw(json_of(f.type)) for f in schema.fields if f.required and f is not field}
    return _object({**others, field.name: draw(odd)}).encode()


@st.composite
def mutated_records(draw, schema):
    """A record with a few bytes cut out, put in, or replaced."""
    record = bytearray(draw(records_of(schema)))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(record)))
        end = start + draw(st.integers(0, 3))
        record[start:end] = draw(
            st.binary(max_size=2)
            | st.sampled_from([b"", b"}", b"{", b"\n", b"null", b'"', b",", b"}{"])
        )
    return bytes(record)


many = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def batches(records):
    return schemas.flatmap(
        lambda schema: st.tuples(st.just(schema), st.lists(records(schema), min_size=1, max_size=6))
    )


def by_reference(schema, record):
    """The row as Arrow gives it back, or None."""
    columns = arrow_schema(schema)
    try:
        row = ReferenceDecoder(schema).decode(record)
    except MisfitError:
        return None
    cells = [pa.array([row[f.name]], f.type) for f in columns]
    return exact(pa.RecordBatch.from_arrays(cells, schema=columns))[0]


def by_kernel(schema, records):
    batch, failures = JsonKernel(schema).decode(pa.array(records, pa.binary()))
    batch.validate(full=True)
    bad = {failure.index for failure in failures}
    rows = iter(exact(batch))
    return [None if at in bad else next(rows) for at in range(len(records))]


def exact(batch):
    """Rows in a form that tells 0.0 from -0.0."""
    return [repr(row) for row in batch.to_pylist()]


@many
@given(batches(records_of))
def test_records_that_fit_become_what_the_reference_decoder_says(case):
    schema, records = case
    assert by_kernel(schema, records) == [by_reference(schema, record) for record in records]


@many
@given(batches(odd_records))
def test_odd_values_are_judged_as_the_reference_decoder_judges_them(case):
    schema, records = case
    assert by_kernel(schema, records) == [by_reference(schema, record) for record in records]


@many
@given(batches(mutated_records))
def test_nothing_broken_is_accepted_that_the_reference_decoder_refuses(case):
    schema, records = case
    for record, row in zip(records, by_kernel(schema, records), strict=True):
        assert row is None or row == by_reference(schema, record)


@many
@given(
    schemas.flatmap(lambda schema: st.tuples(st.just(schema), st.lists(st.binary(), max_size=4)))
)
def test_random_bytes_are_failures_and_never_a_crash(case):
    schema, records = case
    for record, row in zip(records, by_kernel(schema, records), strict=True):
        assert row is None or row == by_reference(schema, record)


@many
@given(batches(lambda schema: records_of(schema) | odd_records(schema) | mutated_records(schema)))
def test_neighbours_do_not_change_what_a_record_means(case):
    schema, records = case
    alone = [by_kernel(schema, [record])[0] for record in records]
    assert by_kernel(schema, records) == alone


stamps = st.text("0123456789-+:TZ .", max_size=26) | st.builds("{}T{}".format, days, clocks)


@many
@given(stamps | st.builds("{}{}".format, stamps, zones))
def test_a_timestamp_cast_in_bulk_is_one_that_is_read_alone(stamp):
    _same(build.builder(Scalar("timestamp")), text_kernel.read_instant, stamp)
    _same(build.builder(Scalar("timestamp_ntz")), text_kernel.read_local_time, stamp)
    _same(build.builder(Scalar("date")), text_kernel.read_date, stamp[:10])


@many
@given(
    decimals,
    st.text("0123456789-+.eE ", max_size=50) | st.from_regex(text_kernel._NUMBER, fullmatch=True),
)
def test_a_decimal_cast_in_bulk_is_one_that_is_read_alone(type_, number):
    read = lambda found: text_kernel.read_decimal(found, type_.precision, type_.scale)  # noqa: E731
    _same(build.builder(type_), read, number)


def _same(bulk, alone, value):
    try:
        found = bulk([value])[0].as_py()
    except build.UNFIT:
        return
    assert found == alone(value)


@given(decimals, st.data())
def test_every_decimal_that_fits_is_kept_to_the_last_digit(type_, data):
    unscaled = data.draw(st.integers(-(10**type_.precision) + 1, 10**type_.precision - 1))
    number = PythonDecimal(unscaled).scaleb(-type_.scale, Context(80))
    record = f'{{"d": {number:f}}}'.encode()
    batch, failures = JsonKernel(Schema((Field("d", type_),))).decode(pa.array([record]))
    assert (batch.to_pylist(), failures) == ([{"d": number}], [])
