import pytest

from penstock.errors import ConfigError
from penstock.kafka.positions import Position


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Position("earliest")),
        ("Beginning", Position("earliest")),
        ("smallest", Position("earliest")),
        ("latest", Position("latest")),
        ("end", Position("latest")),
        ("0", Position("offset", 0)),
        ("42", Position("offset", 42)),
        ("-10", Position("last", 10)),
        ("@1714560000000", Position("time", 1_714_560_000_000)),
        ("1970-01-02", Position("time", 86_400_000)),
        ("1970-01-01T00:00:01", Position("time", 1000)),
        ("1970-01-01T00:00:01Z", Position("time", 1000)),
        ("1970-01-01T02:00:00+02:00", Position("time", 0)),
    ],
)
def test_a_position_is_read_as_people_write_it(text: str, position: Position) -> None:
    assert Position.parse(text) == position


def test_an_age_is_counted_back_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 100_000.0)
    assert Position.parse("-2h") == Position("time", (100_000 - 7200) * 1000)


@pytest.mark.parametrize("text", ["", "soon", "--5", "-5y", "2024-13-01"])
def test_what_is_no_position_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Position.parse(text)
    assert repr(text) in str(caught.value)
    assert "earliest" in str(caught.value)
