"""What becomes of messages at the end of a handler: each failure has its dead letter, once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.flows.flow_cases import flow_of, ran

from penstock.flows import CompiledFlow, Flow, Message
from penstock.flows.definition.test_case import Reply
from penstock.flows.testing import CannedReplies, canned_systems

FAILS = {"filter": "payload.a / 0 = 1"}
TWO = [b'{"a": 1, "list": [1, 2]}', b'{"a": 2, "list": [3]}']


def letters(steps: list[dict[str, Any]], then: str = "dead-letter") -> list[Any]:
    result = ran(FAILS, payloads=TWO, on_error={"handler": steps, "then": then})
    return [each.message.payload for each in result.dead_letters]


@pytest.mark.parametrize(
    "steps",
    [
        [{"log": "x"}],
        [{"split": "payload.list"}],
        [{"split": "payload.list"}, {"join": {}}],
        [{"join": {"count": 2}}],
        [{"split": "payload.list"}, {"join": {"count": 3}}],
    ],
)
def test_each_failure_is_a_dead_letter_whatever_the_handler_makes_of_it(
    steps: list[dict[str, Any]],
) -> None:
    assert letters(steps) == TWO


def test_parts_that_fail_in_a_handler_are_one_dead_letter_of_the_message() -> None:
    assert letters([{"split": "payload.list"}, FAILS], then="end") == TWO


def test_what_a_handler_filters_is_not_a_dead_letter() -> None:
    assert letters([{"filter": "payload.a = 2"}]) == TWO[1:]


@pytest.mark.parametrize(("then", "published"), [("end", 0), ("continue", 1), ("dead-letter", 0)])
def test_a_replay_from_a_handler_ends_as_the_handler_says(then: str, published: int) -> None:
    handler = {"handler": [{"id": "h", "log": "x"}], "then": then}
    flow = flow_of({**FAILS, "on_error": handler}, {"publish": {"kafka": {"topic": "good"}}})
    systems = CannedReplies()
    failed = Message(b'{"a": 1}', error={"Code": "CORE:EXPRESSION", "Description": "no"})

    result = CompiledFlow(flow).run([failed], systems.systems(), from_step="h")

    assert len(systems.published) == published
    assert [each.error["Code"] for each in result.dead_letters] == (
        ["CORE:EXPRESSION"] if then == "dead-letter" else []
    )
    status = {"end": "handled", "continue": "done", "dead-letter": "failed"}[then]
    assert result.statuses() == {status: 1}


@pytest.mark.parametrize(("then", "status"), [("end", "handled"), ("dead-letter", "failed")])
def test_a_replay_from_the_handler_of_the_flow_ends_as_it_says(then: str, status: str) -> None:
    flow = flow_of(FAILS, on_error={"handler": [{"id": "h", "log": "x"}], "then": then})

    result = CompiledFlow(flow).run([Message(b"{}")], canned_systems(), from_step="h")

    assert result.statuses() == {status: 1}


def test_messages_that_are_confirmed_at_once_do_not_wait_for_a_system_but_are_dead_letters() -> (
    None
):
    trigger = {"kafka": {"topics": "a", "advanced": {"confirm": "at-once"}}}
    step = {"id": "p", "publish": {"kafka": {"topic": "b"}}}
    flow = Flow(name="t", trigger=trigger, steps=[step])
    away = CannedReplies({"p": [Reply(error="KAFKA:UNAVAILABLE")]}, names={"steps[0]": "p"})

    result = CompiledFlow(flow).run([Message(b"x")], away.systems())

    assert [each.message.payload for each in result.dead_letters] == [b"x"]
