"""Wrong options of the HTTP sink are refused, with what was given, what is allowed and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.pipeline import Pipeline
from penstock.sinks.http import HttpSink

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "ftp://host/x"}, "cannot be used; allowed: http://HOST/PATH"),
    ({"url": "https://app:hunter2@host/x"}, "give the user and the password in 'auth.basic'"),
    ({"url": "https://{host}/x"}, "rows may not choose the host"),
    ({"url": "{url}"}, "an address without http"),
    ({"url": "https://host{x}/y"}, "has a column before its path"),
    ({"url": "https://host/{x"}, "has '{' alone"),
    ({"url": "https://host/x#top"}, "'#top' is never sent to a server"),
    ({"method": "GET"}, "input should be 'POST', 'PUT', 'PATCH' or 'DELETE'"),
    ({"method": "DELETE", "value": "v"}, "DELETE has no body"),
    ({"method": "DELETE", "batch": 5}, "several rows in a request are JSON"),
    ({"headers": {"Host": "a"}}, "the header 'Host' is written by the sink itself"),
    ({"headers": {"X": "a\r\nY: b"}}, "the header 'X' has a control character"),
    ({"headers": {"X": "\u00e4"}}, "that is not ASCII"),
    ({"headers": {"X Y": "a"}}, "string should match pattern"),
    ({"headers": {"X": "{a:%Q}"}}, "'%Q' in '{a:%Q}' is not a part of a date"),
    ({"headers": {"idempotency-key": "{n}"}}, "give 'idempotency_key: false'"),
    (
        {"headers": {"Authorization": "x"}, "auth": {"bearer": "t"}},
        "credentials are in 'auth' and in",
    ),
    ({"auth": {"digest": {}}}, "'digest' is unknown; allowed: api_key, basic, bearer, oauth"),
    ({"batch": 0}, "greater than or equal to 1"),
    ({"batch": 2, "url": "http://h/{n}"}, "'url' has a column: leave the column out"),
    ({"batch": 2, "headers": {"X": "{n}"}}, "'X' has a column: leave the column out"),
    ({"batch": 2, "value_format": "csv"}, "several rows in a request are JSON"),
    ({"batch_format": "csv"}, "input should be 'array' or 'lines'"),
    ({"parallel": 0}, "greater than or equal to 1"),
    ({"success": []}, "at least 1 item"),
    ({"success": [2000]}, "2000 is not a status; give a number as 404, or 5xx"),
    ({"retry_statuses": ["soon"]}, "'soon' is not a status"),
    ({"retry_statuses": ["5x0"]}, "'5x0' is not a status"),
    ({"retry_time": "x"}, "a duration is a number with ms, s, m, h or d"),
    ({"timeout": 0}, "greater than 0"),
    ({"methd": "PUT"}, "did you mean 'method'?"),
]


def read(options: Any, **more: Any) -> Pipeline:
    given = {"url": "http://host/x", **options} if isinstance(options, dict) else options
    decode = {"json": {"schema": "n int"}}
    return Pipeline(name="p", source={"kafka": "t"}, decode=decode, sink={"http": given}, **more)


@pytest.mark.parametrize(("options", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        read(options)
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_exactly_once_is_refused_with_the_reason() -> None:
    with pytest.raises(DefinitionError, match="recognizes repeated requests by the header"):
        read({}, delivery="exactly-once")


def test_an_address_alone_is_a_definition() -> None:
    assert read("http://host/x?a={n}").sink == HttpSink(url="http://host/x?a={n}")
