"""Letters as they are read back: our headers are the last ones, and one bad letter hides no other."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from penstock.engine.dead_letters.letter import DeadLetter, as_headers, from_record, from_row
from penstock.record import Record

WHOLE = DeadLetter(
    pipeline="orders",
    epoch=7,
    batch=3,
    stage="decode",
    topic="orders",
    partition=1,
    offset=42,
    timestamp=datetime(2026, 1, 31, 8, 0, 0, 123000, tzinfo=timezone.utc),
    error_type="NotJson",
    error="not JSON",
    key=b"k",
    value=b"v",
)
OURS = as_headers(WHOLE)


def record(headers: list[tuple[str, bytes | None]]) -> Record:
    return Record.of("dead", 2, 99, b"k", b"v", headers=headers)


def changed(name: str, value: bytes | None) -> list[tuple[str, bytes | None]]:
    return [(key, value if key == f"penstock.{name}" else old) for key, old in OURS]


def test_a_letter_is_read_back_as_it_was_written() -> None:
    assert from_record(record(OURS)) == WHOLE


@pytest.mark.parametrize(
    "own",
    [
        [("penstock.x", b"\xff")],
        [("penstock.stage", b"\xff\xfe"), ("penstock.offset", b"-1")],
        [("penstock.stage", b"planned"), ("penstock.error", b"[1,2,3]")],
        [("a", None), ("a", b"\x00"), ("penstock.offset", None)],
        [("huge", b"x" * 1_000_000)],
        OURS[::-1],
        OURS * 3,
    ],
)
def test_headers_of_the_record_that_look_like_ours_stay_its_own(
    own: list[tuple[str, bytes | None]],
) -> None:
    letter = from_record(record([*own, *OURS]))
    assert letter is not None
    assert letter.headers == own
    assert (letter.id, letter.stage, letter.identity) == (WHOLE.id, "decode", WHOLE.identity)


@pytest.mark.parametrize(
    "headers",
    [
        changed("offset", b"-1"),
        changed("offset", b"abc"),
        changed("offset", b"9" * 30),
        changed("offset", b"9" * 10_000),
        changed("offset", "\u0663".encode()),
        changed("offset", None),
        changed("partition", b"2147483648"),
        changed("partition", b"\xff"),
        changed("epoch", b"1.5"),
        changed("batch", b"-7"),
        changed("topic", b"\xff"),
        changed("topic", b""),
        changed("stage", b"planned"),  # a note whose error names no letter
        [("penstock.stage", b"decode")],
        [("penstock.stage", b"\xff")],
    ],
)
def test_a_letter_that_cannot_be_read_is_shown_by_its_place_with_the_reason(
    headers: list[tuple[str, bytes | None]],
) -> None:
    letter = from_record(record(headers))
    assert letter is not None
    assert not letter.is_readable
    assert (letter.id, letter.stage, letter.is_note) == ("dead-2-99", "unreadable", False)
    assert letter.error
    assert (letter.key, letter.value, letter.headers) == (b"k", b"v", headers)


def test_text_that_is_not_utf8_in_an_error_is_shown_escaped() -> None:
    letter = from_record(record(changed("error", b"caf\xe9")))
    assert letter is not None
    assert letter.error == "caf\\xe9"


def test_a_time_that_cannot_be_read_is_no_time() -> None:
    letter = from_record(record(changed("timestamp", b"+10000-01-01T00:00:00.000000Z")))
    assert letter is not None
    assert (letter.id, letter.timestamp) == (WHOLE.id, None)


def test_records_of_others_are_no_letters() -> None:
    assert from_record(record([])) is None
    assert from_record(record([("penstock.x", b"\xff"), ("trace", b"1")])) is None


def test_letters_whose_headers_came_in_another_order_are_read_by_their_last_values() -> None:
    letter = from_record(record([("penstock.offset", b"1"), ("own", b"1"), *OURS[::-1]]))
    assert letter is not None
    assert letter.id == WHOLE.id
    assert letter.headers == [("penstock.offset", b"1"), ("own", b"1")]


def test_the_time_is_written_in_utc_whatever_zone_it_was_given_in() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert WHOLE.timestamp is not None
    elsewhere = DeadLetter(
        topic="t", partition=0, offset=0, stage="step", timestamp=WHOLE.timestamp.astimezone(tokyo)
    )
    assert dict(as_headers(elsewhere))["penstock.timestamp"] == b"2026-01-31T08:00:00.123000Z"


def test_a_row_that_cannot_be_read_is_shown_and_the_same_row_has_the_same_id() -> None:
    row = {"stage": None, "topic": "t", "value": b"v", "headers": None}
    first, second = from_row(dict(row)), from_row(dict(row))
    assert not first.is_readable
    assert first.id == second.id
    assert first.id != from_row(row | {"value": b"w"}).id


def test_a_letter_that_was_finished_for_an_earlier_process_is_readable() -> None:
    found = from_record(record(changed("batch", b"-1")))
    assert found is not None
    assert (found.is_readable, found.batch) == (True, -1)


def test_a_letter_of_an_import_has_its_own_place_and_is_dropped_by_it() -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("penstock.pipeline", b"orders"),
        ("penstock.stage", b"import"),
        ("penstock.place", b'{"inode":7}'),
        ("penstock.error_type", b"DecodeError"),
        ("penstock.error", b"not JSON"),
    ]
    letter = from_record(record(headers))
    assert letter is not None
    assert (letter.id, letter.stage, letter.error) == ("dead-2-99", "import", "not JSON")
    assert (letter.value, letter.headers) == (b"v", [("penstock.place", b'{"inode":7}')])
    note = from_record(record(as_headers(letter.noted("dropped"))))
    assert note is not None
    assert (note.stage, note.identity) == ("dropped", letter.identity)
