"""The listener of flows: what is stored, who may send, what is answered. Kafka is a list here."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from tests.unit.flows.flow_cases import ran

from penstock import Connection
from penstock.errors import ConfigError, TransientError
from penstock.flows import Flow, Message
from penstock.flows.definition.triggers import HttpTrigger
from penstock.flows.listener.endpoint import Endpoint
from penstock.flows.listener.flow_listener import FlowListener
from penstock.flows.listener.known_requests import KnownRequests, Pending, id_of
from penstock.flows.listener.listener_source import FlowListenerSource
from penstock.flows.listener.reply import Reply, failed, reply_in, reply_of, reply_records
from penstock.flows.listener.request_record import Request, attributes_of
from penstock.flows.listener.shared_server import Servers, SharedServer
from penstock.testing import eventually


@dataclass
class Kafka:
    """Takes requests into a list; `away` is the error while it does not."""

    requests: list[Request] = field(default_factory=list)
    away: Exception | None = None
    is_full: bool = False

    async def store(self, request: Request) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise self.away
        self.requests.append(request)


@dataclass
class Listening:
    """A flow that listens, and what is stored."""

    server: SharedServer
    endpoint: Endpoint
    kafka: Kafka
    path: str

    def send(self, content: bytes = b"x", path: str = "", **options: Any) -> httpx.Response:
        url = f"http://127.0.0.1:{self.server.port}{path or self.path}"
        method = options.pop("method", "POST")
        return httpx.request(method, url, content=content, timeout=30, **options)

    def reply(self, number: int, status: int = 200, body: bytes = b"done") -> None:
        """Bring the result of the request of this number, as the reader of the topic does."""
        request = eventually(lambda: self.kafka.requests[number : number + 1])[0]
        replies = [(request.id, Reply(status, "text/plain", body))]
        self.server.loop.call_soon_threadsafe(self.endpoint.deliver, replies)


@contextmanager
def listening(
    servers: Servers | None = None, name: str = "t", **options: Any
) -> Iterator[Listening]:
    trigger = HttpTrigger(**{"path": "/in", "port": 0, **options})
    source = FlowListenerSource(flow=name, trigger=trigger, topic=f"{name}.in")
    kafka, servers = Kafka(), servers or Servers()
    endpoint = Endpoint(source, kafka.store, lambda: kafka.is_full)
    server = servers.join(endpoint)
    try:
        yield Listening(server, endpoint, kafka, trigger.path)
    finally:
        server.run(endpoint.close(0.1))
        servers.leave(server, endpoint)


def test_a_request_is_a_record_before_it_is_accepted() -> None:
    with listening() as flow:
        headers = {"X-Trace": "abc", "Cookie": "session=1", "Authorization": "Bearer secret-token"}
        reply = flow.send(b"\x00\xff", "/in?a=1&b=x%20y&b=z", headers=headers)

        (request,) = flow.kafka.requests
        assert (reply.status_code, reply.json()) == (202, {"id": request.id})
        assert reply.headers["X-Request-Id"] == request.id
        assert request.value == b"\x00\xff"
        ((name, value),) = request.headers
        attributes = attributes_of([{"key": name, "value": value}])
        assert attributes["headers"].pop("host").startswith("127.0.0.1:")
        assert {*attributes["headers"]} >= {"x-trace", "content-length"}
        assert not {*attributes["headers"]} & {"cookie", "authorization"}
        assert attributes == {
            "id": request.id,
            "method": "POST",
            "path": "/in",
            "query": {"a": "1", "b": ["x y", "z"]},
            "headers": attributes["headers"],
        }
        assert flow.endpoint.counted().records == 1
        assert flow.endpoint.counted().records == 0


@pytest.mark.parametrize(
    ("form", "body", "status", "value"),
    [
        ("json", b'{"a": 1}', 202, b'{"a": 1}'),
        ("json", b'{"a": NaN}', 400, None),
        ("json", b"", 400, None),
        ("form", b"a=1&b=x+y&b=%C3%A4&c=", 202, '{"a":"1","b":["x y","ä"],"c":""}'.encode()),
        ("form", b"a=%FF", 400, None),
        ("form", b"\xff", 400, None),
        ("form", b"&".join([b"a=1"] * 1001), 400, None),
        ("bytes", b"", 202, b""),
        ("bytes", b"x" * 2000, 202, b"x" * 2000),
        ("bytes", b"x" * 2001, 413, None),
    ],
)
def test_bodies(form: str, body: bytes, status: int, value: bytes | None) -> None:
    with listening(format=form, max_bytes=max(2000, 10_000 * (form == "form"))) as flow:
        assert flow.send(body).status_code == status
        assert [request.value for request in flow.kafka.requests] == [value] * (value is not None)


def test_a_form_of_another_type_is_refused() -> None:
    with listening(format="form") as flow:
        assert flow.send(b"a=1", headers={"Content-Type": "multipart/form-data"}).status_code == 415
        kind = "application/x-www-form-urlencoded; charset=utf-8"
        assert flow.send(b"a=1", headers={"Content-Type": kind}).status_code == 202


SECRET = "a-key-of-16-bytes"
SIGNATURE = hmac.new(SECRET.encode(), b"signed", hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("auth", "good", "bad"),
    [
        ({"token": "token-123"}, ("Authorization", "Bearer token-123"), "Bearer token-12"),
        (
            {"basic": {"username": "u", "password": "p"}},
            ("Authorization", f"Basic {b64encode(b'u:p').decode()}"),
            f"Basic {b64encode(b'u:q').decode()}",
        ),
        ({"hmac": {"secret": SECRET}}, ("X-Signature", SIGNATURE), SIGNATURE[:-1] + "x"),
        ({"hmac": {"secret": SECRET}}, ("X-Signature", f"sha256={SIGNATURE.upper()}"), "sha256="),
    ],
)
def test_only_who_has_the_credentials_may_send(auth: Any, good: tuple[str, str], bad: str) -> None:
    with listening(auth=auth) as flow:
        name, value = good
        assert flow.send(b"signed").status_code == 401
        assert flow.send(b"signed", headers={name: bad}).status_code == 401
        assert flow.send(b"signed", headers={name: value}).status_code == 202
        if "hmac" in auth:
            assert flow.send(b"Signed", headers={name: value}).status_code == 401
        assert [request.value for request in flow.kafka.requests] == [b"signed"]
        assert SECRET not in repr(flow.endpoint.trigger)


def test_flows_of_one_process_share_a_port() -> None:
    servers = Servers()
    with listening(servers, "a") as first:
        port = first.server.port
        with (
            listening(servers, "b", port=port, path="/other") as second,
            listening(servers, "c", port=port, method="GET") as third,
        ):
            assert second.server is first.server
            assert [first.send(b"1").status_code, second.send(b"2").status_code] == [202, 202]
            assert third.send(b"", method="GET").status_code == 202
            refused = first.send(method="DELETE")
            assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, POST")
            for path in ("/in/", "/none", "/%69n", "//in"):
                assert first.send(path=path).status_code == 404
            with (
                pytest.raises(ConfigError, match=r"'a' listens for POST /in .*; give 'd' another"),
                listening(servers, "d", port=port),
            ):
                pass
        assert second.send(b"3").status_code == 404
        assert first.send(b"4").status_code == 202
        stored = [[request.value for request in flow.kafka.requests] for flow in (first, second)]
        assert stored == [[b"1", b"4"], [b"2"]]
        with (
            pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"),
            listening(port=port),
        ):
            pass


def test_results_do_not_wait_for_others() -> None:
    with listening(reply="result") as flow, ThreadPoolExecutor() as clients:
        slow = clients.submit(flow.send, b"slow")
        eventually(lambda: flow.kafka.requests)
        fast = clients.submit(flow.send, b"fast")
        flow.reply(1, 201, b"fast is done")
        reply = fast.result(20)
        assert (reply.status_code, reply.text) == (201, "fast is done")
        assert reply.headers["Content-Type"] == "text/plain"
        assert not slow.done()
        flow.reply(0, 204)
        assert (slow.result(20).status_code, slow.result(20).content) == (204, b"")
        assert len(flow.endpoint._pending) == 0


def test_without_a_result_in_time_the_request_stays_stored() -> None:
    with listening(reply="result", timeout=0.1) as flow:
        reply = flow.send()
        (request,) = flow.kafka.requests
        assert reply.status_code == 504
        assert reply.json()["id"] == request.id
        assert reply.json()["error"]["Code"] == "CORE:TIMEOUT"
        flow.reply(0)  # too late: it is dropped
        assert flow.send(b"next").status_code == 504


def test_a_key_is_one_record_and_one_result() -> None:
    with listening(reply="result") as flow, ThreadPoolExecutor() as clients:
        key = {"Idempotency-Key": "k-1"}
        both = [clients.submit(flow.send, b"x", headers=key) for _ in range(2)]
        flow.reply(0, 201)
        found = [each.result(20) for each in both]
        again = flow.send(b"x", headers=key)
        assert {(r.status_code, r.text, r.headers["X-Request-Id"]) for r in (*found, again)} == {
            (201, "done", id_of("t", b"k-1"))
        }
        assert len(flow.kafka.requests) == 1
        other = flow.send(b"y", headers=key)
        assert (other.status_code, "with another request" in other.text) == (422, True)
        assert flow.send(headers={"Idempotency-Key": "k" * 256}).status_code == 400


def test_a_key_whose_request_was_not_stored_is_free_again() -> None:
    with listening() as flow:
        flow.kafka.away = TransientError("away")
        key = {"Idempotency-Key": "k-1"}
        refused = flow.send(headers=key)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert isinstance(flow.endpoint.counted().error, TransientError)
        flow.kafka.away = None
        assert [flow.send(headers=key).status_code for _ in range(2)] == [202, 202]
        assert len(flow.kafka.requests) == 1


def test_too_many_that_wait_are_refused_for_now() -> None:
    with listening(reply="result", max_waiting=1) as flow, ThreadPoolExecutor() as clients:
        waiting = clients.submit(flow.send)
        eventually(lambda: flow.kafka.requests)
        refused = flow.send()
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        flow.reply(0)
        assert waiting.result(20).status_code == 200
        flow.kafka.is_full = True
        assert (flow.send().status_code, len(flow.kafka.requests)) == (503, 1)


def test_a_flow_that_stops_answers_what_is_under_way() -> None:
    with ThreadPoolExecutor() as clients:
        with listening(reply="result") as flow:
            waiting = clients.submit(flow.send)
            eventually(lambda: flow.kafka.requests)
        assert waiting.result(20).status_code == 504


def test_kafka_that_is_away_is_503() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        connection = Connection(brokers=f"127.0.0.1:{closed.getsockname()[1]}")
        trigger = HttpTrigger(path="/in", port=0, accept_timeout=1)
        source = FlowListenerSource(flow="t", trigger=trigger, topic="t.in")
        listener = FlowListener(source, connection, lambda: False)
        listener.start()
        try:
            reply = httpx.post(f"http://127.0.0.1:{listener.port}/in", content=b"x", timeout=30)
            assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
            assert listener.counted().error is not None
        finally:
            listener.close()


def test_known_requests_are_limited_in_number_and_bytes() -> None:
    async def run() -> None:
        known = KnownRequests(most_keys=3, most_bytes=10)
        requests = [Pending(str(n), b"%d" % n) for n in range(5)]
        for each in requests:
            known.add(each)
        assert [known.get(b"%d" % n) is not None for n in range(5)] == [
            False,
            False,
            True,
            True,
            True,
        ]
        for each in requests:
            each.reply.set_result(Reply(200, "text/plain", b"12345"))
            known.replied(each)
        assert [known.get(b"%d" % n) is not None for n in range(5)] == [
            False,
            False,
            False,
            True,
            True,
        ]
        known.forget(requests[3])
        known.add(Pending("5", b"5"))
        assert len(known) == 2

    asyncio.run(run())


def replies(*steps: Any, payload: bytes = b'{"n": 1}', format: str = "json", **options: Any) -> Any:
    (outcome,) = ran(*steps, payloads=[Message(payload, {"id": "7"})], **options).outcomes
    status, kind, body = reply_of(outcome, "7", format)
    return status, kind, json.loads(body) if kind == "application/json" and body else body


def error(code: str) -> Callable[[Any], bool]:
    return lambda found: found["id"] == "7" and found["error"]["Code"] == code


JSON = "application/json"


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ([], (200, JSON, {"n": 1})),
        ([{"map": {"twice": "payload.n * 2"}}], (200, JSON, {"twice": 2})),
        ([{"map": "'text'"}], (200, "text/plain; charset=utf-8", b"text")),
        ([{"map": "from_base64('AP8=')"}], (200, "application/octet-stream", b"\0\xff")),
        ([{"set": {"variable": {"status": "201"}}}], (201, JSON, {"n": 1})),
        ([{"set": {"attribute": {"status": "'404'"}}}], (404, JSON, {"n": 1})),
        (
            [{"map": "'<a/>'"}, {"set": {"variable": {"content_type": "'application/xml'"}}}],
            (200, "application/xml", b"<a/>"),
        ),
        ([{"filter": "payload.n > 1"}], (204, JSON, b"")),
        ([{"split": "[1, 2]"}], (200, JSON, [1, 2])),
    ],
)
def test_the_end_of_the_flow_is_the_reply(steps: list[Any], wanted: Any) -> None:
    assert replies(*steps) == wanted


@pytest.mark.parametrize(
    ("steps", "options", "status", "code"),
    [
        ([{"validate": {"required": ["id"]}}], {}, 422, "CORE:VALIDATION"),
        ([{"map": "1 / 0"}], {}, 500, "CORE:EXPRESSION"),
        ([{"map": "1 / 0"}], {"on_error": {"handler": [{"log": "x"}]}}, 500, "CORE:EXPRESSION"),
        ([{"set": {"variable": {"status": "99"}}}], {}, 500, "CORE:RUNTIME"),
        ([{"set": {"variable": {"status": "true"}}}], {}, 500, "CORE:RUNTIME"),
        ([{"set": {"variable": {"content_type": r"'a/b\r\nX: y'"}}}], {}, 500, "CORE:RUNTIME"),
    ],
)
def test_what_fails_is_an_error_with_its_code(
    steps: list[Any], options: Any, status: int, code: str
) -> None:
    found = replies(*steps, **options)
    assert found[:2] == (status, JSON)
    assert error(code)(found[2])


def test_a_handler_may_decide_what_is_replied() -> None:
    handler = [{"map": "'no'"}, {"set": {"variable": {"status": "409"}}}]
    found = replies({"map": "1 / 0"}, on_error={"handler": handler})
    assert found == (409, "text/plain; charset=utf-8", b"no")


def test_only_results_that_are_waited_for_are_written() -> None:
    result = ran(payloads=[Message(b"1", {"id": "7"}), Message(b"2", {})])
    waited, accepted = (HttpTrigger(path="/a", reply=reply) for reply in ("result", "accepted"))
    (record,) = reply_records("t", waited, result)
    assert (record.fields["topic"], record.fields["key"]) == ("t.replies", "7")
    assert reply_records("t", accepted, result) == []
    assert failed("7", "HTTP:503", "x").status == 500


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("status", b"200")],
        [("status", b"x"), ("content-type", b"text/plain")],
        [("status", b"100"), ("content-type", b"text/plain")],
        [("status", b"200"), ("content-type", b"text/plain\r\nX-Own: 1")],
        [("status", None), ("content-type", None)],
    ],
)
def test_a_record_that_is_not_a_reply_is_dropped(headers: Any) -> None:
    assert reply_in(b"x", headers) is None


def test_the_listener_fills_the_topic_of_its_flow() -> None:
    from penstock.flows.spark.flow_pipeline import flow_pipeline

    pipeline = flow_pipeline(Flow(name="t", trigger={"http": "/a"}), Connection(brokers="k"))
    source: Any = pipeline.imported().source
    assert (source.topics(), source._log_source.headers) == (["t.in"], True)
    assert source.named_topics() == ["t.in"]


@pytest.mark.parametrize(
    "steps",
    [
        [{"python": lambda _: datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))}],
        [{"python": lambda message: Message(b"x", variable={"status": float("inf")})}],
        [{"python": lambda message: Message(b"x", variable=["status"])}],  # type: ignore[arg-type]
    ],
)
def test_a_result_that_cannot_be_a_reply_is_an_error_of_its_request(steps: list[Any]) -> None:
    """An exception here would repeat the batch, and what it published, without end."""
    status, _, body = replies(*steps)

    assert (status, error("CORE:RUNTIME")(body)) == (500, True)


@pytest.mark.parametrize("written", [b"", b"{", b"[1]", b"null", b"\xff"])
def test_a_record_of_another_program_has_no_attributes_of_a_request(written: bytes) -> None:
    assert attributes_of([{"key": "penstock.request", "value": written}]) == {}


@pytest.mark.parametrize("target", ["//[", "//host/in", "/in#part"])
def test_an_odd_target_is_no_path_of_a_flow(target: str) -> None:
    with listening() as flow, socket.create_connection(("127.0.0.1", flow.server.port)) as client:
        client.sendall(f"POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 404 ")


def test_a_key_that_is_forgotten_is_still_that_of_the_request_that_waits() -> None:
    with listening(reply="result") as flow, ThreadPoolExecutor() as clients:
        flow.endpoint._known = KnownRequests(most_keys=1)
        key = {"Idempotency-Key": "k-1"}
        first = clients.submit(flow.send, b"x", headers=key)
        eventually(lambda: len(flow.kafka.requests) == 1)
        other = clients.submit(flow.send, b"z", headers={"Idempotency-Key": "k-2"})
        eventually(lambda: len(flow.kafka.requests) == 2)

        assert flow.send(b"y", headers=key).status_code == 422
        flow.reply(0, body=b"of x")
        flow.reply(1, body=b"of z")

        assert (first.result(20).text, other.result(20).text) == ("of x", "of z")
        assert len(flow.kafka.requests) == 2
