"""The form `since`: nothing twice where values are equal, nothing left out where an API repeats them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.services.json_api import Answer, JsonApi, Seen
from tests.unit.imports.http_reading import import_all, import_page_by_page

from penstock.errors import ConfigError, TerminalError
from penstock.imports.http.json_text import Scalar
from penstock.imports.http.since_form import Rank


def options(api: JsonApi, **since: Any) -> dict[str, Any]:
    return {"url": api.url, "paging": {"since": {"parameter": "from", "field": "/at", **since}}}


class Events:
    """Events in the order of their time, several with the same one; at most `size` in a reply."""

    def __init__(self, size: int = 10_000) -> None:
        self.size = size
        self.events: list[dict[str, Any]] = []

    def grow(self, count: int, each: int = 3) -> None:
        start = len(self.events)
        self.events += [{"id": n, "at": 1000 + n // each} for n in range(start, start + count)]

    def inclusive(self, seen: Seen) -> Any:
        return [each for each in self.events if each["at"] >= seen.number("from")][: self.size]

    def ignoring(self, _: Seen) -> Any:
        return self.events


@pytest.mark.parametrize("take", [import_all, import_page_by_page])
@pytest.mark.parametrize(("responds", "size"), [("inclusive", 10_000), ("inclusive", 40)])
def test_each_record_is_imported_once_while_the_api_grows(
    api: JsonApi, take: Any, responds: str, size: int
) -> None:
    events = Events(size)
    api.respond = getattr(events, responds)
    given = options(api, page_size=size)
    position, ids = None, []
    # 100 and 101 end within a group of equal values.
    for growth in (0, 100, 1, 0, 199, 300):
        events.grow(growth)
        done = take(given, position)
        assert len(done.ids) == growth
        position, ids = done.position, ids + done.ids
    assert ids == [*range(600)]
    assert position["since"] == "1199"


def test_an_api_that_gives_more_than_was_asked_for_makes_nothing_twice(api: JsonApi) -> None:
    events = Events()
    events.grow(200)
    api.respond = events.ignoring
    first = import_all(options(api))
    events.grow(100)
    second = import_all(options(api), first.position)
    assert first.ids + second.ids == [*range(300)]


def test_the_first_request_has_the_start_and_the_next_the_value_as_it_came(api: JsonApi) -> None:
    api.respond = lambda _: b'[{"id":1,"at":12345678901234567890.10},{"id":2,"at":5}]'
    done = import_all(options(api, start=7))
    assert done.ids == [1, 2]
    assert [seen.params["from"] for seen in api.requests] == ["7", "12345678901234567890.10"]


def test_times_are_compared_as_times(api: JsonApi) -> None:
    times = ["2024-01-01T00:00:05.5Z", "2024-01-01T01:00:05+01:00", "2024-01-01T00:00:05.25Z"]
    api.respond = lambda _: [{"id": n, "at": at} for n, at in enumerate(times)]
    assert import_all(options(api)).position["since"] == times[0]
    assert Rank.of(Scalar("2024-01-01 00:00")) == ("time", Decimal(1704067200))
    assert Rank.of(Scalar("2024-13-01T00:00Z")) == ("text", "2024-13-01T00:00Z")


def test_records_without_a_usable_value_are_dead_letters_once(api: JsonApi) -> None:
    records = [{"id": 1}, {"id": 2, "at": 3}, {"id": 3, "at": "x"}, {"id": 4, "at": None}]
    api.respond = lambda _: records
    first = import_all(options(api))
    assert first.ids == [2]
    assert [bad.value for bad in first.bad] == [
        b'{"id": 1}',
        b'{"id": 3, "at": "x"}',
        b'{"id": 4, "at": null}',
    ]
    assert "neither a text nor a number at '/at'" in first.bad[0].error
    assert "'x' at '/at' is not a number" in first.bad[1].error
    records.append({"id": 5, "at": 3})
    second = import_all(options(api), first.position)
    assert (second.ids, second.bad) == ([5], [])


def test_bad_records_alone_are_dead_letters_once(api: JsonApi) -> None:
    api.respond = lambda _: [{"id": 1}]
    first = import_all(options(api))
    assert len(first.bad) == 1
    assert import_all(options(api), first.position).pages == 0


def test_half_of_a_surrogate_pair_is_no_value(api: JsonApi) -> None:
    api.respond = lambda _: Answer(b'[{"t":"a"},{"t":"\\ud83d"},{"t":"b"}]')
    done = import_all({"url": api.url, "paging": {"since": {"field": "/t", "parameter": "s"}}})
    assert done.values == [b'{"t":"a"}', b'{"t":"b"}']
    assert [each.value for each in done.bad] == [b'{"t":"\\ud83d"}']
    assert done.position["since"] == "b"


def test_a_full_page_that_is_not_sorted_is_refused(api: JsonApi) -> None:
    api.respond = lambda _: [{"id": 1, "at": 2}, {"id": 2, "at": 1}]
    with pytest.raises(TerminalError, match="not sorted by '/at'"):
        import_all(options(api, page_size=2))


def test_a_full_page_of_imported_records_is_refused(api: JsonApi) -> None:
    events = Events(size=4)
    events.grow(9, each=9)
    api.respond = events.inclusive
    with pytest.raises(TerminalError, match="more than 4 records have the same value"):
        import_page_by_page(options(api, page_size=4))


def test_too_many_records_with_one_value_are_refused(api: JsonApi) -> None:
    events = Events(size=20_000)
    events.grow(10_001, each=20_000)
    api.respond = events.inclusive
    with pytest.raises(TerminalError, match="more than 10000 records have the value '1000'"):
        import_all(options(api))


def test_a_position_that_is_not_a_value_is_refused(api: JsonApi) -> None:
    with pytest.raises(ConfigError, match="'since' is neither"):
        import_all(options(api), {"since": [1]})
    with pytest.raises(ConfigError, match="'seen' is not a list"):
        import_all(options(api), {"since": 1, "seen": "x"})
