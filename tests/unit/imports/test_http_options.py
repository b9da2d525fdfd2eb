"""Wrong options are refused, with what was given, what is allowed and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.imports.http.http_import import HttpImport
from penstock.pipeline import Pipeline, parse_pipeline

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "ftp://host/x"}, "'ftp://...' cannot be used; allowed: http://HOST/PATH"),
    ({"url": "file:///etc/passwd"}, "'file://...' cannot be used"),
    ({"url": "host/x"}, "an address without http"),
    ({"url": "http://h:port/x"}, "the address cannot be read"),
    ({"url": "https://app:hunter2@host/x"}, "give the user and the password in 'auth.basic'"),
    ({"url": "http://h/x#top"}, "'#top' is never sent to a server"),
    ({"method": "DELETE"}, "given 'DELETE'; input should be 'GET' or 'POST'"),
    ({"body": {"a": 1}}, "'body' is given and 'method' is GET; give 'method: POST' or no body"),
    ({"records": "data.items"}, "'data.items' is not a JSON pointer; write '/' before each name"),
    ({"key": "/a~b"}, "after '~' only 0 (for '~') and 1 (for '/') are allowed"),
    ({"headers": {"Content-Length": "1"}}, "the header 'Content-Length' is written by the import"),
    ({"headers": {"X": "a\r\nHost: b"}}, "the header 'X' has a control character"),
    ({"headers": {"X": "\u00e4"}}, "the header 'X' has a value that is not ASCII"),
    ({"headers": {"X Y": "a"}}, "string should match pattern"),
    ({"paging": {"ofset": {}}}, "'ofset' is unknown; did you mean 'offset'?"),
    ({"paging": {}}, "nothing is given; give exactly one of: next_link, offset, cursor, since"),
    ({"paging": {"offset": {}, "next_link": "/n"}}, "given offset and next_link; give exactly one"),
    ({"paging": {"offset": {"size": 0}}}, "greater than or equal to 1"),
    ({"paging": {"next_link": "next"}}, "'next' is not a JSON pointer"),
    ({"paging": {"cursor": {"parameter": "c"}}}, "paging.cursor.pointer: is required"),
    ({"paging": {"offset": {"into": "body"}}}, "needs 'method: POST' and a mapping as 'body'"),
    (
        {"auth": {"basic": {"username": "a", "password": "b"}, "bearer": "t"}},
        "given basic and bearer",
    ),
    ({"auth": {"digest": {}}}, "'digest' is unknown; allowed: api_key, basic, bearer, oauth"),
    ({"auth": {"api_key": {"secret": "s"}}}, "given neither of 'header' and 'parameter'"),
    (
        {"auth": {"api_key": {"secret": "s", "header": "H", "parameter": "p"}}},
        "given both of 'header' and 'parameter'",
    ),
    (
        {"auth": {"bearer": "t"}, "headers": {"authorization": "Bearer u"}},
        "credentials are in 'auth' and in the header 'Authorization'",
    ),
    (
        {"auth": {"oauth": {"token_url": "x", "client_id": "a", "client_secret": "b"}}},
        "an address without http",
    ),
    (
        {"auth": {"bearer": "hunter2\n"}},
        "has a control character, as a line end, or a letter outside",
    ),
    (
        {"auth": {"bearer": "hunter2\u20ac"}},
        "and cannot be sent in a header; check the file or vari",
    ),
    ({"auth": {"api_key": {"header": "H", "secret": "hunter2\r\n"}}}, "has a control character"),
    ({"rate": 0}, "greater than 0"),
    ({"timeout": "soon"}, "given 'soon'; a duration is a number with ms, s, m, h or d"),
    ({"max_bytes": 0}, "greater than or equal to 1"),
    ({"allow_hosts": ["https://host"]}, "'https://host' is not a host; give 'name' or 'name:port'"),
    ({"pagin": {}}, "did you mean 'paging'?"),
    ({"topic": "a {url}"}, "a topic cannot have {"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", source={"http": {"url": "https://host/x", **given}}, sink={"kafka": "t"})
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_definition_in_yaml() -> None:
    text = """\
name: orders
source:
  http:
    url: https://shop.example/api/orders
    records: /data
    key: /id
    params: {status: paid}
    paging: {cursor: {pointer: /next, parameter: after}}
    auth: {oauth: {token_url: "https://login.example/token", client_id: a, client_secret: "b-c-d-e-1"}}
    rate: 5
    poll: 10s
sink: {kafka: orders}
"""
    source = parse_pipeline(text).source
    assert isinstance(source, HttpImport)
    assert (source.form, source.repeats, source.poll) == ("cursor", False, 10.0)
    assert "b-c-d-e-1" not in repr(source)


def test_an_address_alone_is_a_definition() -> None:
    source = Pipeline(name="p", source={"http": "http://h/x"}, sink={"kafka": "t"}).source
    assert source == HttpImport(url="http://h/x")
    assert (source.form, source.repeats) == ("none", True)
