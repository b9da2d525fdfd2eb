"""The reply to a request that waited for the result of its flow, and its record in `<flow>.replies`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.flows.definition.triggers import HttpTrigger
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import ExpressionError
from penstock.flows.expressions.value_text import json_of
from penstock.flows.message import Message
from penstock.flows.running.flow_run import Outcome, RunResult
from penstock.flows.running.systems import PublishRequest

JSON = "application/json"
_TEXT, _BYTES = "text/plain; charset=utf-8", "application/octet-stream"
_TYPE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~/-]+(?:; ?[A-Za-z0-9-]+=[A-Za-z0-9._-]+)*")
_STATUSES = range(200, 600)
_NO_CONTENT = 204
_INVALID = 422
_FAILED = 500


class Reply(NamedTuple):
    """Status, content type and body."""

    status: int
    content_type: str
    body: bytes

    def record(self, id: str, topic: str) -> dict[str, Any]:
        """Return the record that brings it to the process that has the connection."""
        headers = [("status", b"%d" % self.status), ("content-type", self.content_type.encode())]
        return {
            "topic": topic,
            "key": id,
            "value": self.body,
            "partition": None,
            "headers": headers,
        }


def reply_in(value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> Reply | None:
    """Return the reply in a record, None where another program wrote the record.

    >>> record = Reply(201, "text/plain", b"x").record("7", "orders.replies")
    >>> reply_in(record["value"], record["headers"])
    Reply(status=201, content_type='text/plain', body=b'x')
    """
    named = dict(headers)
    try:
        status = int(named["status"] or b"")
        content_type = (named["content-type"] or b"").decode("ascii")
    except (KeyError, ValueError):
        return None
    if status not in _STATUSES or not _TYPE.fullmatch(content_type):
        return None
    return Reply(status, content_type, value or b"")


def error_body(id: str, code: str, description: str) -> bytes:
    """Return the body of a reply that says what went wrong."""
    error = {"Code": code, "Description": description}
    return json.dumps({"id": id, "error": error}, separators=(",", ":")).encode()


def failed(id: str, code: str, description: str) -> Reply:
    """Return the reply for a message that failed: 422 where it is not valid, otherwise 500."""
    status = _INVALID if code == "CORE:VALIDATION" else _FAILED
    return Reply(status, JSON, error_body(id, code, description))


def replies_of(flow: str) -> str:
    """Return the topic in which the results of a flow come back to waiting requests.

    >>> replies_of("orders")
    'orders.replies'
    """
    return f"{flow}.replies"


def reply_records(flow: str, trigger: HttpTrigger, result: RunResult) -> list[PublishRequest]:
    """Return the records of the results, none where no request waits for a result."""
    if trigger.reply != "result":
        return []
    topic, outcomes = replies_of(flow), result.outcomes
    by_id = {outcome.message.attribute.get("id"): outcome for outcome in outcomes}
    return [
        PublishRequest(reply_of(outcome, id, trigger.format).record(id, topic))
        for id, outcome in by_id.items()
        if id is not None
    ]


def refused_reply(given: PublishRequest, fault: Fault) -> PublishRequest:
    """Return the record of a reply that says why Kafka refused the result."""
    id, topic = given.fields["key"], given.fields["topic"]
    return PublishRequest(failed(id, fault.code, fault.description).record(id, topic))


def reply_of(outcome: Outcome, id: str, format: str) -> Reply:
    """Return the reply for what became of a message."""
    try:
        return _reply(outcome, id, format)
    except Exception as error:  # whatever the steps left: one result must not hold up the others
        return failed(id, "CORE:RUNTIME", f"the result cannot be a reply: {error}")


def _reply(outcome: Outcome, id: str, format: str) -> Reply:
    if outcome.dead_letters:
        error = outcome.dead_letters[0].error
        return failed(id, error["Code"], error["Description"])
    if outcome.results:
        return _result(outcome.results, outcome.message, format)
    last = outcome.last
    if outcome.status == "handled" and last is not None and last.error:
        if "status" not in last.variable:
            return failed(id, last.error["Code"], last.error["Description"])
        return _result([last], outcome.message, format)
    return Reply(_NO_CONTENT, JSON, b"")


def _result(results: list[Message], request: Message, format: str) -> Reply:
    """Return the payload at the end of the flow; of a split message the list of its parts' payloads."""
    first = results[0]
    payload = first.payload
    if len(results) > 1:
        payload = [each.document if format == "json" else each.payload for each in results]
    kind, body = _content(payload)
    if body == request.payload and format == "json":
        kind = JSON
    return Reply(_status(first), _type(first, kind), body)


def _content(payload: Any) -> tuple[str, bytes]:
    if isinstance(payload, bytes):
        return _BYTES, payload
    if isinstance(payload, str):
        return _TEXT, payload.encode("utf-8", "replace")
    return JSON, json_of(payload).encode("utf-8", "replace")


def _status(message: Message) -> int:
    given = message.variable.get("status", message.attribute.get("status", 200))
    try:
        status = int(given)
    except (TypeError, ValueError):
        status = 0
    if isinstance(given, bool) or status not in _STATUSES:
        raise ExpressionError(f"the status is {given!r:.60}; allowed are 200 to 599")
    return status


def _type(message: Message, default: str) -> str:
    given = message.variable.get("content_type", default)
    if not isinstance(given, str) or not _TYPE.fullmatch(given):
        raise ExpressionError(
            f"variable.content_type is {given!r:.60}; give one as 'application/xml'"
        )
    return given
