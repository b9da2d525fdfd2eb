"""Each step over a list of messages."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest
from tests.unit.flows.flow_cases import codes, flow_of, payloads, ran

from penstock.errors import DefinitionError
from penstock.flows import CompiledFlow, Message
from penstock.flows.definition.test_case import Reply
from penstock.flows.error_codes import Fault
from penstock.flows.running.payload_rows import PayloadRows
from penstock.flows.steps import split_step
from penstock.flows.steps.python_function import MOST_ABANDONED
from penstock.flows.testing import CannedReplies, canned_systems
from penstock.testing import eventually


def test_set_sees_the_message_as_it_was() -> None:
    result = ran(
        {
            "set": {
                "payload": "payload.n + 1",
                "variable": {"n": "payload.n"},
                "attribute": {"a": "1"},
            }
        },
        payloads=[b'{"n": 1}'],
    )

    (message,) = result.results
    assert (message.payload, message.variable) == (2, {"n": 1})
    assert message.attribute == {"topic": "orders", "partition": 0, "offset": 0, "a": 1}


def test_map_makes_objects_and_texts() -> None:
    made = ran({"map": {"id": "payload.id", "tags": ["'x'"]}}, payloads=[b'{"id": 1}'])
    text = ran({"map": {"template": "order ${payload.id}"}}, payloads=[b'{"id": 1}'])
    lines = ran({"map": "$.lines[*].n"}, payloads=[b'{"lines": [{"n": 1}, {"n": 2}]}'])

    assert payloads(made) == [{"id": 1, "tags": ["x"]}]
    assert payloads(text) == ["order 1"]
    assert payloads(lines) == [[1, 2]]


def test_filter_ends_messages_without_an_error_and_null_is_false() -> None:
    given = [b'{"n": 5}', b'{"n": 1}', b"{}"]

    result = ran({"filter": "payload.n > 2"}, payloads=given)

    assert payloads(result) == [b'{"n": 5}']
    assert [outcome.status for outcome in result.outcomes] == ["done", "filtered", "filtered"]


def test_a_branch_takes_the_first_way_and_keeps_the_order() -> None:
    branch = {
        "branch": {
            "when": [
                {"if": "payload > 10", "steps": [{"map": "'large'"}]},
                {
                    "if": "payload > 5",
                    "steps": [
                        {"branch": {"when": [{"if": "payload = 6", "steps": [{"map": "'six'"}]}]}}
                    ],
                },
            ],
            "otherwise": [{"map": "'small'"}],
        }
    }

    assert payloads(ran(branch, payloads=[6, 20, 1, 7])) == ["six", "large", "small", 7]


def test_the_parts_of_a_split_become_their_message_again() -> None:
    given = [b'{"id": 1, "lines": [1, 2]}', b'{"id": 2, "lines": []}', b'{"id": 3, "lines": [5]}']

    result = ran(
        {"set": {"variable": {"id": "payload.id"}}},
        {"split": "payload.lines"},
        {"map": "payload * 10 + attribute.split.index"},
        "join",
        payloads=given,
    )

    assert payloads(result) == [[10, 21], [50]]
    assert [message.variable["id"] for message in result.results] == [1, 3]
    assert result.results[0].attribute["join"] == {"count": 2, "complete": True}
    assert [outcome.status for outcome in result.outcomes] == ["done", "filtered", "done"]


def test_a_join_with_a_failed_part_is_not_complete() -> None:
    steps: list[Any] = [{"split": "$"}, {"map": "10 / payload"}]
    emitted = ran(*steps, {"join": {}}, payloads=[[1, 0, 5]])
    failed = ran(*steps, {"join": {"incomplete": "fail"}}, payloads=[[1, 0, 5]])

    assert payloads(emitted) == [[10, 2]]
    assert emitted.results[0].attribute["join"] == {"count": 2, "complete": False}
    assert codes(emitted) == [("steps[1]", "CORE:EXPRESSION")]
    assert ("steps[2]", "CORE:JOIN") in codes(failed)


def test_join_collects_by_key_and_count_and_never_waits() -> None:
    given = [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}, {"k": "a", "n": 4}]
    join = {"by": "payload.k", "count": 2, "value": "payload.n"}

    result = ran({"join": join}, payloads=given)
    dropped = ran({"join": {**join, "incomplete": "drop"}}, payloads=given)

    assert payloads(result) == [[1, 3], [2], [4]]
    assert [m.attribute["join"]["complete"] for m in result.results] == [True, False, False]
    assert payloads(dropped) == [[1, 3]]
    assert [outcome.status for outcome in dropped.outcomes] == [
        "done",
        "filtered",
        "joined",
        "filtered",
    ]


def test_join_collects_by_size_and_by_time() -> None:
    by_size = ran({"join": {"size": 4, "value": "payload"}}, payloads=["aa", "bb", "c"])
    times = [Message(str(at), {"timestamp": at}) for at in (0, 900, 1000, 1500)]
    by_time = ran({"join": {"time": "1s"}}, payloads=times)

    assert payloads(by_size) == [["aa", "bb"], ["c"]]
    assert [message.attribute["join"]["count"] for message in by_time.results] == [2, 2]


def test_a_split_of_something_else_fails() -> None:
    assert codes(ran({"split": "$.n"}, payloads=[b'{"n": 1}'])) == [("steps[0]", "CORE:SPLIT")]
    assert codes(ran({"split": {"most": 2}}, payloads=[[1, 2, 3]])) == [("steps[0]", "CORE:SPLIT")]


def test_sql_runs_over_the_rows_of_the_payload() -> None:
    step = {
        "sql": {
            "query": "SELECT sku, sum(n) AS n FROM rows WHERE n > :low GROUP BY sku ORDER BY sku",
            "parameters": {"low": "attribute.offset"},
        }
    }

    rows = [{"sku": "a", "n": 1}, {"sku": "b", "n": 5}, {"sku": "a", "n": 2}]

    assert payloads(ran(step, payloads=[rows])) == [[{"sku": "a", "n": 3}, {"sku": "b", "n": 5}]]


def test_the_case_of_members_does_not_count_in_sql() -> None:
    step = {"sql": {"query": "SELECT id FROM rows ORDER BY id"}}

    assert payloads(ran(step, payloads=[[{"ID": 1}, {"id": 2}]])) == [[{"ID": 1}, {"ID": 2}]]
    both = ran(step, payloads=[[{"ID": 1, "id": 2}]])
    assert codes(both) == [("steps[0]", "DATABASE:REFUSED")]
    assert "differ in case alone" in both.dead_letters[0].error["Description"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("ATTACH DATABASE '/tmp/x' AS x", "DATABASE:REFUSED"),
        ("DELETE FROM rows", "DATABASE:REFUSED"),
        ("SELECT * FROM sqlite_master, nowhere", "DATABASE:REFUSED"),
        ("SELECT load_extension('x')", "DATABASE:REFUSED"),
        ("SELECT hex(zeroblob(200000000))", "DATABASE:REFUSED"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
            "CORE:TIMEOUT",
        ),
    ],
)
def test_sql_over_a_payload_can_do_nothing_else(query: str, code: str) -> None:
    with pytest.raises(Fault) as refused:
        PayloadRows(query, most=10, timeout=0.2).selected([{"a": 1}], {})

    assert refused.value.code == code


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("ATTACH DATABASE '/tmp/x' AS x", "not authorized"),
        ("DELETE FROM rows", "not authorized"),
        ("SELECT * FROM sqlite_master, nowhere", "no such table: nowhere"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELECT none_such(1)", "no such function: none_such"),
        ("SELECT ?", "Binding"),
        ("SELECT (", "incomplete input"),
    ],
)
def test_a_query_that_no_payload_makes_valid_is_refused(query: str, why: str) -> None:
    with pytest.raises(DefinitionError, match=f"SQLite: .*{why}"):
        flow_of({"sql": query})


def test_a_query_may_name_members_that_a_payload_has() -> None:
    given = [[{"id": 1, "n": 2}, {"id": 2}]]
    joined = (
        "-- ours\nWITH a AS (SELECT id, n FROM rows r) SELECT b.id FROM a JOIN rows b USING (id) "
        "WHERE b.n > 1"
    )
    both = "SELECT * FROM rows UNION SELECT 1, 2 ORDER BY id"

    assert payloads(ran({"sql": joined}, payloads=given)) == [[{"id": 1}]]
    assert payloads(ran({"sql": both}, payloads=given)) == [
        [{"id": 1, "n": 2}, {"id": 2, "n": None}]
    ]


def test_a_parameter_is_never_part_of_the_query() -> None:
    step = {
        "sql": {
            "query": "SELECT count(*) AS n FROM rows WHERE a = :a",
            "parameters": {"a": "variable.a"},
        }
    }
    message = Message([{"a": "x"}], None, {"a": "x' OR '1'='1"})

    assert payloads(ran(step, payloads=[message])) == [[{"n": 0}]]


def doubled(message: Message) -> Any:
    message.payload["n"] *= 2
    return message


def several(message: Message) -> Any:
    return [message.changed(payload=n) for n in range(message.document)]


def picky(message: Message) -> Any:
    if message.payload == "exit":
        sys.exit(3)
    return None if message.payload == "drop" else message.payload.upper()


def endless(message: Message) -> Any:
    if message.payload == "wait":
        Event().wait()
    return message


HERE = "tests.unit.flows.test_steps"


def test_a_function_may_change_its_message_and_no_other() -> None:
    given = Message({"n": 2})

    assert payloads(ran({"python": f"{HERE}:doubled"}, payloads=[given])) == [{"n": 4}]
    assert given.payload == {"n": 2}
    assert payloads(ran({"python": f"{HERE}:several"}, payloads=[2, 1])) == [0, 1, 0]


def test_a_function_that_raises_or_exits_fails_for_its_message() -> None:
    result = ran({"python": f"{HERE}:picky"}, payloads=["a", "exit", 5, "drop", "b"])

    assert payloads(result) == ["A", "B"]
    assert codes(result) == [("steps[0]", "CORE:PYTHON"), ("steps[0]", "CORE:PYTHON")]
    assert result.dead_letters[0].error["Description"] == "SystemExit: 3"
    assert result.outcomes[3].status == "filtered"


def test_a_function_that_never_returns_ends_by_its_time_out() -> None:
    step = {"python": {"function": f"{HERE}:endless", "timeout": "200ms"}}

    result = ran(step, payloads=["a", "wait", "b"])

    assert payloads(result) == ["a", "b"]
    assert codes(result) == [("steps[0]", "CORE:TIMEOUT")]


def test_http_puts_the_reply_where_it_is_wanted() -> None:
    canned = CannedReplies({"price": [Reply(body={"price": 3})]})
    step = {
        "id": "price",
        "http": {
            "url": "https://api.example.com/items/${payload.id}?q=${payload.q}",
            "headers": {"X-Id": "${payload.id}"},
            "into": "variable.price",
        },
    }

    result = ran(step, payloads=[{"id": "a/../b?x#y", "q": "1&admin=1"}], canned=canned)

    (message,) = result.results
    assert message.variable["price"] == {"price": 3}
    assert message.attribute["status"] == 200
    assert canned.sent[0].url == "https://api.example.com/items/a%2F..%2Fb%3Fx%23y?q=1%26admin%3D1"


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({"id": ".."}, "'..' cannot be a part of an address"),
        ({"id": ""}, "an empty text cannot be a part of an address"),
        ({"id": None}, "the value is null"),
        ({"id": 1, "h": "a\r\nX-Admin: 1"}, "a header cannot have control characters"),
    ],
)
def test_a_value_cannot_lead_a_request_elsewhere(payload: Any, problem: str) -> None:
    step = {"http": {"url": "https://a.example/${payload.id}", "headers": {"X": "${payload.h}"}}}
    canned = CannedReplies({"steps[0]": [Reply()]})

    result = ran(step, payloads=[{"h": "h", **payload}], canned=canned)

    assert problem in result.dead_letters[0].error["Description"]
    assert canned.sent == []


def test_http_is_tried_again_and_honours_retry_after() -> None:
    busy = Reply(status=503, headers={"Retry-After": "7"})
    canned = CannedReplies({"ask": [busy, Reply(status=500), Reply(body="ok")]})
    step = {"id": "ask", "http": "https://a.example/", "retry": {"attempts": 4, "wait": 1}}

    result = ran(step, payloads=["x"], canned=canned)

    assert payloads(result) == [b"ok"]
    assert canned.waited == [7.0, 2.0]


def test_http_gives_up_at_once_where_a_retry_is_of_no_use() -> None:
    canned = CannedReplies({"ask": [Reply(status=404, body="gone")]})
    step = {"id": "ask", "http": "https://a.example/", "retry": 5}

    result = ran(step, payloads=["x"], canned=canned)

    assert codes(result) == [("ask", "HTTP:404")]
    assert "gone" in result.dead_letters[0].error["Description"]
    assert canned.waited == []


def test_http_results_that_are_not_what_they_say_fail() -> None:
    canned = CannedReplies(
        {"steps[0]": [Reply(body="{", headers={"Content-Type": "application/json"})]}
    )

    result = ran(
        {"http": {"url": "https://a.example/", "parallel": 4}}, payloads=["x", "y"], canned=canned
    )

    assert codes(result) == [("steps[0]", "HTTP:REFUSED")] * 2


def test_lookup_finds_rows_of_a_table_and_reads_it_again(tmp_path: Path) -> None:
    table = tmp_path / "customers.csv"
    table.write_text("id,name\n7,Ann\n8,Bob\n")
    step = {"lookup": {"table": str(table), "key": "payload.customer"}}

    found = ran(step, payloads=[{"customer": 7}, {"customer": 9}, {}])
    failed = ran({"lookup": {**step["lookup"], "missing": "fail"}}, payloads=[{"customer": 9}])

    assert [m.variable["found"] for m in found.results] == [{"id": "7", "name": "Ann"}, None, None]
    assert codes(failed) == [("steps[0]", "CORE:LOOKUP")]


def test_lookup_keeps_replies_and_404_is_nothing_found() -> None:
    canned = CannedReplies({"customer": [Reply(body={"name": "Ann"}), Reply(status=404)]})
    step = {"id": "customer", "lookup": {"http": {"url": "https://a.example/${payload}"}}}

    result = ran(step, payloads=[7, 7, 8, 8], canned=canned)

    assert [m.variable["found"] for m in result.results] == [
        {"name": "Ann"},
        {"name": "Ann"},
        None,
        None,
    ]
    assert len(canned.sent) == 2


SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "tag": {"type": "string", "pattern": "^(a+)+$"}},
}


def test_validate_names_the_place_and_patterns_are_linear(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(json.dumps(SCHEMA))
    given = [b'{"id": 1}', b'{"id": "x"}', b"{", b'{"id": 1, "tag": "' + b"a" * 5000 + b'!"}']

    result = ran({"validate": SCHEMA}, payloads=given)

    assert payloads(result) == [b'{"id": 1}']
    assert codes(result) == [("steps[0]", "CORE:VALIDATION")] * 3
    assert "$.id" in result.dead_letters[0].error["Description"]
    assert codes(ran({"validate": str(file)}, payloads=given)) == codes(result)


def test_a_large_list_of_unique_objects_is_checked_in_linear_time() -> None:
    # jsonschema compares each object with all others: an hour for this many.
    many = [{"a": number} for number in range(50_000)]
    schema = {"type": "array", "uniqueItems": True}
    given = [
        many,
        [*many, {"a": 7.0}],
        [1, "1", True, None, [1], [True], {}],
        [0.5, [{"b": 0.5}], 0.5],
    ]

    result = ran({"validate": schema}, payloads=given)

    assert payloads(result) == [given[0], given[2]]
    assert [letter.error["Description"] for letter in result.dead_letters] == [
        "$: the elements 7 and 50000 are the same",
        "$: the elements 0 and 2 are the same",
    ]


def test_a_schema_that_takes_minutes_to_check_is_refused() -> None:
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}

    with pytest.raises(DefinitionError, match="a list has 5000 elements; allowed are 1000 where"):
        flow_of({"validate": {"schema": {**draft, "enum": [{"a": n} for n in range(5000)]}}})
    codes_of = {**draft, "enum": [f"code-{n}" for n in range(5000)]}
    assert payloads(ran({"validate": codes_of}, payloads=[b'"code-7"'])) == [b'"code-7"']


@pytest.mark.parametrize("dialect", ["https://json-schema.org/draft/2020-12/schema", None])
def test_patterns_are_linear_where_a_schema_refers_to_itself(dialect: str | None) -> None:
    schema = {
        **({"$schema": dialect} if dialect else {}),
        "properties": {"next": {"$ref": "#"}, "id": {"pattern": "^(a+)+$"}},
    }

    # Python's own regular expressions would need 2**60 steps.
    result = ran({"validate": {"schema": schema}}, payloads=[{"next": {"id": "a" * 60 + "b"}}])

    assert codes(result) == [("steps[0]", "CORE:VALIDATION")]


def test_validate_follows_no_reference_to_the_network() -> None:
    schema = {"$ref": "http://127.0.0.1:9/order.json"}

    result = ran({"validate": schema}, payloads=[b"{}"])

    assert codes(result) == [("steps[0]", "CORE:VALIDATION")]
    assert (
        "refers to 'http://127.0.0.1:9/order.json'" in result.dead_letters[0].error["Description"]
    )


def test_dedupe_lets_the_first_of_each_key_pass() -> None:
    result = ran({"dedupe": "payload.id"}, payloads=[{"id": 1}, {"id": 1}, {"id": "1"}, {}, {}])

    assert payloads(result) == [{"id": 1}, {"id": "1"}, {}, {}]
    assert result.outcomes[1].status == "filtered"


def test_throttle_waits_for_what_a_batch_takes() -> None:
    canned = CannedReplies()

    ran({"throttle": {"rate": 10, "burst": 5}}, payloads=[1] * 25, canned=canned)

    assert canned.waited == [2.0]


def test_log_changes_nothing() -> None:
    given = ["a\x1b[31m\n", b"\xff", None]

    assert payloads(ran({"log": "order ${payload}"}, payloads=given)) == given


def test_publish_keeps_the_payload_and_adds_where_it_was_written() -> None:
    canned = CannedReplies()
    publish = {
        "kafka": {
            "topic": "large-${payload.region}",
            "key": "${payload.id}",
            "partition": "3",
            "headers": '{"trace": "${attribute.offset}"}',
        }
    }

    result = ran(
        {"publish": publish},
        {"set": {"variable": {"at": "attribute.offset"}}},
        payloads=[b'{"id": 1, "region": "eu"}', b'{"id": 2, "region": "eu"}'],
        canned=canned,
    )

    assert [m.attribute for m in result.results] == [
        {"topic": "large-eu", "partition": 3, "offset": 0},
        {"topic": "large-eu", "partition": 3, "offset": 1},
    ]
    assert [m.variable["at"] for m in result.results] == [0, 1]
    assert payloads(result)[0] == b'{"id": 1, "region": "eu"}'
    assert canned.published[1].fields["headers"] == [("trace", b"1")]
    assert canned.published[0].fields["key"] == b"1"


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (["split", {"join": {}}], [[[1, 2]], [[1, 2]], [[3]]]),
        ([{"join": {"count": 2}}], [[[[1, 2], [3]]], [[[1, 2], [3]]]]),
    ],
)
def test_a_trace_shows_what_messages_are_joined_to(steps: list[Any], wanted: list[Any]) -> None:
    result = ran(*steps, payloads=[[1, 2], [3]])

    joins = [entry for entry in result.trace if entry.kind == "join"]
    made = [[message.payload for message in entry.after] for entry in joins]
    assert made == wanted
    assert [entry.error for entry in joins] == [None] * len(joins)


def test_a_message_that_is_split_twice_has_a_limit_of_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(split_step, "MOST_PARTS", 10)
    steps = [
        {"set": {"variable": {"all": "$"}}},
        {"split": "variable.all"},
        {"split": "variable.all"},
    ]

    result = ran(*steps, payloads=[[1, 2, 3], [1, 2, 3, 4]])

    assert [len(outcome.results) for outcome in result.outcomes] == [9, 8]
    assert codes(result) == [("steps[2]", "CORE:SPLIT")] * 2


def test_a_partition_is_a_whole_number_that_kafka_has() -> None:
    publish = {"publish": {"kafka": {"topic": "t", "partition": "${payload}"}}}
    wrong = ["²", "٣", "0" * 11 + "9" * 30, "-1", "2147483648", "1.0"]

    result = ran(publish, payloads=[*wrong, "2147483647", 3])

    assert codes(result) == [("steps[0]", "CORE:EXPRESSION")] * len(wrong)
    assert [message.attribute["partition"] for message in result.results] == [2147483647, 3]


def test_a_value_cannot_make_other_headers() -> None:
    canned = CannedReplies()
    texts = [
        """{"name": "${payload.name}"}""",
        """{"name": ${payload.name}}""",
        """{"name": ${to_json(payload.name)}, "\\"": "a\\"${payload.n}"}""",
        """{"name": ${payload}}""",
        "${payload}",
    ]
    evil = 'x", "admin": "true'
    steps = [{"publish": {"kafka": {"topic": "t", "headers": text}}} for text in texts]

    ran(*steps, payloads=[{"name": evil, "n": 1}], canned=canned)

    whole = b'{"name":"x\\", \\"admin\\": \\"true","n":1}'
    assert [each.fields["headers"] for each in canned.published] == [
        [("name", evil.encode())],
        [("name", evil.encode())],
        [("name", evil.encode()), ('"', b'a"1')],
        [("name", whole)],
        [("name", evil.encode()), ("n", b"1")],
    ]


def test_headers_that_no_value_makes_json_are_refused() -> None:
    with pytest.raises(DefinitionError, match="the text of the headers is not JSON"):
        flow_of({"publish": {"kafka": {"topic": "t", "headers": '{"a": "${payload.a}'}}})


def test_a_value_cannot_make_a_topic_that_kafka_does_not_have() -> None:
    result = ran({"publish": {"kafka": {"topic": "a-${payload}"}}}, payloads=["x/y", "ok"])

    assert codes(result) == [("steps[0]", "CORE:EXPRESSION")]
    assert payloads(result) == ["ok"]


def test_every_system_can_be_published_to() -> None:
    canned = CannedReplies()
    result = ran(
        {
            "publish": {
                "rabbitmq": {"url": "amqp://mq", "exchange": "e", "routing_key": "r.${payload.id}"}
            }
        },
        {"publish": {"jms": {"url": "amqp://jms:5672", "queue": "q", "value": "payload.id"}}},
        {"publish": {"http": {"url": "https://a.example/${payload.id}", "method": "PUT"}}},
        {
            "publish": {
                "database": {"url": "sqlite:///x.db", "table": "t", "columns": {"id": "payload.id"}}
            }
        },
        payloads=[{"id": 5}],
        canned=canned,
    )

    rabbit, jms, http, row = canned.published
    assert (rabbit.fields["exchange"], rabbit.fields["routing_key"]) == ("e", "r.5")
    assert rabbit.fields["value"] == b'{"id":5}'
    assert (jms.fields["destination"], jms.fields["value"]) == ("q", "5")
    assert http.fields["request"].url == "https://a.example/5"
    assert row.fields == {"id": 5}
    assert result.results[0].attribute["status"] == 200


@pytest.mark.parametrize("additional", [False, {"type": "string"}])
def test_the_patterns_of_members_are_linear_next_to_additional_properties(additional: Any) -> None:
    """jsonschema's own search takes twice the time for each more letter."""
    schema = {
        "patternProperties": {"^(a+)+$": {}, "^[0-9]+$": {}},
        "properties": {"id": {}},
        "additionalProperties": additional,
    }
    given = [{"a" * 200 + "!": 1}, {"aaa": 1, "id": 2, "7": 3}, {"x": 1}]

    result = ran({"validate": schema}, payloads=[json.dumps(each).encode() for each in given])

    assert codes(result) == [("steps[0]", "CORE:VALIDATION")] * 2
    assert len(result.results) == 1


def test_patterns_that_would_not_be_linear_are_refused() -> None:
    schema = {"patternProperties": {"^a": {}}, "allOf": [{"unevaluatedProperties": False}]}

    with pytest.raises(DefinitionError, match="give 'additionalProperties' next to the patterns"):
        ran({"validate": schema}, payloads=[b"{}"])


def test_a_line_of_the_log_without_a_text_does_not_fail_the_message() -> None:
    result = ran(
        {"log": "${parse_time(payload.at)}"}, payloads=[{"at": "0001-01-01T00:00:00+14:00"}]
    )

    assert result.statuses() == {"done": 1}


def test_functions_that_ended_after_their_timeout_do_not_stop_the_flow() -> None:
    ends = Event()
    threads: list[Thread] = []

    def slow(message: Message) -> Any:
        threads.append(current_thread())
        return ends.wait(60) and message.payload

    compiled = CompiledFlow(flow_of({"python": {"function": slow, "timeout": 0.01}}))
    for _ in range(MOST_ABANDONED + 2):
        result = compiled.run([Message(b"x")], canned_systems())
        assert codes(result) == [("steps[0]", "CORE:TIMEOUT")]
        ends.set()
        eventually(lambda: threads and not any(each.is_alive() for each in threads))
        ends.clear()
