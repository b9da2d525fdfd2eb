"""`penstock flows test` does what the engine does."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest

from penstock.flows import parse_flow
from penstock.flows.testing import fits, run_tests


def differences(steps: str, test: str) -> list[str]:
    text = f"name: t\ntrigger: {{kafka: a}}\nsteps:\n{indent(dedent(steps), '  ')}"
    text += f"\ntests:\n  - name: a\n{indent(dedent(test), '    ')}\n"
    (result,) = run_tests(parse_flow(text))
    return result.differences


@pytest.mark.parametrize(
    ("expected", "found", "fit"),
    [
        (None, b"text", False),
        (None, b"null", True),
        (None, None, True),
        (None, 0, False),
        ({"a": None}, b'{"a": 1}', False),
        ({"a": None}, b'{"a": null}', True),
    ],
)
def test_null_is_only_null(expected: Any, found: Any, fit: bool) -> None:
    assert fits(expected, found) is fit


@pytest.mark.parametrize(
    ("success", "status", "outcome"),
    [("[2xx]", 404, "failed"), ("[2xx, 404]", 404, "done"), ("[200]", 204, "failed")],
)
def test_a_status_is_a_success_where_the_operation_says_so(
    success: str, status: int, outcome: str
) -> None:
    steps = f"- {{id: send, publish: {{http: {{url: 'https://a/b', success: {success}}}}}}}"
    test = f"""
        messages: [{{payload: 1}}]
        replies: {{send: {{status: {status}}}}}
        expect: {{status: {{{outcome}: 1}}}}
    """

    assert differences(steps, test) == []


def test_a_database_gives_the_number_of_rows() -> None:
    steps = """
        - id: one
          publish:
            database:
              url: sqlite:///a.db
              statement: "UPDATE t SET a = 1 WHERE b = :destination"
              parameters: {destination: "payload.b"}
    """
    test = """
        messages: [{payload: {b: 1}}, {payload: {b: 2}}]
        replies: {one: [{}, {rows: []}]}
        expect: {results: [{attribute: {rows: 1}}, {attribute: {rows: 0}}]}
    """

    assert differences(steps, test) == []
    assert differences(steps, test.replace("rows: 1", "destination: 1")) != []


def test_what_is_published_has_the_names_of_the_definition() -> None:
    steps = """
        - id: row
          publish: {database: {url: sqlite:///a.db, table: t, columns: {order_id: payload.b}}}
        - id: record
          publish: {kafka: {topic: a2, headers: {code: "x-${payload.b}"}}}
    """
    test = """
        messages: [{payload: {b: 7}}]
        expect:
          published:
            - {step: row, fields: {order_id: 7}}
            - {step: record, fields: {headers: {code: x-7}}}
    """

    assert differences(steps, test) == []
    assert differences(steps, test.replace("order_id: 7", "order_id: 8")) == [
        "published[0].order_id: expected 8, found 7"
    ]
    assert differences(steps, test.replace("x-7", "x-8")) != []


def test_each_message_has_its_reply_and_the_time_of_the_test_also_where_requests_are_parallel() -> (
    None
):
    steps = """
        - id: ask
          http: {url: "https://a/b", body: "text(now())", parallel: 8, into: variable.reply, result: text}
        - map: variable.reply || text(now())
    """
    numbers = range(50)
    test = f"""
        now: 2024-05-01T12:00:00Z
        messages: [{", ".join(f"{{payload: {n}}}" for n in numbers)}]
        replies: {{ask: [{", ".join(f"{{body: r{n}}}" for n in numbers)}]}}
        expect:
          results: [{", ".join(f"{{payload: 'r{n}2024-05-01T12:00:00Z'}}" for n in numbers)}]
    """

    assert differences(steps, test) == []


def test_days_and_times_of_yaml_are_those_of_json() -> None:
    steps = "- set: {variable: {day: payload.day, at: parse_time(payload.at)}}"
    test = """
        messages: [{payload: {day: 2024-05-01, at: 2024-05-01 12:00:00}}]
        expect:
          results: [{payload: {day: 2024-05-01}, variable: {day: 2024-05-01, at: 2024-05-01T12:00:00Z}}]
    """

    assert differences(steps, test) == []
