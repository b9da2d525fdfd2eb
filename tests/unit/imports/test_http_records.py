"""What a reply becomes: values with every digit, keys, bad elements, and errors that say what came."""

from __future__ import annotations

from typing import Any

import pytest
from tests.services.json_api import Answer, JsonApi
from tests.unit.imports.http_reading import import_all

from penstock.errors import TerminalError


def test_values_are_compact_and_keep_every_digit_and_escape(api: JsonApi) -> None:
    api.respond = lambda _: (
        b'\xef\xbb\xbf [ {"n": 123456789012345678901234567890.10, "e" : 1E400 ,\n "z":-0.0,'
        b' "s": "\\u00e4 \xc3\xa4 \\/", "n": 2} , 7.50, "x", true, [ ] ]\n'
    )
    assert import_all({"url": api.url}).values == [
        b'{"n":123456789012345678901234567890.10,"e":1E400,"z":-0.0,'
        b'"s":"\\u00e4 \xc3\xa4 \\/","n":2}',
        b"7.50",
        b'"x"',
        b"true",
        b"[]",
    ]


def test_another_charset_becomes_utf8(api: JsonApi) -> None:
    headers = {"Content-Type": "application/json; charset=iso-8859-1"}
    api.respond = lambda _: Answer(b'["\xe4"]', headers=headers)
    assert import_all({"url": api.url}).values == [b'"\xc3\xa4"']


@pytest.mark.parametrize(
    ("document", "pointer", "values"),
    [
        (b'{"a": {"b": [1, 2]}}', "/a/b", [b"1", b"2"]),
        (b'{"a/b": {"~": [[], [3]]}}', "/a~1b/~0/1", [b"3"]),
        (b'{"": [1]}', "/", [b"1"]),
        (b'{"a": {"id": 1}}', "/a", [b'{"id":1}']),
        (b'{"id": 1}', None, [b'{"id":1}']),
        (b'{"id": 1}', "", [b'{"id":1}']),
        (b"[]", None, []),
        (b'{"a": "\\ud83d", "b": [1, {"c": [2]}]}', "/b/1/c", [b"2"]),
    ],
)
def test_records_are_at_the_pointer(
    api: JsonApi, document: bytes, pointer: str | None, values: list[bytes]
) -> None:
    api.respond = lambda _: document
    assert import_all({"url": api.url, "records": pointer}).values == values


def test_keys_are_texts_or_json(api: JsonApi) -> None:
    api.respond = lambda _: [
        {"k": {"id": "a\u00e4"}},
        {"k": {"id": 5}},
        {"k": {"id": ""}},
        {"k": {"id": [1]}},
    ]
    done = import_all({"url": api.url, "key": "/k/id"})
    assert done.keys == ["a\u00e4".encode(), b"5", b"", b"[1]"]


def test_elements_that_cannot_be_records_are_dead_letters_and_the_others_are_imported(
    api: JsonApi,
) -> None:
    api.respond = lambda _: (
        b'[{"id":1}, null, {"x":2}, 3, {"id":null}, {"id":"\\ud83d half"}, {"id":6}]'
    )
    done = import_all({"url": api.url, "key": "/id"})
    assert done.keys == [b"1", b"6"]
    assert [(bad.value, bad.error) for bad in done.bad][:4] == [
        (b"null", "the record is null"),
        (b'{"x":2}', "the record has nothing at '/id', where its key should be"),
        (b"3", "the record has nothing at '/id', where its key should be"),
        (b'{"id":null}', "the record has null at '/id', where its key should be"),
    ]
    assert done.bad[4].value == b'{"id":"\\ud83d half"}'


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        (
            b"<html>login</html>",
            None,
            r"HTTP 200, beginning with '<html>login</html>'\) is not JSON",
        ),
        (b"", None, "is not JSON"),
        (b"[1, 2", None, "is not JSON"),
        (b"[1] [2]", None, "is not JSON"),
        (b'["\xff"]', None, "is not JSON"),
        (b"[NaN]", None, "is not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, None, "nested too deeply"),
        (b'{"data": []}', "/items", "has nothing at '/items', where its records"),
        (b'{"items": 5}', "/items", "has neither an array nor an object at '/items'"),
        (b'{"items": [[1]]}', "/items/01", "has nothing at '/items/01'"),
        (b'{"items": [[1]]}', "/items/1", "has nothing at '/items/1'"),
    ],
)
def test_a_reply_without_records_is_an_error_that_shows_it(
    api: JsonApi, body: bytes, pointer: str | None, message: str
) -> None:
    api.respond = lambda _: body
    with pytest.raises(TerminalError, match=message) as caught:
        import_all({"url": f"{api.url}?api_key=hunter2", "records": pointer})
    assert f"{api.url}?api_key=******** (HTTP 200" in str(caught.value)


@pytest.mark.parametrize("length", ["200", ""])
def test_a_reply_that_is_too_large_is_refused(api: JsonApi, length: str) -> None:
    body = b"[" + b" " * 198 + b"]"
    api.respond = lambda _: Answer(body, headers={"Content-Length": length})
    with pytest.raises(TerminalError, match=r"larger than 100 bytes; .* raise 'max_bytes'"):
        import_all({"url": api.url, "max_bytes": 100})
    assert import_all({"url": api.url, "max_bytes": 200}).values == []


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_an_unchanged_document_is_imported_once(api: JsonApi, header: str) -> None:
    version = ["v1"]
    asks = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[header]

    def respond(seen: Any) -> Answer:
        if seen.headers.get(asks) == version[0]:
            return Answer(status=304)
        return Answer([{"id": 1}], headers={header: version[0]})

    api.respond = respond
    first = import_all({"url": api.url})
    assert first.ids == [1]
    assert import_all({"url": api.url}, first.position).pages == 0
    version[0] = "v2"
    third = import_all({"url": api.url}, first.position)
    assert third.ids == [1]
    # Another request has another document.
    assert import_all({"url": api.url, "params": {"a": 1}}, third.position).ids == [1]


def test_without_an_etag_every_poll_imports_everything(api: JsonApi) -> None:
    api.respond = lambda _: [{"id": 1}]
    first = import_all({"url": api.url})
    assert (first.ids, first.position) == ([1], {"paging": "none", "poll": 1})
    assert import_all({"url": api.url}, first.position).ids == [1]


def test_no_content_is_nothing_new(api: JsonApi) -> None:
    api.respond = lambda _: Answer(status=204, headers={"Content-Length": "0"})
    assert import_all({"url": api.url}).pages == 0
