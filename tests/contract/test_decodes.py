"""What every decode promises, run against each of them: rows for good records, an error for bad ones."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from penstock.pipeline import FAILED, registry

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


CASES = {
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
def case(request: pytest.FixtureRequest) -> Any:
    case = CASES[request.param]
    cls = registry.component("decode", request.param)
    return case, cls.model_validate(case.options)


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
