"""A record that Kafka would refuse is a dead letter, and the others of its portion are not."""

from __future__ import annotations

import pyarrow as pa

from penstock.imports.part_task import fitting
from penstock.pipeline.importing import BadRecord, Portion


def test_records_with_a_large_value_or_key_are_bad_ones() -> None:
    values = [b"a", b"b" * 90, None, b"c" * 40]
    keys = [None, b"k", b"t", b"k" * 80]
    earlier = BadRecord(b"?", "no JSON")
    found = fitting(Portion.of(values, {"at": 4}, keys, [earlier]), 100)
    assert [*found.records.messages("t")] == [
        ("t", b"a", None),
        ("t", b"b" * 90, b"k"),
        ("t", None, b"t"),
    ]
    assert [each.error_type for each in found.bad] == ["ValueError", "TooLargeError"]
    assert "has 120 bytes, and at most 100" in found.bad[1].error
    assert found.bad[1].key == b"k" * 80
    assert found.position == {"at": 4}


def test_a_portion_that_fits_and_one_without_records_stay_as_they_are() -> None:
    for values in ([b"a"], []):
        portion = Portion.of(values, {"at": 1})
        assert fitting(portion, 100) is portion


def test_headers_and_topics_stay_with_their_records() -> None:
    columns = {"value": pa.array([b"x" * 200, b"y"]), "topic": pa.array(["one", "two"])}
    found = fitting(Portion(pa.record_batch(columns), {}), 100)
    assert found.records.to_pylist() == [{"value": b"y", "topic": "two"}]


def test_headers_are_part_of_the_size() -> None:
    kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    large = [{"key": "k" * 30, "value": b"v" * 30}, {"key": "n", "value": None}]
    columns = {
        "value": pa.array([b"x" * 20, b"y" * 20, None, b"z"]),
        "headers": pa.array([large, None, large, []], kind),
    }
    found = fitting(Portion(pa.record_batch(columns), {}), 80)
    assert found.records["value"].to_pylist() == [b"y" * 20, b"z"]
    assert [each.error.partition(",")[0] for each in found.bad] == [
        "the record has 101 bytes",
        "the record has 81 bytes",
    ]


def test_the_dead_letter_has_the_key_unless_that_is_too_long_itself() -> None:
    values, keys = [b"x" * 200, b"x", b"x" * 200], [b"id-1", b"k" * 20_000, None]
    batch = pa.record_batch({"value": pa.array(values), "key": pa.array(keys)})
    for portion in (Portion.of(values, {}, keys), Portion(batch, {})):
        assert [each.key for each in fitting(portion, 100).bad] == [b"id-1", None, None]
    without = fitting(Portion(pa.record_batch({"value": pa.array(values)}), {}), 100)
    assert [each.key for each in without.bad] == [None, None]


def test_headers_count() -> None:
    def row(*sizes: int) -> list[dict[str, object]] | None:
        return [{"key": "k" * 5, "value": b"x" * size} for size in sizes] or None

    kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    headers = [row(), row(10, 20), row(70), [{"key": "n" * 100, "value": None}], []]
    columns = {
        "value": pa.array([b"0", b"1", b"2", b"3", b"4"]),
        "headers": pa.array(headers, kind),
    }
    batch = pa.record_batch(columns)
    for given in (batch, pa.concat_batches([batch.slice(4), batch]).slice(1)):
        found = fitting(Portion(given, {}), 80)
        assert found.records["value"].to_pylist() == [b"0", b"1", b"4"]
        assert [each.error.partition(",")[0] for each in found.bad] == [
            "the record has 86 bytes",
            "the record has 111 bytes",
        ]
