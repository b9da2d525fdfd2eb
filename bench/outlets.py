"""Kafka to a search server and to an HTTP service: ours against hand-written programs.

Both sides read the same topic, and write into the same server. By hand is one process: a consumer of
confluent-kafka, bodies from its messages, and http.client with a connection that stays open; the same ids
and the same sizes of requests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from itertools import count
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaException, Message
from tests.services.opensearch import OpenSearch

from bench.data import SCHEMA, fill
from bench.harness import Result, compare
from penstock import Connection, Pipeline, start
from penstock.engine import spark_session

Make = Callable[[Message], bytes]
_numbers = count()
_WANTED = 0.8
_COLUMNS = ("id", "symbol", "price", "size", "side")
_SETTINGS = {"settings": {"number_of_replicas": 0}}
_MANY = 5000


def run_search(connection: Connection, rows: int, rounds: int) -> list[Result]:
    """Measure documents of columns, and values that are documents already."""
    fill(connection, "search", rows)
    spark_session()
    decoded = {"json": {"schema": SCHEMA}}
    with OpenSearch() as server:

        def race(
            case: str, decode: Any, sink: dict[str, Any], make: Callable[[Message], bytes]
        ) -> Result:
            def ours(index: str) -> None:
                given = {"url": server.url, "index": index, **sink}
                _pipeline(connection, "search", decode, {"opensearch": given})

            def by_hand(index: str) -> None:
                _search_by_hand(connection, server, index, rows, make)

            def counted(write: Callable[[str], None]) -> Callable[[], None]:
                return lambda: _into_index(server, write, rows)

            return compare(
                case, counted(ours), counted(by_hand), rows=rows, rounds=rounds, wanted=_WANTED
            )

        return [
            race("columns -> search / bulk program", decoded, {}, _chosen),
            race("values -> search / bulk program", "raw", {"value": "value"}, _unread),
        ]


def run_http(connection: Connection, rows: int, rounds: int) -> list[Result]:
    """Measure one request for each row, and one for 500."""
    many, few = rows, max(1000, rows // 20)
    fill(connection, "http", many)
    fill(connection, "http-few", few)
    spark_session()
    decoded = {"json": {"schema": SCHEMA}}
    server = subprocess.Popen([sys.executable, "-c", _SERVICE], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())

        def race(case: str, topic: str, rows: int, batch: int) -> Result:
            def ours() -> None:
                given = {"url": f"http://127.0.0.1:{port}/", "batch": batch}
                _pipeline(connection, topic, decoded, {"http": given})

            def by_hand() -> None:
                _http_by_hand(connection, topic, port, rows, batch)

            return compare(case, ours, by_hand, rows=rows, rounds=rounds, wanted=_WANTED)

        return [
            race("a request each -> HTTP / program", "http-few", few, 1),
            race("500 in a request -> HTTP / program", "http", many, 500),
        ]
    finally:
        server.kill()


def _pipeline(connection: Connection, topic: str, decode: Any, sink: Any) -> None:
    with tempfile.TemporaryDirectory() as state:
        pipeline = Pipeline(
            name=f"bench-{next(_numbers)}",
            connection=connection,
            source={"kafka": topic},
            decode=decode,
            sink=sink,
            state=state,
        )
        with start(pipeline, once=True) as running:
            running.wait()


def _into_index(server: OpenSearch, write: Callable[[str], None], rows: int) -> None:
    index = f"bench-{next(_numbers)}"
    server.ask("PUT", f"/{index}", _SETTINGS)
    write(index)
    found = server.count(index)
    assert found == rows, (found, rows)
    server.ask("DELETE", f"/{index}")


def _search_by_hand(
    connection: Connection,
    server: OpenSearch,
    index: str,
    rows: int,
    make: Make,
) -> None:
    client = HTTPConnection("127.0.0.1", server.port)
    for messages in _messages(connection, "search", rows, _MANY):
        lines = []
        for message in messages:
            place = f"{message.topic()}-{message.partition()}-{message.offset()}"
            lines.append(b'{"index":{"_id":"%s"}}\n%s\n' % (place.encode(), make(message)))
        headers = {"Content-Type": "application/x-ndjson"}
        path = f"/{index}/_bulk?filter_path=errors,items.*.error"
        while (reply := _asked(client, path, b"".join(lines), headers)).status == 429:
            time.sleep(0.1)
        assert json.load(reply) == {"errors": False}
    client.close()


def _asked(client: HTTPConnection, path: str, body: bytes, headers: dict[str, str]) -> HTTPResponse:
    client.request("POST", path, body, headers)
    reply = client.getresponse()
    if reply.status == 429:  # the server is short of memory
        reply.read()
    return reply


def _http_by_hand(connection: Connection, topic: str, port: int, rows: int, batch: int) -> None:
    client = HTTPConnection("127.0.0.1", port)
    headers = {"Content-Type": "application/json"}
    for messages in _messages(connection, topic, rows, max(batch, 1)):
        made = [_chosen(message) for message in messages]
        body = made[0] if batch == 1 else b"[" + b",".join(made) + b"]"
        client.request("POST", "/", body, headers)
        reply = client.getresponse()
        reply.read()
        assert reply.status == 200
    client.close()


def _messages(connection: Connection, topic: str, rows: int, most: int) -> Iterator[list[Message]]:
    """Return the messages of a topic; each group is committed when it was written."""
    settings = {
        "bootstrap.servers": connection.brokers,
        "group.id": f"by-hand-{next(_numbers)}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    seen = 0
    while seen < rows:
        if messages := consumer.consume(most, 1.0 if most > 1 else -1):
            yield messages
            seen += len(messages)
            with suppress(KafkaException):  # the one before has committed these offsets as well
                consumer.commit(asynchronous=seen < rows)
    consumer.close()


def _chosen(message: Message) -> bytes:
    value = orjson.loads(message.value())
    return orjson.dumps({name: value[name] for name in _COLUMNS})


def _unread(message: Message) -> bytes:
    value = message.value()
    assert value is not None
    return value


# A service that reads requests and says 200: as small as it can be, so that the clients are measured.
_SERVICE = """
import asyncio

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            for line in head.split(b"\\r\\n"):
                if line.lower().startswith(b"content-length:"):
                    await reader.readexactly(int(line.split(b":")[1]))
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
