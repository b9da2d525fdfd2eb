"""Every form of paging imports each record once, over pages, polls and restarts after any page."""

from __future__ import annotations

from typing import Any

import pytest
from tests.services.json_api import Answer, JsonApi, Seen
from tests.unit.imports.http_reading import import_all, import_page_by_page

from penstock.errors import ConfigError, TerminalError


class Store:
    """Records that only grow, given out in the ways of different APIs."""

    def __init__(self, count: int) -> None:
        self.records = [{"id": n} for n in range(count)]

    def grow(self, count: int) -> None:
        self.records += [{"id": len(self.records) + n} for n in range(count)]

    def by_offset(self, seen: Seen) -> Any:
        start = seen.number("offset")
        return {"data": self.records[start : start + min(seen.number("limit", 100), 70)]}

    def by_page(self, seen: Seen) -> Any:
        start = (seen.number("page", 1) - 1) * 50
        if start and start >= len(self.records):
            return Answer({"detail": "Invalid page."}, 404)
        return {"data": self.records[start : start + 50]}

    def by_body_link(self, seen: Seen) -> Any:
        page = seen.number("p")
        following = f"/items?p={page + 1}&note=a b" if len(self.records) > (page + 1) * 50 else None
        return {"data": self.records[page * 50 : page * 50 + 50], "next": following}

    def by_header_link(self, seen: Seen) -> Any:
        page, headers = seen.number("p"), {}
        if len(self.records) > (page + 1) * 50:
            headers = {"Link": f'<?p=0>; rel="first", <?p={page + 1}>; rel="next"'}
        return Answer({"data": self.records[page * 50 : page * 50 + 50]}, headers=headers)

    def by_last_cursor(self, seen: Seen) -> Any:
        """Give no cursor with the last page."""
        start = int(seen.params.get("after", "c0").removeprefix("c"))
        page = self.records[start : start + 50]
        more = start + 50 < len(self.records)
        return {"data": page, "meta": {"cursor": f"c{start + 50}"} if more else {}}

    def by_endless_cursor(self, seen: Seen) -> Any:
        """Give a cursor with every page, after its last record."""
        start = seen.number("after")
        page = self.records[start : start + 50]
        return {"data": page, "meta": {"cursor": start + len(page)}}


NEXT = {"next_link": "/next"}
CURSOR = {"cursor": {"pointer": "/meta/cursor", "parameter": "after"}}
PAGES = {"count": "pages", "first": 1, "size": 50, "parameter": "page", "end_status": 404}
FORMS = [
    pytest.param("by_offset", {"offset": {"size": 100}}, id="offset"),
    pytest.param("by_page", {"offset": PAGES}, id="page-number"),
    pytest.param("by_body_link", NEXT, id="next-link"),
    pytest.param("by_header_link", {"next_link": "header"}, id="link-header"),
    pytest.param("by_last_cursor", CURSOR, id="cursor"),
    pytest.param("by_endless_cursor", CURSOR, id="endless-cursor"),
]


def options(api: JsonApi, paging: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    given = {"url": api.url, "records": "/data", **more}
    return {**given, "paging": paging} if paging else given


@pytest.mark.parametrize(("responds", "paging"), FORMS)
@pytest.mark.parametrize("take", [import_all, import_page_by_page])
def test_each_record_is_imported_once_while_the_api_grows(
    api: JsonApi, responds: str, paging: dict[str, Any], take: Any
) -> None:
    store = Store(0)
    api.respond = getattr(store, responds)
    position, ids = None, []
    # Within a page, to its end, over several pages, and nothing at all.
    for growth in (0, 30, 20, 1, 149, 0, 277, 23):
        store.grow(growth)
        done = take(options(api, paging), position)
        assert len(done.ids) == growth
        position = done.position
        ids += done.ids
    assert ids == [*range(500)]


@pytest.mark.parametrize(("responds", "paging"), FORMS)
def test_with_restart_each_poll_imports_everything(
    api: JsonApi, responds: str, paging: dict[str, Any]
) -> None:
    store = Store(120)
    api.respond = getattr(store, responds)
    ((form, given),) = paging.items()
    if given == "header":
        given = {}
    elif isinstance(given, str):
        given = {"pointer": given}
    again = options(api, {form: {**given, "at_end": "restart"}})
    if responds == "by_endless_cursor":
        api.respond = store.by_last_cursor
    first = import_all(again)
    assert first.ids == [*range(120)]
    assert first.position["poll"] == 1
    second = import_all(again, first.position)
    assert second.ids == [*range(120)]
    assert second.position["poll"] == 2


def test_cursor_pages_without_records_go_on_while_the_api_says_that_there_is_more(
    api: JsonApi,
) -> None:
    api.respond = lambda seen: {
        "data": [{"id": 9}] if seen.number("after") == 7 else [],
        "next": seen.number("after") + 1,
        "more": seen.number("after") < 8,
    }
    paging = {"cursor": {"pointer": "/next", "parameter": "after", "more": "/more", "start": 3}}
    done = import_all(options(api, paging))
    assert done.ids == [9]
    assert done.position == {"paging": "cursor", "cursor": "9", "number": True}


def test_a_parameter_can_be_in_the_body(api: JsonApi) -> None:
    api.respond = lambda _: {"data": [{"id": 1}], "next": 12345678901234567890123}
    paging = {"cursor": {"pointer": "/next", "parameter": "at", "into": "body"}}
    done = import_all(options(api, paging, method="POST", body={"q": "x"}), pages=2)
    assert done.ids == [1, 1][: len(done.ids)]
    assert [seen.body for seen in api.requests] == [
        b'{"q":"x"}',
        b'{"q":"x","at":12345678901234567890123}',
    ]
    assert api.requests[0].headers["Content-Type"] == "application/json"


def test_a_last_page_that_was_changed_is_refused_instead_of_imported_twice(api: JsonApi) -> None:
    api.respond = lambda _: {"data": [{"id": 1}, {"id": 2}], "next": None}
    position = import_all(options(api, NEXT)).position
    api.respond = lambda _: {"data": [{"id": 2}, {"id": 3}, {"id": 4}], "next": None}
    with pytest.raises(TerminalError, match=r"first 2 records .* not the same now"):
        import_all(options(api, NEXT), position)


def test_a_page_that_is_larger_than_its_size_is_refused(api: JsonApi) -> None:
    api.respond = lambda _: {"data": [{"id": n} for n in range(60)]}
    with pytest.raises(TerminalError, match=r"60 records, and 'size' is 50"):
        import_all(options(api, {"offset": PAGES}))


@pytest.mark.parametrize("start", [None, "0"])
@pytest.mark.parametrize("form", ["cursor", "next_link"])
def test_pages_that_lead_in_a_circle_are_an_error(
    api: JsonApi, form: str, start: str | None
) -> None:
    def respond(seen: Seen) -> Any:
        here = seen.number("c")
        there = (here + 1) % 3
        next_ = str(there) if form == "cursor" else f"?c={there}"
        return {"data": [{"id": here}], "next": next_}

    api.respond = respond
    cursor = {"pointer": "/next", "parameter": "c", **({"start": start} if start else {})}
    paging = {"cursor": cursor} if form == "cursor" else {"next_link": "/next"}
    url = f"{api.url}?c=0" if form == "next_link" and start else api.url
    with pytest.raises(TerminalError, match="leads back to a page that was imported just now"):
        import_all({"url": url, "records": "/data", "paging": paging})
    assert len(api.requests) <= 4


@pytest.mark.parametrize(
    ("paging", "reason"),
    [
        ({"cursor": {"pointer": "/next", "parameter": "c"}}, "has no cursor at '/next'"),
        ({"next_link": "/next"}, "has no address at '/next'"),
    ],
)
def test_half_of_a_surrogate_pair_leads_nowhere(
    api: JsonApi, paging: dict[str, Any], reason: str
) -> None:
    api.respond = lambda _: Answer(b'{"data":[{"id":1}],"next":"\\ud83d"}')
    with pytest.raises(TerminalError, match=reason):
        import_all({"url": api.url, "records": "/data", "paging": paging})


@pytest.mark.parametrize("target", ["http://example.com/x", "file:///etc/passwd", "http://u@h/"])
def test_a_next_link_to_another_host_is_not_followed(api: JsonApi, target: str) -> None:
    api.respond = lambda _: {"data": [], "next": target}
    with pytest.raises(TerminalError, match=r"the next link .* is not followed"):
        import_all(options(api, NEXT))
    assert len(api.requests) == 1


def test_a_position_of_another_form_or_with_wrong_values_is_refused(api: JsonApi) -> None:
    with pytest.raises(
        ConfigError, match="it is one of the paging 'cursor', and 'offset' is given"
    ):
        import_all(options(api, {"offset": {}}), {"paging": "cursor", "cursor": "x"})
    with pytest.raises(ConfigError, match="'count' is not a count"):
        import_all(options(api, {"offset": {}}), {"count": "many"})
    with pytest.raises(ConfigError, match="'cursor' is not a text"):
        import_all(options(api, CURSOR), {"cursor": 5})


def test_a_position_set_by_hand_is_enough_to_go_on_from(api: JsonApi) -> None:
    api.respond = Store(200).by_page
    done = import_all(options(api, {"offset": PAGES}), {"count": 173})
    assert done.ids == [*range(173, 200)]
