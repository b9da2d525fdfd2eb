"""The HTTP listener: what is acknowledged is in the topic, and hostile requests are refused."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.services.outage import stay_away

import penstock
from penstock import Admin, Broker, Connection, Pipeline
from penstock.engine import State
from penstock.errors import ConfigError, DefinitionError
from penstock.imports.http_listener import HttpListenerImport
from penstock.imports.http_listener.listener_thread import ListenerThread
from penstock.testing import eventually, read_all

Reply = tuple[int, dict[str, Any]]


@contextmanager
def listening(
    connection: Connection, topic: str, full: bool = False, **options: Any
) -> Iterator[int]:
    found = HttpListenerImport(topic=topic, **options)
    with Admin(connection) as admin:
        known = {each.name for each in admin.topics()}
        for name in set(found.topics()) - known:
            admin.create_topic(name, 1)
    listener = ListenerThread(found, connection, lambda: full)
    listener.start()
    try:
        yield listener.port
    finally:
        listener.close()


def post(port: int, body: bytes = b"x", path: str = "/", **headers: str) -> Reply:
    client = HTTPConnection("127.0.0.1", port, timeout=60)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    client.request("POST", path, body, names)
    return read(client.getresponse())


def read(reply: HTTPResponse) -> Reply:
    return reply.status, json.loads(reply.read())


def values(connection: Connection, topic: str) -> list[bytes]:
    return [record.value for record in read_all(connection, topic)]


def test_a_request_is_answered_when_its_record_is_in_the_topic(
    connection: Connection, unique: str
) -> None:
    options = {"key": {"header": "X-Id"}, "headers": ["X-Trace", "Content-Type"]}
    with listening(connection, unique, **options) as port:
        status, reply = post(port, b"\x00\xff", X_Id="7", X_Trace="abc", Idempotency_Key="once")
        (record,) = read_all(connection, unique)
        assert (status, reply) == (
            200,
            {"records": [{"topic": unique, "partition": 0, "offset": 0}]},
        )
        assert (record.key, record.value) == (b"7", b"\x00\xff")
        assert dict(record.headers) == {"x-trace": b"abc", "idempotency-key": b"once"}
        assert post(port)[1]["error"].endswith(
            "the header X-Id is missing, which is the record's key"
        )


@pytest.mark.parametrize(
    ("form", "body", "wanted"),
    [
        ("bytes", b"", [b""]),
        ("json", b' {"a": 1.10} ', [b'{"a": 1.10}']),
        ("json_array", b'[{"a":1}, 2]', [b'{"a":1}', b"2"]),
        ("json_array", b"[]", []),
        ("json_lines", b'{"a":1}\n\n[2]\r\n', [b'{"a":1}', b"[2]"]),
        ("lines", b"a\r\n\nb", [b"a", b"", b"b"]),
        ("lines", b"a\r\r\n", [b"a\r"]),
    ],
)
def test_formats(
    connection: Connection, unique: str, form: str, body: bytes, wanted: list[bytes]
) -> None:
    with listening(connection, unique, format=form) as port:
        status, reply = post(port, body)
        assert (status, len(reply["records"])) == (200, len(wanted))
    assert values(connection, unique) == wanted


def test_bad_bodies_are_refused_as_a_whole_and_the_connection_stays(
    connection: Connection, unique: str
) -> None:
    with listening(connection, unique, format="json_lines", key={"pointer": "/id"}) as port:
        client = HTTPConnection("127.0.0.1", port)
        for body, reason in [
            (b'{"id":1}\n{oops}', "line 2: not JSON"),
            (b'{"id":1}\n{"a":1}', "there is no key at /id"),
            (b"\xff", "not JSON"),
            (b"[" * 100_000, "not JSON"),
            (b'{"id":"' + b"x" * 899_000 + b'"}', ""),
        ]:
            client.request("POST", "/", body)
            status, reply = read(client.getresponse())
            assert status in (400, 413)
            assert reason in reply["error"]
        client.request("PUT", "/", b'{"id":"k"}')
        assert read(client.getresponse())[0] == 200
    (record,) = read_all(connection, unique)
    assert (record.key, record.value) == (b"k", b'{"id":"k"}')


def test_a_request_with_one_record_that_is_too_large_is_refused_as_a_whole(
    connection: Connection, unique: str
) -> None:
    with listening(connection, unique, format="json_array", max_body=5_000_000) as port:
        body = json.dumps(["first", "x" * 1_500_000, "last"]).encode()
        status, reply = post(port, body)
        assert status == 413
        assert reply["error"].startswith("record 2 of the body has 1500102 bytes")
    assert values(connection, unique) == []


def test_a_topic_of_small_records_takes_many_of_them_at_once(
    connection: Connection, unique: str
) -> None:
    with Admin(connection) as admin:
        admin.create_topic(unique, 1, config={"max.message.bytes": 2000})
    with listening(connection, unique, format="json_array") as port:
        assert post(port, json.dumps(["x" * 150] * 50).encode())[0] == 200
        assert post(port, json.dumps(["first", "x" * 3000]).encode())[0] == 413
    assert values(connection, unique) == [b'"' + b"x" * 150 + b'"'] * 50


def test_records_that_kafka_refused_do_not_prevent_the_end(
    connection: Connection, unique: str
) -> None:
    with listening(connection, unique, format="lines") as port:
        with Admin(connection) as admin:
            admin.alter_topic(unique, {"max.message.bytes": 300})
        assert post(port, b"\n".join([b"x" * 1000] * 20))[0] == 413
        assert post(port, b"small")[0] == 200
    assert values(connection, unique) == [b"small"]
    with pytest.raises(ConnectionRefusedError):
        post(port)


def test_a_compressed_body_is_stored_where_its_encoding_is_too(
    connection: Connection, unique: str
) -> None:
    with listening(connection, unique, headers=["content-encoding"]) as port:
        assert post(port, b"\x1f\x8b", Content_Encoding="gzip")[0] == 200
    (record,) = read_all(connection, unique)
    assert (record.value, dict(record.headers)) == (b"\x1f\x8b", {"content-encoding": b"gzip"})
    with listening(connection, unique, format="lines", headers=["content-encoding"]) as port:
        status, reply = post(port, b"\x1f\x8b", Content_Encoding="gzip")
        assert (status, reply["error"].partition(":")[0]) == (
            415,
            "the body is compressed ('gzip')",
        )


def test_paths_lead_to_topics(connection: Connection, unique: str) -> None:
    options = {"path": "/in", "paths": ["a", "b"], "key": {"path": True}}
    with listening(connection, unique + ".{path}", **options) as port:
        assert post(port, b"1", "/in/a?x=1")[0] == post(port, b"2", "/in/b")[0] == 200
        for path in ("/in", "/in/", "/in/c", "/in/a/b", "/in/../in/a", "/in/%61", "//in/a"):
            assert post(port, b"3", path)[0] == 404
    assert values(connection, f"{unique}.a") == [b"1"]
    (record,) = read_all(connection, f"{unique}.b")
    assert (record.key, record.value) == (b"b", b"2")


@pytest.mark.parametrize(
    ("auth", "headers", "path"),
    [
        ({"bearer": "token-12345"}, {"Authorization": "bearer token-12345"}, "/"),
        (
            {"basic": {"username": "u", "password": "p"}},
            {"Authorization": "Basic dTpw"},
            "/",
        ),
        ({"api_key": {"header": "X-Key", "secret": "key-12345"}}, {"X_Key": "key-12345"}, "/"),
        ({"api_key": {"parameter": "k", "secret": "key-12345"}}, {}, "/?k=key-12345"),
    ],
)
def test_only_who_has_the_credentials_may_send(
    connection: Connection, unique: str, auth: Any, headers: dict[str, str], path: str
) -> None:
    with listening(connection, unique, auth=auth) as port:
        assert post(port, b"good", path, **headers)[0] == 200
        assert post(port, b"none")[0] == 401
        assert post(port, b"none", "/nowhere")[0] == 401
        wrong = {name: value[:-1] for name, value in headers.items()}
        assert post(port, b"wrong", path[:-1] or "/", **wrong)[0] == 401
        assert post(port, b"wrong", "/?k=", Authorization="é", X_Key="")[0] == 401
        many = post(port, b"many", "/?" + "a=1&" * 200)
        is_parameter = "parameter" in (auth.get("api_key") or {})
        assert many[0] == (400 if is_parameter else 401)
    assert values(connection, unique) == [b"good"]


def test_tls(connection: Connection, unique: str, tmp_path: Path) -> None:
    files = certificate(tmp_path)
    with listening(connection, unique, tls=files) as port:
        context = ssl.create_default_context(cafile=str(files["certificate"]))
        client = HTTPSConnection("localhost", port, context=context, timeout=60)
        client.request("POST", "/", b"secret")
        assert read(client.getresponse())[0] == 200
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
            assert plain.recv(100)[:4] != b"HTTP"
    assert values(connection, unique) == [b"secret"]
    with pytest.raises(ConfigError, match="check the files of 'tls'"):
        wrong = {"certificate": "none.pem", "key": "none.pem"}
        ListenerThread(HttpListenerImport(topic="t", tls=wrong), connection, lambda: False).start()


def certificate(folder: Path) -> dict[str, Path]:
    import subprocess

    files = {"certificate": folder / "c.pem", "key": folder / "k.pem"}
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    out = ["-out", files["certificate"], "-keyout", files["key"]]
    subprocess.run([*command, *names, *out], check=True, capture_output=True)
    return files


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
SMUGGLED = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nsmuggled"


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: +1\r\n\r\nx", 400),
        (HEAD + b"Content-Length: 1 \t\r\n\r\nx", 200),
        (HEAD + b"Content-Length: 1,1\r\n\r\nx", 400),
        (HEAD + b"Content-Length: 0x1\r\n\r\nx", 400),
        (HEAD + b"Content-Length: 99999999999999999999\r\n\r\nx", 400),
        (HEAD + b"Content-Length: 999999999999999\r\n\r\nx", 413),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        (HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400),
        (HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
        (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
        (HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", 501),
        (HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", 400),
        (HEAD + b" Folded: x\r\nContent-Length: 1\r\n\r\nx", 400),
        (HEAD + b"A: b\nContent-Length: 1\r\n\r\nx", 400),
        (HEAD + b"A: b\x00\r\nContent-Length: 1\r\n\r\nx", 400),
        (HEAD + b"No colon\r\n\r\n", 400),
        (HEAD + b"\r\n", 411),
        (HEAD + b"Host: b\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 200),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nT: 1\r\n\r\n", 200),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nx\r\n0\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\nx", 413),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 40_000, 400),
        (HEAD + b"A: " + b"x" * 40_000 + b"\r\n\r\n", 431),
        (HEAD + b"A: b\r\n" * 101 + b"\r\n", 431),
        (HEAD + b"Expect: tea\r\nContent-Length: 1\r\n\r\nx", 417),
        (b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx", 200),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"POST  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"POST //[x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 404),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415),
        (HEAD + b"Content-Encoding: Identity\r\nContent-Length: 1\r\n\r\nx", 200),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)  # fmt: skip
def test_hostile_requests_are_refused_and_nothing_is_smuggled(
    listener: tuple[str, int], connection: Connection, request_: bytes, status: int
) -> None:
    topic, port = listener
    before = len(values(connection, topic))
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(request_)
        client.shutdown(socket.SHUT_WR)
        replies = b"".join(iter(lambda: client.recv(65536), b""))
    assert replies.startswith(b"HTTP/1.1 %d " % status), replies
    assert replies.count(b"Content-Length: ") == 1
    assert values(connection, topic)[before:] == [b"x"] * (status == 200)


@pytest.fixture(scope="module")
def listener(broker: Any) -> Iterator[tuple[str, int]]:
    connection = broker.connection
    with listening(connection, "hostile-requests") as port:
        yield "hostile-requests", port


def test_pipelined_requests_are_answered_in_their_order(
    connection: Connection, unique: str
) -> None:
    with (
        listening(connection, unique) as port,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        one = HEAD + b"Content-Length: 1\r\n\r\n%d"
        client.sendall(b"\r\n".join(one % n for n in range(5)))
        client.shutdown(socket.SHUT_WR)
        replies = b"".join(iter(lambda: client.recv(65536), b""))
    assert replies.count(b"HTTP/1.1 200 OK") == 5
    assert values(connection, unique) == [b"%d" % n for n in range(5)]


def test_a_client_that_waits_for_a_continue_gets_it(connection: Connection, unique: str) -> None:
    with (
        listening(connection, unique) as port,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"x")
        assert client.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_slow_and_too_many_clients_are_refused(connection: Connection, unique: str) -> None:
    with listening(connection, unique, patience=0.3, max_connections=3) as port:
        for sent, reply in [
            (HEAD, b" 408 "),
            (HEAD + b"Content-Length: 9\r\n\r\nx", b" 408 "),
            (b"", b""),
        ]:
            with socket.create_connection(("127.0.0.1", port), 60) as slow:
                slow.sendall(sent)
                assert reply in slow.recv(1000)
        many = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(4)]
        assert any(b" 503 " in each.recv(1000) for each in many)
        for each in many:
            each.close()
        eventually(lambda: post(port)[0] == 200)


def test_what_does_not_fit_gets_503_and_may_come_again(connection: Connection, unique: str) -> None:
    with listening(connection, unique, full=True) as port:
        client = HTTPConnection("127.0.0.1", port)
        client.request("POST", "/", b"x")
        reply = client.getresponse()
        assert (reply.status, reply.getheader("Retry-After")) == (503, "1")
    with listening(connection, unique, max_waiting=900_000) as port:
        with socket.create_connection(("127.0.0.1", port)) as waiting:
            waiting.sendall(HEAD + b"Content-Length: 800000\r\n\r\n" + b"x")
            eventually(lambda: post(port, b"x" * 200_000)[0] == 503)
        eventually(lambda: post(port, b"x" * 200_000)[0] == 200)


def test_a_broker_that_is_away_is_503_and_its_return_200(unique: str) -> None:
    with Broker() as broker:
        definition = Pipeline(
            name=unique,
            connection=broker.connection,
            source={"http_listener": {"timeout": 2, "port": 0}},
            sink={"kafka": unique},
            restart={"wait": "100ms", "longest": "500ms"},
        )
        with penstock.start(definition) as running:
            port = running._rounds._listener.port  # type: ignore[union-attr]
            assert post(port, b"before")[0] == 200
            eventually(lambda: running.progress().rows == 1)
            broker.kill()
            assert post(port, b"away")[0] == 503
            eventually(lambda: running.progress().state is State.RETRYING)
            stay_away()
            broker.restart()
            eventually(lambda: post(port, b"after")[0] == 200, timeout=120)
            eventually(lambda: running.progress().state is State.RUNNING)
        found = values(broker.connection, unique)
        assert found[0] == b"before"
        assert found[-1] == b"after"


def test_requests_that_are_under_way_are_answered_when_it_ends(
    connection: Connection, unique: str
) -> None:
    replies: list[Reply] = []
    with listening(connection, unique) as port:
        idle = socket.create_connection(("127.0.0.1", port))
        client = socket.create_connection(("127.0.0.1", port), 60)
        client.sendall(HEAD + b"Content-Length: 2\r\n\r\n1")
        # Requests that come later are answered: the listener has read what came before them.
        assert [post(port)[0], post(port)[0]] == [200, 200]

        def finish() -> None:
            client.sendall(b"2")
            reply = HTTPResponse(client)
            reply.begin()
            replies.append(read(reply))

        thread = Thread(target=finish)
        thread.start()
    thread.join()
    assert idle.recv(10) == b""
    assert replies[0][0] == 200
    assert values(connection, unique)[-1] == b"12"


def test_steps_behind_a_listener(connection: Connection, unique: str, tmp_path: Path) -> None:
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={"http_listener": {"format": "json_array"}},
        decode={"json": {"schema": "id bigint"}},
        steps=[{"sql": "SELECT id * 2 AS twice FROM rows WHERE id > 1"}],
        sink={"kafka": unique},
    )
    with penstock.start(definition) as running:
        port = running._rounds._listener.port  # type: ignore[union-attr]
        assert post(port, b'[{"id":1},{"id":2},{"id":3}]')[0] == 200
        eventually(lambda: len(values(connection, unique)) == 2, timeout=120)
    assert values(connection, unique) == [b'{"twice":4}', b'{"twice":6}']
    with pytest.raises(ConfigError, match="has no backlog to process"):
        penstock.start(definition, once=True)


def test_a_port_that_is_taken_is_named(connection: Connection, unique: str) -> None:
    with listening(connection, unique) as port:
        definition = Pipeline(
            name=unique,
            connection=connection,
            source={"http_listener": port},
            sink={"kafka": unique},
        )
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            penstock.start(definition)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"port": 70000}, "less than or equal to 65535"),
        ({"host": "0.0.0.0"}, "other machines can send to 0.0.0.0: give 'auth'"),
        ({"host": "example.org"}, "other machines can send"),
        ({"path": "in"}, "is not a path; give /NAME"),
        ({"path": "/{name}"}, "is not a path"),
        ({"paths": ["a/b"]}, "cannot be a name in a path"),
        ({"paths": ["a", "a"]}, "a name is there twice"),
        ({"topic": "in.{path}"}, "give the names in 'paths'"),
        ({"topic": "in.{table}"}, "allowed: {path}"),
        ({"format": "xml"}, "'bytes', 'json'"),
        ({"key": {"pointer": "/id"}}, "needs a format of JSON, not 'bytes'"),
        ({"key": {"path": True}}, "give the names in 'paths'"),
        ({"key": {"header": "X", "path": True}}, "give exactly one of: header, pointer, path"),
        ({"key": {"heder": "X"}}, "'heder' is unknown; did you mean 'header'?"),
        ({"headers": ["a b"]}, "headers[0]: given 'a b'; string should match pattern"),
        ({"auth": {"oauth": {}}}, "'oauth' is unknown"),
        (
            {"auth": {"basic": {"username": "a:b", "password": "p"}}},
            "username: given 'a:b'; string",
        ),
        ({"tls": {"certificate": "a"}}, "tls.key: is required"),
        ({"max_body": 0}, "greater than or equal to 1"),
        ({"max_waiting": 10}, "has no room for one body"),
        ({"timeout": 0}, "timeout: given 0.0; input should be greater than or equal to 1"),
        ({"colour": "red"}, "colour: is not an option here; allowed: allow_anyone, auth, "),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", source={"http_listener": options}, sink={"files": "t"})
    assert message in str(caught.value)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_only_at_least_once_is_promised(delivery: str) -> None:
    with pytest.raises(
        DefinitionError, match="a sender that gets no reply sends its records again"
    ):
        Pipeline(name="p", source={"http_listener": 0}, sink={"files": "t"}, delivery=delivery)


def test_secrets_are_not_shown() -> None:
    secret = "token-98765"
    source = HttpListenerImport(auth={"bearer": secret})
    assert secret not in repr(source) + str(source.model_dump()) + source.model_dump_json()
