from datetime import datetime, timezone

import pytest

from penstock.record import Record


def test_a_record_cannot_be_changed() -> None:
    record = Record.of("trades", 0, 7, value=b"1")
    with pytest.raises(AttributeError):
        record.value = b"2"  # type: ignore[misc]


def test_a_record_tells_its_time_in_utc() -> None:
    assert Record.of("t", 0, 0, timestamp=1500).time == datetime(
        1970, 1, 1, 0, 0, 1, 500_000, tzinfo=timezone.utc
    )
    assert Record.of("t", 0, 0).time is None
