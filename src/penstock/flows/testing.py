"""Runs the tests of a flow: canned replies in place of systems, and the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, ClassVar

from penstock.flows.compiled import CompiledFlow
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.test_case import Expected, Reply, TestCase, time_of
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import ExpressionError
from penstock.flows.expressions.time_functions import clock
from penstock.flows.expressions.value_text import bytes_of, from_json, time_text
from penstock.flows.message import Message
from penstock.flows.publish.operation import Operation
from penstock.flows.publish.operations import DatabasePublish, HttpPublish
from penstock.flows.running.flow_run import FlowStoppedError, FlowWaitsError, RunResult, shown
from penstock.flows.running.systems import HttpReply, HttpRequest, PublishRequest, Receipt, Systems
from penstock.flows.steps.http_step import require_success


@dataclass(frozen=True)
class Published:
    """A message that a flow published."""

    step: str
    system: str
    fields: Mapping[str, Any]


@dataclass
class CannedReplies:
    """Every system that a flow needs, without one: canned replies, and a list of what was published."""

    replies: Mapping[str, Sequence[Reply]] = field(default_factory=dict)
    published: list[Published] = field(default_factory=list)
    sent: list[HttpRequest] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    # Requests are sent one after the other, so that each message has the reply that is meant for it.
    in_order: ClassVar[bool] = True
    # The places of steps, by which they are called, and their names in the test.
    names: Mapping[str, str] = field(default_factory=dict)
    _offsets: Counter[tuple[str, int]] = field(default_factory=Counter)
    _given: Counter[str] = field(default_factory=Counter)

    def publish(
        self, step: str, operation: Operation, requests: Sequence[PublishRequest]
    ) -> list[Receipt | Fault]:
        """Note the messages; offsets count from 0 in each partition."""
        return [self._published(step, operation, request) for request in requests]

    def _published(
        self, step: str, operation: Operation, request: PublishRequest
    ) -> Receipt | Fault:
        reply = self._reply(step)
        if reply is not None and reply.error:
            return Fault(reply.error, "as the test says")
        if isinstance(operation, HttpPublish):
            given = _http_reply(reply or Reply())
            try:
                require_success(given, operation.success)
            except Fault as fault:
                return fault
        self.published.append(Published(self._name(step), operation.name, request.fields))
        if isinstance(operation, HttpPublish):
            return {"status": given.status}
        if isinstance(operation, DatabasePublish):
            has_rows = reply is not None and "rows" in reply.model_fields_set
            return {"rows": len(reply.rows) if reply and has_rows else 1}
        if operation.name != "kafka":
            return {name: request.fields[name] for name in _RECEIPT if name in request.fields}
        topic, partition = request.fields["topic"], request.fields["partition"] or 0
        self._offsets[topic, partition] += 1
        return {
            "topic": topic,
            "partition": partition,
            "offset": self._offsets[topic, partition] - 1,
        }

    def send(self, step: str, _options: Any, request: HttpRequest) -> HttpReply:
        """Return the canned reply of HTTP."""
        self.sent.append(request)
        return _http_reply(self._required(step, "a request of HTTP"))

    def query(
        self, step: str, _options: Any, _sql: str, _parameters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the canned rows."""
        return self._required(step, "a query").rows

    def _required(self, step: str, what: str) -> Reply:
        reply = self._reply(step)
        if reply is None:
            name = self._name(step)
            raise Fault(
                "CORE:RUNTIME",
                f"the step {name} sends {what}, and the test has no reply to it: give one in 'replies', "
                "by the step's id",
            )
        if reply.error:
            raise Fault(reply.error, "as the test says")
        return reply

    def _reply(self, step: str) -> Reply | None:
        name = self._name(step)
        replies = self.replies.get(name)
        if not replies:
            return None
        self._given[name] += 1
        return replies[min(self._given[name], len(replies)) - 1]

    def _name(self, step: str) -> str:
        return self.names.get(step, step)

    def wait(self, seconds: float) -> None:
        """Note a wait, and do not wait."""
        self.waited.append(seconds)

    def systems(self) -> Systems:
        """Return them as a run takes them."""
        return Systems(self, self, self, wait=self.wait, clock=lambda: sum(self.waited))


_RECEIPT = ("exchange", "routing_key", "destination")


def _http_reply(reply: Reply) -> HttpReply:
    headers = dict(reply.headers)
    if not isinstance(reply.body, str | None):
        headers.setdefault("Content-Type", "application/json")
    return HttpReply(reply.status, headers, bytes_of(reply.body) or b"")


def canned_systems() -> Systems:
    """Return systems that take everything that is published, and reply to nothing else."""
    return CannedReplies().systems()


@dataclass(frozen=True)
class TestResult:
    """What came of one test: the differences, none where it passes."""

    # pytest must not collect it where it is imported.
    __test__ = False

    case: TestCase
    differences: list[str]
    result: RunResult
    published: list[Published]


def run_tests(flow: Flow, *, traces: bool = False) -> list[TestResult]:
    """Run the tests of a flow, each with steps that have seen nothing before."""
    return [run_test(flow, case, traces=traces) for case in flow.tests]


def run_test(flow: Flow, case: TestCase, *, traces: bool = False) -> TestResult:
    """Run one test."""
    names = {path: step.id or path for path, step in flow.all_steps()}
    canned = CannedReplies({step: case.replies_to(step) for step in case.replies}, names=names)
    messages = [
        Message(each.payload_bytes(), each.attribute, each.variable) for each in case.messages
    ]
    stopped: FlowStoppedError | FlowWaitsError | None = None
    token = clock.set(_clock(case.now))
    try:
        result = CompiledFlow(flow).run(messages, canned.systems(), traces=traces)
    except (FlowStoppedError, FlowWaitsError) as error:
        stopped, result = error, RunResult([])
    finally:
        clock.reset(token)
    found = list(_differences(case.expect, result, canned.published, stopped))
    return TestResult(case, found, result, canned.published)


def _clock(now: str | None) -> Any:
    if now is None:
        return lambda: datetime.now(timezone.utc)
    fixed = time_of(now)
    return lambda: fixed


def _differences(
    expected: Expected,
    result: RunResult,
    published: Sequence[Published],
    stopped: FlowStoppedError | FlowWaitsError | None,
) -> Iterator[str]:
    step = stopped.failure.step if stopped else None
    if stopped and expected.stopped is None:
        yield f"{stopped}"
        return
    if expected.stopped != step:
        yield f"stopped: expected {expected.stopped}, found {step or 'no stop'}"
    if expected.status is not None and expected.status != result.statuses():
        yield f"status: expected {expected.status}, found {result.statuses()}"
    if expected.results is not None:
        found = [message.shown() for message in result.results]
        yield from _lists("results", [_given(each) for each in expected.results], found)
    if expected.published is not None:
        sent = [_published(each) for each in published]
        yield from _lists("published", [_publish(each) for each in expected.published], sent)
    if expected.dead_letters is not None:
        letters = [
            {"step": each.from_step, "code": each.error["Code"], "payload": each.message.payload}
            for each in result.dead_letters
        ]
        yield from _lists("dead_letters", [_given(each) for each in expected.dead_letters], letters)


def _given(model: Any) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.model_fields_set}


def _publish(model: Any) -> dict[str, Any]:
    given = _given(model)
    fields = given.pop("fields", {})
    return {**given, **fields}


def _published(each: Published) -> dict[str, Any]:
    fields = dict(each.fields)
    request = fields.pop("request", None)
    if request is not None:
        fields |= {"method": request.method, "url": request.url, "value": request.body}
    if isinstance(headers := fields.get("headers"), list):  # the pairs of a record
        fields["headers"] = dict(headers)
    return {**fields, "step": each.step}


def _lists(what: str, expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterator[str]:
    if len(expected) != len(found):
        yield f"{what}: expected {len(expected)}, found {len(found)}: {shown(found)}"
        return
    for number, (wanted, real) in enumerate(zip(expected, found, strict=True)):
        for name, value in wanted.items():
            if not fits(value, real.get(name)):
                place = f"{what}[{number}].{name}"
                yield f"{place}: expected {shown(value)}, found {shown(real.get(name))}"


def fits(expected: Any, found: Any) -> bool:  # noqa: PLR0911 - one for each type
    """Return whether a value is the expected one; of objects only the expected members are compared.

    >>> fits({"a": 1}, b'{"a": 1, "b": 2}'), fits([1], [1, 2]), fits("x", b"x"), fits(None, b"x")
    (True, False, True, False)
    """
    if expected is None:
        return found is None or found == b"null"
    if isinstance(found, bytes) and not isinstance(expected, bytes):
        if isinstance(expected, str):
            return expected.encode() == found or fits(expected, _json_or_none(found))
        return fits(expected, _json_or_none(found))
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return False
        return all(key in found and fits(value, found[key]) for key, value in expected.items())
    if isinstance(expected, list):
        is_list = isinstance(found, list) and len(expected) == len(found)
        return is_list and all(map(fits, expected, found))
    if isinstance(expected, bool) is not isinstance(found, bool):
        return False
    if isinstance(found, datetime) or isinstance(expected, datetime):
        return bool(_time(expected) == _time(found))
    return bool(expected == found)


def _time(value: Any) -> Any:
    """Return a time as the text that is published of it."""
    if isinstance(value, datetime):
        return time_text(value)
    try:
        return time_text(time_of(value)) if isinstance(value, str) else value
    except ExpressionError:
        return value


def _json_or_none(data: bytes) -> Any:
    try:
        return from_json(data)
    except ExpressionError:
        return None
