"""What every decode promises, run against each of them: rows for good records, an error for bad ones."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from penstock.errors import ConfigError
from penstock.formats import find_format
from penstock.pipeline import FAILED, ORIGIN, registry

RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)


def upper(value: str) -> dict[str, str]:
    if "bad" in value:
        raise ValueError(f"cannot take {value!r}")
    return {"v": value.upper()}


@dataclass
class Case:
    options: dict[str, Any]
    good: bytes
    row: dict[str, Any]
    bad: bytes | None
    error: tuple[str, str] | None


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": ["null", "string"]}],
}
# What protoc writes for `message R { int32 n = 1; string s = 2; }`.
FIELD = FieldDescriptorProto
PROTOBUF = FileDescriptorSet(
    file=[
        FileDescriptorProto(
            name="r.proto",
            syntax="proto3",
            message_type=[
                DescriptorProto(
                    name="R",
                    field=[
                        FIELD(
                            name="n", number=1, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL
                        ),
                        FIELD(
                            name="s", number=2, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL
                        ),
                    ],
                )
            ],
        )
    ]
)
JSON_SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
    "required": ["n"],
}

CASES = {
    "avro": Case(
        {"schema": AVRO},
        b"\x02\x02\x02x",
        {"n": 1, "s": "x"},
        b"\x02\x08",
        ("MalformedAvro", "branch 4 of a union of 2"),
    ),
    "protobuf": Case(
        {"descriptor": "r.desc"},
        b"\x08\x01\x12\x01x",
        {"n": 1, "s": "x"},
        b"\x08\x01\x12\x09x",
        ("MalformedProtobuf", "these 5 bytes are not Protobuf"),
    ),
    "json_schema": Case(
        {"schema": JSON_SCHEMA},
        b'{"n": 1, "s": "x"}',
        {"n": 1, "s": "x"},
        b'{"n": "one"}',
        ("WrongType", "n: found"),
    ),
    "raw": Case({}, b"\xff", {"value": b"\xff", "topic": "t", "partition": 1}, None, None),
    "text": Case(
        {"column": "line"},
        "grün".encode(),
        {"line": "grün"},
        b"\xff\xfe",
        ("UnicodeDecodeError", "the value is not UTF-8"),
    ),
    "json": Case(
        {"schema": "n int not null, s string"},
        b'{"n": 1, "s": "x", "more": true}',
        {"n": 1, "s": "x"},
        b'{"n": "one"}',
        ("WrongType", "n: found"),
    ),
    "csv": Case(
        {"schema": "n int not null, s string"},
        b'1,"x"',
        {"n": 1, "s": "x"},
        b"one,x",
        ("WrongType", "line 1, n: found the text 'one', declared int"),
    ),
    "arrow": Case(
        {"schema": "n int not null, s string"},
        find_format("arrow").encode({"n": 1, "s": "x"}),
        {"n": 1, "s": "x"},
        find_format("arrow").encode({"n": "one"}),
        ("WrongType", "n: found string, declared int"),
    ),
    "dolphindb": Case(
        {"schema": "n int not null, s string"},
        find_format("dolphindb").encode({"n": 1, "s": "x"}),
        {"n": 1, "s": "x"},
        find_format("dolphindb").encode(["one"]),
        ("WrongShape", "found a vector or a scalar"),
    ),
    "auto": Case(
        {"schema": "n int not null, s string"},
        b'[{"n": 1, "s": "x"}]',
        {"n": 1, "s": "x"},
        find_format("arrow").encode({"n": "one"}),
        ("WrongType", "n: found string, declared int"),
    ),
    "primitive": Case(
        {"type": "long", "column": "n"},
        bytes(7) + b"\x05",
        {"n": 5},
        b"short",
        ("FormatError", "long is 8 bytes long, not 5"),
    ),
    "python": Case(
        {"function": upper, "schema": "v string not null"},
        b"good",
        {"v": "GOOD"},
        b"bad",
        ("ValueError", "cannot take 'bad'"),
    ),
}


def records(spark: Any, values: list[bytes | None]) -> Any:
    moment = datetime(2024, 1, 2, 3, 4, 5)
    rows = [
        (b"k", value, "t", 1, offset, moment, 0, [("h", b"1"), ("h", b"2")])
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, RECORD).coalesce(1)


def test_every_decode_has_a_case() -> None:
    assert sorted(CASES) == registry.names("decode")


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    case = CASES[request.param]
    cls = registry.component("decode", request.param)
    monkeypatch.chdir(tmp_path)
    Path("r.desc").write_bytes(PROTOBUF.SerializeToString())
    return case, cls.model_validate(case.options).bind(["t"])


@pytest.mark.by_turns
def test_a_good_record_becomes_its_row(spark: Any, case: Any) -> None:
    expected, decode = case

    (row,) = decode.decode(records(spark, [expected.good])).collect()

    found = row.asDict()
    assert found.pop(FAILED) is None
    assert {name: found[name] for name in expected.row} == expected.row


def test_rows_come_in_the_order_of_their_records(spark: Any, case: Any) -> None:
    expected, decode = case

    rows = decode.decode(records(spark, [expected.good] * 25)).collect()

    assert len(rows) == 25
    assert all(row[FAILED] is None for row in rows)


def test_a_bad_record_is_one_failed_row_and_does_not_touch_its_neighbours(
    spark: Any, case: Any
) -> None:
    expected, decode = case
    if expected.bad is None:
        assert decode.failures(records(spark, [expected.good])).count() == 0
        return

    rows = decode.decode(records(spark, [expected.good, expected.bad, expected.good])).collect()

    marks = [row[FAILED] for row in rows]
    assert sorted(mark is None for mark in marks) == [False, True, True]
    assert [mark for mark in marks if mark] == [zlib.crc32(expected.bad)]


def test_the_bad_records_come_back_whole_with_what_was_wrong(spark: Any, case: Any) -> None:
    expected, decode = case
    if expected.bad is None:
        return
    values = [expected.good, expected.bad, expected.good, expected.bad]

    failed = decode.failures(records(spark, values)).collect()

    assert [(row["topic"], row["partition"], row["offset"]) for row in failed] == [
        ("t", 1, 1),
        ("t", 1, 3),
    ]
    for row in failed:
        assert (row["key"], row["value"]) == (b"k", expected.bad)
        assert [tuple(header) for header in row["headers"]] == [("h", b"1"), ("h", b"2")]
        assert row["error_type"] == expected.error[0]
        assert row["error"].startswith(expected.error[1])
        assert row[FAILED] == zlib.crc32(expected.bad)


@pytest.mark.by_turns
def test_both_passes_agree_on_which_records_are_bad(spark: Any, case: Any) -> None:
    expected, decode = case
    values = [expected.good, expected.bad or expected.good, None, b"", b"null", b"\x00" * 10]

    marks = sorted(
        row[FAILED]
        for row in decode.decode(records(spark, values)).collect()
        if row[FAILED] is not None
    )

    assert marks == sorted(row[FAILED] for row in decode.failures(records(spark, values)).collect())


def test_no_records_give_no_rows(spark: Any, case: Any) -> None:
    _, decode = case
    assert decode.decode(records(spark, [])).count() == 0


def test_metadata_stands_beside_the_right_row(spark: Any) -> None:
    for name, value in (("json", b'{"n": 1}'), ("python", b"good")):
        options = CASES[name].options | {"metadata": ["offset", "key", "headers"]}
        decode: Any = registry.component("decode", name).model_validate(options)

        rows = decode.decode(records(spark, [value, CASES[name].bad, value])).collect()

        good = [row for row in rows if row[FAILED] is None]
        assert [row["kafka_offset"] for row in good] == [0, 2]
        assert [row["kafka_key"] for row in good] == [b"k", b"k"]


@pytest.mark.parametrize(
    "options",
    [
        {"schema": "Kafka_Offset int", "metadata": ["offset"]},
        {"schema": "id int", "key": {"json": {"schema": "ID int"}}, "key_prefix": ""},
        {
            "schema": "id int",
            "key": {"json": {"schema": "topic string"}},
            "key_prefix": "kafka_",
            "metadata": ["topic"],
        },
        {"schema": "id int", "rest": "kafka_topic", "metadata": ["topic"]},
        {"schema": f"{FAILED} bigint"},
    ],
)
def test_value_key_and_metadata_cannot_have_a_column_in_common(
    spark: Any, options: dict[str, Any]
) -> None:
    decode: Any = registry.component("decode", "json").model_validate(options)
    with pytest.raises(ConfigError, match="have one name for Spark"):
        decode.decode(records(spark, [b"{}"]))


def test_the_origin_of_a_row_is_not_confused_with_its_own_columns(spark: Any) -> None:
    options = {"schema": "kafka_offset int, kafka_topic string", "metadata": ["partition"]}
    decode: Any = registry.component("decode", "json").model_validate(options)
    value = b'{"kafka_offset": 7, "kafka_topic": "mine"}'

    (row,) = decode.traced(records(spark, [value])).collect()

    own = {"kafka_offset": 7, "kafka_topic": "mine", "kafka_partition": 1, FAILED: None}
    assert row.asDict() == own | dict(zip(ORIGIN, ("t", 1, 0), strict=True))
