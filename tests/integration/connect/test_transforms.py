"""Transforms give the results of Apache Kafka's own classes, for the same configurations and records.

A test run compares each fifth case; `PENSTOCK_TRANSFORMS=all` compares all, and takes some minutes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.services.connect_cases import (
    NOON,
    Sample,
    chain,
    maps,
    nested,
    orders,
    random_chain,
    random_sample,
    scalars,
    transform,
)
from tests.services.connect_comparison import NOT_TRIED, ours, real, same
from tests.services.connect_payloads import decimal_payload
from tests.services.connect_transforms import ConnectTransforms

from penstock.connect.transforms.binding import bind
from penstock.errors import ConfigError
from penstock.formats.connect import (
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    SchemaBuilder,
    date,
    decimal,
    time,
    timestamp,
)

CASTS = "i8:string,i16:int8,i32:int16,id:int32,f32:int64,f64:int8,ok:int32,text:int64,day:int32"
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
ALL_LETTERS = (
    "G yy yyyy y YYYY M MM MMM MMMM w W D DDD d dd F E EEEE u a H HH k K h hh m mm s ss S SSS SSSSS "
    "z zzzz Z X XXX ''"
)
_CASES: list[tuple[str, dict[str, str], Sample]] = []
ALL = os.environ.get("PENSTOCK_TRANSFORMS") == "all"


def case(name: str, config: dict[str, str], *samples: Sample) -> None:
    _CASES.extend((f"{name}-{n}", config, sample) for n, sample in enumerate(samples))


def both(name: str, kind: str, *samples: Sample, **options: str) -> None:
    case(f"{name}-value", transform(f"{kind}$Value", **options), *samples)


ORDERS, NESTED, MAPS = orders(), nested(), maps()
NO_TIME = Sample(STRING, STRING).add("k", "v", timestamp=None)

both(
    "insert-all",
    "InsertField",
    ORDERS,
    MAPS,
    topic_field="t",
    partition_field="p!",
    offset_field="o?",
    timestamp_field="ts",
    static_field="st!",
    static_value="fixed",
)
both("insert-existing", "InsertField", ORDERS, MAPS, static_field="text", static_value="x")
both("insert-in-text", "InsertField", scalars(STRING, "x"), static_field="s", static_value="x")
both(
    "insert-keeps-null",
    "InsertField",
    ORDERS,
    static_field="s",
    static_value="",
    replace_null_with_default="false",
)
case("insert-key", transform("InsertField$Key", topic_field="t"), ORDERS, MAPS)
case(
    "insert-no-time",
    transform("InsertField$Value", timestamp_field="ts"),
    Sample(None, None).add(1, {"a": 1}, timestamp=None),
)

case(
    "insert-null-leaves-old",
    transform("InsertField$Value", timestamp_field="at"),
    Sample(None, None).add(1, {"at": "old"}, timestamp=None).add(2, {"at": "old"}),
)

both("replace-exclude", "ReplaceField", ORDERS, MAPS, NESTED, exclude="i8,b,in,nothing")
both("replace-include", "ReplaceField", ORDERS, MAPS, include="id,text,a,c,state")
both("replace-both", "ReplaceField", ORDERS, MAPS, include="id,text,a", exclude="text,a")
both("replace-rename", "ReplaceField", ORDERS, MAPS, renames="id:key,text:i d,a:z.z")
both("replace-rename-twice", "ReplaceField", ORDERS, renames="id:same,text:same")
both("replace-no-default", "ReplaceField", ORDERS, exclude="i8", replace_null_with_default="false")
case("replace-key", transform("ReplaceField$Key", exclude="part"), ORDERS)

both(
    "mask-zero",
    "MaskField",
    ORDERS,
    fields="i8,i16,i32,id,f32,f64,ok,text,day,clock,at,state,tags,counts",
)
both("mask-price", "MaskField", ORDERS, fields="price")
both("mask-bytes", "MaskField", ORDERS, fields="raw")
both("mask-struct", "MaskField", NESTED, fields="in")
both("mask-maps", "MaskField", MAPS, fields="a,b,c,d,e,l,o")
both("mask-number", "MaskField", ORDERS, fields="i8,i16,i32,id,f32,f64,text", replacement="42")
both("mask-large", "MaskField", ORDERS, fields="i8", replacement="300")
both("mask-text", "MaskField", ORDERS, fields="text,state", replacement="x y")
both("mask-not-number", "MaskField", ORDERS, fields="i32", replacement="x")
both("mask-ok", "MaskField", ORDERS, fields="ok", replacement="1")
both("mask-day", "MaskField", ORDERS, fields="day", replacement="1")
both("mask-maps-number", "MaskField", MAPS, fields="a,b,c", replacement="42")
both("mask-maps-list", "MaskField", MAPS, fields="l", replacement="42")
case("mask-key", transform("MaskField$Key", fields="id"), ORDERS, MAPS)

case("value-to-key", transform("ValueToKey", fields="id,text"), ORDERS)
case("value-to-key-maps", transform("ValueToKey", fields="a,none"), MAPS)
case("value-to-key-unknown", transform("ValueToKey", fields="id,nope"), ORDERS)
case(
    "value-to-key-default",
    transform("ValueToKey", fields="level", replace_null_with_default="false"),
    ORDERS,
)

both("hoist", "HoistField", ORDERS, MAPS, scalars(STRING, "a"), scalars(date(), 5), field="line x")
case("hoist-key", transform("HoistField$Key", field="id"), ORDERS, MAPS)

both("extract", "ExtractField", ORDERS, field="level")
both("extract-null", "ExtractField", ORDERS, field="level", replace_null_with_default="false")
both("extract-struct", "ExtractField", NESTED, field="in")
both("extract-unknown", "ExtractField", ORDERS, field="nope")
both("extract-maps", "ExtractField", MAPS, field="o")
both("extract-missing", "ExtractField", MAPS, field="nope")
case(
    "extract-null-is-tombstone",
    chain(
        ("ExtractField$Value", {"field": "e"}),
        ("Filter", {"predicate": "p"}),
        p=("RecordIsTombstone", {}),
    ),
    Sample(None, None).add(1, {"e": None}).add(2, {"e": 1}).add(3, {}),
)
both("extract-v2", "ExtractField", NESTED, field="in.deep.z", field_syntax_version="V2")
both("extract-v2-quoted", "ExtractField", NESTED, field="in.`y.z`", field_syntax_version="V2")
both("extract-v2-unknown", "ExtractField", NESTED, field="in.q", field_syntax_version="V2")
both("extract-v2-scalar", "ExtractField", NESTED, field="a.q", field_syntax_version="V2")
both("extract-v2-maps", "ExtractField", MAPS, field="o.p.q", field_syntax_version="V2")
both("extract-v2-maps-scalar", "ExtractField", MAPS, field="a.p", field_syntax_version="V2")
case("extract-key", transform("ExtractField$Key", field="id"), ORDERS)
both("extract-from-text", "ExtractField", scalars(STRING, "a"), field="id")

both("set-schema", "SetSchemaMetadata", ORDERS, NESTED, schema_name="N", schema_version="9")
both("set-schema-name", "SetSchemaMetadata", scalars(INT64, 5), schema_name="Only")
both("set-schema-maps", "SetSchemaMetadata", MAPS, schema_name="N")

case("timestamp-router", transform("TimestampRouter"), ORDERS, NO_TIME)
case(
    "timestamp-router-format",
    transform(
        "TimestampRouter",
        topic_format="${timestamp}_${topic}_${topic}",
        timestamp_format="YYYY-'week'-ww HH.mm",
    ),
    ORDERS,
)
case("regex-router", transform("RegexRouter", regex="(o)(.*)", replacement="$2-$1-x"), ORDERS)
case("regex-router-first", transform("RegexRouter", regex="o|orders", replacement="<$0>"), ORDERS)
case("regex-router-part", transform("RegexRouter", regex="ord", replacement="x"), ORDERS)
case("regex-router-star", transform("RegexRouter", regex=".*", replacement="all"), ORDERS)
case(
    "regex-router-group",
    transform("RegexRouter", regex="(?<n>[a-z]+)", replacement=r"\$${n}"),
    ORDERS,
)

both("flatten", "Flatten", NESTED, MAPS, ORDERS)
both("flatten-delimiter", "Flatten", NESTED, MAPS, delimiter="_._")
both("flatten-text", "Flatten", scalars(STRING, "x"))
both(
    "flatten-clash",
    "Flatten",
    Sample(
        STRING,
        SchemaBuilder.struct()
        .field("a.b", INT32)
        .field("a", SchemaBuilder.struct().field("b", INT32).build())
        .build(),
    ).add("k", {"a.b": 1, "a": {"b": 2}}),
)
_DEFAULTS = (
    SchemaBuilder.struct()
    .field(
        "s",
        SchemaBuilder.struct()
        .field("x", INT32)
        .field("d", SchemaBuilder("int32", default=4, optional=True).build())
        .optional()
        .build(),
    )
    .build()
)
both(
    "flatten-defaults",
    "Flatten",
    Sample(STRING, _DEFAULTS).add("a", {"s": {"x": 1, "d": None}}).add("b", {"s": None}),
)

both("cast-some", "Cast", ORDERS, spec=CASTS)
for _type in ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"):
    _fields = ("id", "i8", "f32", "f64", "ok", "day", "clock", "at", "price", "level")
    both(f"cast-to-{_type}", "Cast", ORDERS, spec=",".join(f"{name}:{_type}" for name in _fields))
    both(
        f"cast-text-{_type}",
        "Cast",
        scalars(
            STRING,
            "1",
            "-7",
            "+3",
            "300",
            "1.5",
            " 1",
            "",
            "x",
            "NaN",
            "nan",
            "TRUE",
            "1f",
            "99999999999999999999",
        ),
        spec=_type,
    )
    both(f"cast-maps-{_type}", "Cast", MAPS, spec=f"a:{_type},c:{_type},d:{_type},none:{_type}")
    both(
        f"cast-double-{_type}",
        "Cast",
        scalars(FLOAT64, 0.5, -0.5, 1e10, -1e10, 1e19, -1e19, 128.9),
        spec=_type,
    )
both("cast-bytes", "Cast", ORDERS, spec="raw:string")
both("cast-bytes-number", "Cast", ORDERS, spec="raw:int32")
both("cast-list", "Cast", ORDERS, spec="tags:string")
both("cast-unknown", "Cast", ORDERS, spec="nope:string")
_DEFAULT_TEXT = SchemaBuilder("string", default="n/a", optional=True).build()
_WITH_TEXT = SchemaBuilder.struct().field("n", _DEFAULT_TEXT).build()
both("cast-default-text", "Cast", Sample(STRING, _WITH_TEXT).add("k", {"n": "1"}), spec="n:int32")
both("cast-no-default", "Cast", ORDERS, spec="level:string", replace_null_with_default="false")
both("cast-defaults", "Cast", ORDERS, spec="level:float64,state:string")
both("cast-nested-name", "Cast", NESTED, spec="in.x:string")
both("cast-maps-text", "Cast", MAPS, spec="b:boolean,l:string")
both("cast-maps-number", "Cast", MAPS, spec="b:int32")
both(
    "cast-decimals",
    "Cast",
    scalars(
        decimal(8),
        *(decimal_payload(x, 8) for x in ("0", "0.00000001", "-1.5", "123456789.12345678")),
    ),
    spec="string",
)
both(
    "cast-decimal-fields",
    "Cast",
    Sample(STRING, SchemaBuilder.struct().field("d", decimal(8)).build())
    .add("a", {"d": decimal_payload("-1.5", 8)})
    .add("b", {"d": decimal_payload("123456789.12345678", 8)})
    .add("c", {"d": decimal_payload("0.00000001", 8)}),
    spec="d:string",
)
case("cast-key", transform("Cast$Key", spec="string"), scalars(INT64, 1, -(2**63)), MAPS)

_TEXTS = (
    "2023-11-14",
    "2023-1-5",
    "2024-13-40",
    "2024-02-30 and more",
    "x",
    "",
    " 2024-01-01",
    "2024-01-01T00:00:00Z",
)
for _target in ("string", "unix", "Date", "Time", "Timestamp"):
    for _name in ("at", "day", "clock", "id", "nothing"):
        both(
            f"time-{_name}-{_target}",
            "TimestampConverter",
            ORDERS,
            field=_name,
            target_type=_target,
            format=ISO,
        )
    both(
        f"time-text-{_target}",
        "TimestampConverter",
        scalars(STRING, *_TEXTS),
        target_type=_target,
        format="yyyy-MM-dd",
    )
    both(
        f"time-map-{_target}",
        "TimestampConverter",
        MAPS,
        field="at",
        target_type=_target,
        format=ISO,
    )
    both(
        f"time-map-day-{_target}",
        "TimestampConverter",
        MAPS,
        field="day",
        target_type=_target,
        format="yyyy-MM-dd",
    )
for _precision in ("seconds", "milliseconds", "microseconds", "nanoseconds"):
    _numbers = scalars(INT64, 0, 1, -1, 1_700_000_000, -1_700_000_000)
    both(
        f"unix-{_precision}",
        "TimestampConverter",
        _numbers,
        target_type="Timestamp",
        unix_precision=_precision,
    )
    both(
        f"to-unix-{_precision}",
        "TimestampConverter",
        scalars(timestamp(), 0, 1, -1, NOON, -NOON),
        target_type="unix",
        unix_precision=_precision,
    )
both(
    "time-letters",
    "TimestampConverter",
    scalars(timestamp(), 0, NOON, NOON + 5 * 10**9, 1_735_603_199_999, 1_704_067_199_001),
    target_type="string",
    format=ALL_LETTERS,
)
for _format, _given in {
    "yyyyMMddHHmmssSSS": ("20231114221320123", "2023", "20231114 221320", "2023-114221320123"),
    "yyMMdd": ("231114", "99-1-1", "500101"),
    "EEE, dd MMM yyyy HH:mm:ss Z": (
        "Tue, 14 Nov 2023 22:13:20 +0530",
        "tue, 1 november 2023 1:2:3 -0100",
        "Xyz, 14 Nov 2023 22:13:20 +0530",
    ),
    "yyyy-MM-dd'T'HH:mm:ssX": (
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:20+05",
        "2023-11-14T22:13:20",
    ),
    "yyyy-MM-dd HH:mm:ss.SSSXXX": (
        "2023-11-14 22:13:20.5+01:00",
        "2023-11-14 22:13:20.123456-00:30",
    ),
    "hh:mm a": ("12:30 AM", "12:30 pm", "1:05 PM", "13:00 AM"),
    "kk:mm": ("24:10", "1:10"),
    "yyyy DDD": ("2024 060", "2023 400"),
    "y-M-d": ("24-1-1", "2024-1-1", "1999-1-1"),
    "yyyy-MM-dd HH:mm:ss z": (
        "2023-11-14 22:13:20 GMT",
        "2023-11-14 22:13:20 UTC",
        "2023-11-14 22:13:20 GMT-3:00",
    ),
    "dd''MM''yyyy": ("01'02'2024", "01-02-2024"),
}.items():
    both(
        f"read {_format}",
        "TimestampConverter",
        scalars(STRING, *_given),
        target_type="unix",
        format=_format,
    )
both(
    "unix-large",
    "TimestampConverter",
    scalars(INT64, 1_700_000_000_123_456, -1_700_000_000_123_456_789),
    target_type="unix",
    unix_precision="nanoseconds",
)
both(
    "read-old-year",
    "TimestampConverter",
    scalars(STRING, "1500-01-01", "24-01-02"),
    target_type="unix",
    format="yyyy-MM-dd",
)
both("time-no-format", "TimestampConverter", scalars(STRING, "2024-01-01"), target_type="unix")
both("time-list", "TimestampConverter", ORDERS, field="tags", target_type="unix")
case(
    "time-key", transform("TimestampConverter$Key", target_type="Date"), scalars(timestamp(), NOON)
)

case("insert-header", transform("InsertHeader", header="h", value_literal="abc"), ORDERS)
for _literal in (
    "1",
    "1.0",
    "-0.5",
    "1e3",
    "true",
    "TRUE",
    "null",
    '"q"',
    "[1,2]",
    "{a:1}",
    "2019-08-23",
    " x ",
    "007",
    "1.10",
    "3000000000",
    "0.1",
    "NaN",
    "",
    "99999999999999999999",
    "1.23456789012",
    "1e-5",
    "123456.75",
    "1e40",
    "1.5e300",
    "-2.50",
    "true x",
    "10:00:00.000Z",
    "[1, 2.5]",
):
    case(
        f"insert-header {_literal}",
        transform("InsertHeader", header="h", value_literal=_literal),
        NO_TIME,
    )
case("drop-headers", transform("DropHeaders", headers="trace,none"), ORDERS)
for _operation in ("copy", "move"):
    both(
        f"header-from-{_operation}",
        "HeaderFrom",
        ORDERS,
        fields="id,text,ok,f32,raw,day,clock,at,price,level",
        headers="a,b,c,d,e,f,g,h,i,trace",
        operation=_operation,
    )
    both(
        f"header-from-maps-{_operation}",
        "HeaderFrom",
        MAPS,
        fields="a,b,c,d,e",
        headers="a,b,c,d,e",
        operation=_operation,
    )
both("header-from-nested", "HeaderFrom", NESTED, fields="in,list", headers="a,b", operation="copy")
both(
    "header-from-lists", "HeaderFrom", ORDERS, fields="tags,counts", headers="a,b", operation="move"
)
both("header-from-map-list", "HeaderFrom", MAPS, fields="l,o", headers="a,b", operation="copy")
both("header-from-unknown", "HeaderFrom", ORDERS, fields="nope", headers="a", operation="copy")
case(
    "header-from-key",
    transform("HeaderFrom$Key", fields="id", headers="key", operation="move"),
    ORDERS,
)

_ROUTED = (
    Sample(STRING, STRING)
    .add("a", "x")
    .add("b", None)
    .add("c", "y", topic="other")
    .add("d", "z", headers=[])
)
_OPTIONS = {"predicate": "p"}
case("filter-tombstones", chain(("Filter", _OPTIONS), p=("RecordIsTombstone", {})), _ROUTED, MAPS)
case(
    "filter-others",
    chain(("Filter", {**_OPTIONS, "negate": "true"}), p=("HasHeaderKey", {"name": "trace"})),
    _ROUTED,
)
case(
    "filter-topic",
    chain(("Filter", _OPTIONS), p=("TopicNameMatches", {"pattern": "o.h.r"})),
    _ROUTED,
)
case(
    "filter-topic-part",
    chain(("Filter", _OPTIONS), p=("TopicNameMatches", {"pattern": "oth"})),
    _ROUTED,
)
case(
    "route-where",
    chain(
        ("RegexRouter", {**_OPTIONS, "regex": ".*", "replacement": "n"}),
        ("Filter", {"predicate": "q"}),
        p=("TopicNameMatches", {"pattern": "other"}),
        q=("TopicNameMatches", {"pattern": "n"}),
    ),
    _ROUTED,
)
case(
    "mask-where",
    chain(
        ("MaskField$Value", {**_OPTIONS, "fields": "text,a"}), p=("HasHeaderKey", {"name": "trace"})
    ),
    ORDERS,
    MAPS,
)
case(
    "value-to-key-not-tombstone",
    chain(
        ("ValueToKey", {**_OPTIONS, "negate": "true", "fields": "a"}), p=("RecordIsTombstone", {})
    ),
    MAPS,
)
case(
    "long-chain",
    chain(
        ("Flatten$Value", {}),
        ("ReplaceField$Value", {"renames": "in.x:x"}),
        ("Cast$Value", {"spec": "x:string"}),
        ("InsertField$Value", {"topic_field": "t"}),
        ("ValueToKey", {"fields": "x"}),
        ("ExtractField$Key", {"field": "x"}),
        ("HoistField$Value", {"field": "v"}),
        ("RegexRouter", {"regex": "(.*)", "replacement": "$1-x"}),
    ),
    NESTED,
)
case("bytes", transform("HoistField$Value", field="b"), scalars(BYTES, "AAEC"))
case("times", transform("Cast$Value", spec="string"), scalars(time(), 0, 1, 86_399_999))

_CASES_OF_NAMES = SchemaBuilder.struct().field("a", INT32).field("A", STRING).build()
both(
    "names-by-case",
    "InsertField",
    Sample(STRING, _CASES_OF_NAMES).add("k", {"a": 1, "A": "x"}).add("t", None),
    static_field="s",
    static_value="v",
)
both("no-fields-left", "ReplaceField", NESTED, include="nothing")
_BEYOND = "the moment is after the year 294,247, the last one of Spark's timestamps"
KNOWN: dict[str, str] = {
    "mask-price-value-0": "Kafka's zero has the scale 0, and its own converters refuse it",
    "set-schema-name-value-0": "Kafka refuses to name a schema that is not a struct's",
    "cast-decimals-value-0": "Kafka leaves the name Decimal to the text, and its converters refuse it",
    "times-0": "Kafka leaves the name Time to the text, and its converters refuse it",
    "cast-decimal-fields-value-0": "Java writes small decimals with an exponent: 1E-8",
    "time-id-string-value-0": _BEYOND,
    "time-id-Date-value-0": _BEYOND,
    "time-id-Timestamp-value-0": _BEYOND,
    "read-old-year-value-0": "Java's calendar is the Julian one before 1582",
    "insert-header [1, 2.5]-0": "lists and objects as literals are text, without a common type",
}

_HOISTED = "a tombstone that is hoisted has no schema in Connect, and that of its column here"
KNOWN_RANDOM = {
    "random-13": "a key that is replaced by a later transform is not computed, and cannot be refused",
    "random-30": _HOISTED,
    "random-33": _HOISTED,
}


@pytest.fixture(scope="module")
def service() -> Iterator[ConnectTransforms]:
    with ConnectTransforms() as started:
        yield started


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.errors import utils

    from penstock.engine import spark_session

    session = spark_session()
    with pytest.MonkeyPatch.context() as patch:
        # Each call of a function of columns would note where it was called, in six calls of Java.
        patch.setattr(utils, "_enable_debugging_cache", False)
        yield session


def compared(
    spark: Any, service: ConnectTransforms, cases: list[tuple[str, dict[str, str], Sample]]
) -> dict[str, str]:
    """Compare all records of all cases; return the first difference of each case."""
    different: dict[str, str] = {}
    records = 0
    for name, config, sample in cases:
        theirs = real(service, config, sample)
        made = ours(spark, config, sample, theirs)
        records += sum(our != NOT_TRIED for our in made)
        for n, (their, our) in enumerate(zip(theirs, made, strict=True)):
            if not same(their, our):
                different.setdefault(
                    name, f"record {n} of {config}:\n  Kafka:    {their}\n  Penstock: {our}"
                )
    print(
        f"{len(cases)} cases, {records} records compared, {len(cases) - len(different)} cases equal"
    )
    return different


def test_results_are_those_of_kafka(spark: Any, service: ConnectTransforms) -> None:
    cases = _CASES if ALL else _CASES[::5]
    different = compared(spark, service, cases)
    for name in different:
        print(f"{name}: {KNOWN.get(name, 'NOT KNOWN')}")
    unknown = [f"{name}: {text}" for name, text in different.items() if name not in KNOWN]
    assert not unknown, "\n".join(unknown)
    gone = {*KNOWN} & {name for name, _, _ in cases} - {*different}
    assert not gone, f"no differences any more: {gone}"


def test_random_chains_give_the_results_of_kafka(spark: Any, service: ConnectTransforms) -> None:
    source = random.Random(18)
    cases = []
    for number in range(36 if ALL else 8):
        sample = random_sample(source)
        cases.append((f"random-{number}", random_chain(source, sample.value), sample))
    different = compared(spark, service, cases)
    unknown = [f"{name}: {text}" for name, text in different.items() if name not in KNOWN_RANDOM]
    assert not unknown, "\n".join(unknown)


def test_a_conditional_transform_leaves_the_fields_of_both_forms(spark: Any) -> None:
    schema = SchemaBuilder.struct().field("id", INT32).build()
    sample = (
        Sample(STRING, schema).add("a", {"id": 1}).add("b", {"id": 2}, topic="x").add("c", None)
    )
    config = chain(
        ("InsertField$Value", {"static_field": "s!", "static_value": "v", "predicate": "p"}),
        p=("TopicNameMatches", {"pattern": "x"}),
    )
    made = ours(spark, config, sample, [None, None, None])
    assert [each["value"]["payload"] for each in made] == [
        {"id": 1, "s": None}, {"id": 2, "s": "v"}, None,
    ]  # fmt: skip
    assert made[0]["value"]["schema"]["fields"][1]["optional"] is True


def test_a_conditional_transform_cannot_change_a_type(spark: Any) -> None:
    schema = SchemaBuilder.struct().field("id", INT32).build()
    config = chain(
        ("Cast$Value", {"spec": "id:string", "predicate": "p"}), p=("RecordIsTombstone", {})
    )
    with pytest.raises(ConfigError, match=r"makes value\.id string in some records"):
        bind(config, STRING, schema)
