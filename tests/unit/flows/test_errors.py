"""What becomes of messages that fail: retries, handlers, `try`, dead letters, replays."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.flows.flow_cases import codes, flow_of, payloads, ran

from penstock.errors import (
    BrokerUnavailableError,
    ConfigError,
    RefusedError,
    TerminalError,
    TransientError,
)
from penstock.flows import CompiledFlow, FlowStoppedError, Message
from penstock.flows.definition.test_case import Reply
from penstock.flows.error_codes import CODES, fault_of, is_known
from penstock.flows.running.flow_run import FlowWaitsError
from penstock.flows.testing import CannedReplies

DIVIDE = {"id": "divide", "map": "10 / payload"}
NUMBERS = [5, 0, 2]


def test_a_message_that_fails_is_a_dead_letter_with_its_trace() -> None:
    result = ran({"set": {"variable": {"v": "1"}}}, DIVIDE, payloads=NUMBERS)

    (letter,) = result.dead_letters
    assert payloads(result) == [2, 5]
    assert letter.error == {
        "Code": "CORE:EXPRESSION",
        "Description": "10 / payload: division by zero",
    }
    assert (letter.from_step, letter.trail) == ("divide", ("steps[0]", "divide"))
    assert (letter.message.payload, letter.message.variable) == (0, {"v": 1})
    assert (letter.original.payload, letter.original.variable) == (0, {})


def test_a_dead_letter_is_replayed_from_the_failed_step() -> None:
    inner = {
        "branch": {"when": [{"if": "true", "steps": [{"set": {"variable": {"v": "1"}}}, DIVIDE]}]}
    }
    flow = flow_of({"map": "payload - 1"}, inner, {"map": "payload + 100"})
    compiled = CompiledFlow(flow)
    systems = CannedReplies().systems()
    (letter,) = compiled.run([Message(1)], systems).dead_letters

    fixed = letter.message.changed(payload=5)
    again = compiled.run([fixed], systems, from_step=letter.from_step)
    by_place = compiled.run([fixed], systems, from_step="steps[1].branch.when[0].steps[1]")

    assert payloads(again) == payloads(by_place) == [102]
    with pytest.raises(ConfigError, match="there is no step 'devide'; did you mean 'divide'"):
        compiled.run([fixed], systems, from_step="devide")


def test_a_batch_that_is_run_again_is_not_a_duplicate_of_itself() -> None:
    queue = {"publish": {"rabbitmq": {"url": "amqp://mq", "routing_key": "q"}}, "id": "send"}
    compiled = CompiledFlow(flow_of({"dedupe": "payload.id"}, queue))
    batch = [Message({"id": 1}), Message({"id": 1})]
    away = CannedReplies(
        {"send": [Reply(error="RABBITMQ:UNAVAILABLE")]}, names={"steps[1]": "send"}
    )

    with pytest.raises(FlowWaitsError):
        compiled.run(batch, away.systems())
    again = compiled.run(batch, CannedReplies().systems())
    next_batch = compiled.run(batch, CannedReplies().systems())

    assert again.statuses() == {"done": 1, "filtered": 1}
    assert next_batch.statuses() == {"filtered": 2}


def test_stop_ends_the_flow_and_confirms_nothing() -> None:
    with pytest.raises(FlowStoppedError, match="the flow stops at divide: CORE:EXPRESSION"):
        ran({**DIVIDE, "on_error": "stop"}, payloads=NUMBERS)
    with pytest.raises(FlowStoppedError):
        ran(DIVIDE, payloads=NUMBERS, on_error="stop")


def test_continue_goes_on_with_the_error_in_its_place() -> None:
    result = ran({**DIVIDE, "on_error": "continue"}, payloads=NUMBERS)

    assert payloads(result) == [2, 0, 5]
    assert [message.error and message.error["Code"] for message in result.results] == [
        None,
        "CORE:EXPRESSION",
        None,
    ]


def test_a_handler_of_a_step_ends_the_message_or_lets_it_go_on() -> None:
    handler = [{"set": {"payload": "error.Code", "variable": {"was": "payload"}}}]
    ended = ran({**DIVIDE, "on_error": {"handler": handler}}, payloads=NUMBERS)
    on = ran({**DIVIDE, "on_error": {"handler": handler, "then": "continue"}}, payloads=NUMBERS)
    dead = ran(
        {**DIVIDE, "on_error": {"handler": handler, "then": "dead-letter"}}, payloads=NUMBERS
    )

    assert payloads(ended) == [2, 5]
    assert ended.statuses() == {"done": 2, "handled": 1}
    assert payloads(on) == [2, "CORE:EXPRESSION", 5]
    assert on.results[1].error is None
    assert codes(dead) == [("divide", "CORE:EXPRESSION")]


def test_the_handler_of_the_flow_gets_what_no_step_deals_with() -> None:
    canned = CannedReplies()
    handler = [{"publish": {"kafka": {"topic": "errors", "value": "error"}}}]

    result = ran(DIVIDE, payloads=NUMBERS, on_error={"handler": handler}, canned=canned)

    assert result.statuses() == {"done": 2, "handled": 1}
    assert b"CORE:EXPRESSION" in canned.published[0].fields["value"]


def test_a_handler_that_fails_leaves_the_first_error() -> None:
    handler = [{"map": "1 / 0"}]

    result = ran(DIVIDE, payloads=[0], on_error={"handler": handler})

    assert codes(result) == [("divide", "CORE:EXPRESSION")]
    assert result.dead_letters[0].error["Description"].startswith("10 / payload")


def test_try_catches_the_codes_that_it_names() -> None:
    canned = CannedReplies({"ask": [Reply(status=404), Reply(status=503), Reply(body="ok")]})
    step = {
        "try": {
            "codes": ["HTTP:4*"],
            "steps": [{"id": "ask", "http": "https://a.example/"}],
            "catch": [{"map": "'no: ' || error.Code"}],
        }
    }

    result = ran(step, {"map": "text(payload)"}, payloads=["a", "b", "c"], canned=canned)

    assert payloads(result) == ["no: HTTP:404", "ok"]
    assert [message.error for message in result.results] == [None, None]
    assert codes(result) == [("ask", "HTTP:503")]


def test_a_failure_in_catch_goes_further_out() -> None:
    inner = {"try": {"steps": [DIVIDE], "catch": [{"id": "inner", "map": "1 / 0"}]}}
    outer = {"try": {"steps": [inner], "catch": [{"map": "error.Description"}]}}

    assert payloads(ran(outer, payloads=[0])) == ["1 / 0: division by zero"]
    assert codes(ran(inner, payloads=[0])) == [("inner", "CORE:EXPRESSION")]


def test_a_part_that_was_caught_is_not_missing_in_its_join() -> None:
    step = {"try": {"steps": [DIVIDE], "catch": [{"map": "-1"}]}}

    result = ran({"split": "$"}, step, "join", payloads=[NUMBERS])

    assert payloads(result) == [[2, -1, 5]]
    assert result.results[0].attribute["join"] == {"count": 3, "complete": True}


class Away:
    """A publisher whose broker is away for the first calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls: list[int] = []

    def publish(self, step: str, operation: Any, requests: Any) -> Any:
        self.calls.append(len(requests))
        if len(self.calls) <= self.failures:
            raise BrokerUnavailableError("no broker answers")
        return [{"topic": "t", "partition": 0, "offset": n} for n, _ in enumerate(requests)]


def test_a_publish_is_tried_again_for_the_whole_batch() -> None:
    canned, away = CannedReplies(), Away(2)
    systems = canned.systems()
    systems.publisher = away
    flow = flow_of({"publish": {"kafka": {"topic": "t"}}, "retry": {"attempts": 3, "wait": 1}})

    result = CompiledFlow(flow).run([Message(b"a"), Message(b"b")], systems)

    assert (away.calls, canned.waited) == ([2, 2, 2], [1.0, 2.0])
    assert [message.attribute["offset"] for message in result.results] == [0, 1]


def test_while_a_system_is_unavailable_the_batch_waits_unless_the_definition_says_otherwise() -> (
    None
):
    systems = CannedReplies().systems()
    systems.publisher = Away(99)
    publish = {"publish": {"kafka": {"topic": "t"}}, "retry": {"attempts": 2, "wait": 0}}

    with pytest.raises(FlowWaitsError, match=r"waits at steps\[1\]: KAFKA:UNAVAILABLE: no broker"):
        CompiledFlow(flow_of(DIVIDE, publish)).run([Message(0), Message(1)], systems)
    for flow in (
        flow_of(publish, on_error="dead-letter"),
        flow_of({**publish, "on_error": "dead-letter"}),
    ):
        result = CompiledFlow(flow).run([Message(b"a")], systems)
        assert codes(result) == [("steps[0]", "KAFKA:UNAVAILABLE")]


def test_a_server_that_is_busy_is_a_matter_of_the_message() -> None:
    canned = CannedReplies({"ask": [Reply(status=503)]})

    result = ran({"id": "ask", "http": "https://a.example/"}, payloads=["x"], canned=canned)

    assert codes(result) == [("ask", "HTTP:503")]


def test_retry_names_the_codes_after_which_it_tries_again() -> None:
    canned = CannedReplies({"ask": [Reply(status=404), Reply(body="ok")]})
    step = {"id": "ask", "http": "https://a.example/", "retry": {"codes": ["HTTP:404"], "wait": 0}}

    assert payloads(ran(step, payloads=["x"], canned=canned)) == [b"ok"]


def test_a_compiled_flow_is_pickled_as_its_definition() -> None:
    compiled = CompiledFlow(flow_of({"filter": "payload > 1"}, {"map": "payload * 1"}))

    again = pickle.loads(pickle.dumps(compiled))

    assert again.flow == compiled.flow
    assert payloads(again.run([Message(3), Message(1)], CannedReplies().systems())) == [3]


def test_a_trace_has_each_step_before_and_after() -> None:
    result = ran({"filter": "payload > 0"}, DIVIDE, payloads=NUMBERS)

    shown = [(e.step, e.before.payload, [m.payload for m in e.after]) for e in result.trace]
    assert shown == [
        ("steps[0]", 5, [5]),
        ("steps[0]", 0, []),
        ("steps[0]", 2, [2]),
        ("divide", 5, [2]),
        ("divide", 2, [5]),
    ]


@pytest.mark.parametrize(
    ("error", "system", "code"),
    [
        (ZeroDivisionError(), "", "CORE:RUNTIME"),
        (TimeoutError("5 s"), "HTTP", "CORE:TIMEOUT"),
        (TransientError("away"), "", "CORE:UNAVAILABLE"),
        (BrokerUnavailableError("away"), "", "KAFKA:UNAVAILABLE"),
        (TransientError("away"), "HTTP", "HTTP:UNAVAILABLE"),
        (RefusedError("too large"), "KAFKA", "KAFKA:REFUSED"),
        (ConfigError("no such queue"), "RABBITMQ", "RABBITMQ:REFUSED"),
        (TerminalError("this user may not write"), "KAFKA", "KAFKA:REFUSED"),
        (MemoryError(), "DATABASE", "CORE:RUNTIME"),
    ],
)
def test_every_exception_becomes_a_code_of_the_table(
    error: Exception, system: str, code: str
) -> None:
    assert fault_of(error, system).code == code
    assert is_known(code)


def test_the_source_uses_no_code_that_the_table_does_not_have() -> None:
    folder = Path(__file__).parents[3] / "src/penstock/flows"
    texts = [file.read_text() for file in folder.rglob("*.py")]
    used = {
        code
        for text in texts
        for code in re.findall(r'"((?:CORE|KAFKA|HTTP|DATABASE):[A-Z]+)"', text)
    }

    assert {code for code in used if not is_known(code)} == set()
    assert len({each.code for each in CODES}) == len(CODES)


def test_a_secret_in_an_error_is_masked() -> None:
    fault = fault_of(ValueError("cannot use password=hunter2-secret here"))

    assert "hunter2" not in fault.description
