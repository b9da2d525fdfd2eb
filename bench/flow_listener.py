"""The HTTP listener of flows: requests of 1 kB that are in Kafka when they are answered, and results.

Ours against a program by hand: Starlette under uvicorn, confluent-kafka, acks=all, a reply after the
delivery report. Client, broker and listener share the machine.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING, Any

from bench.harness import GaveUpError, Result, Side, race
from penstock import Admin, Connection, start
from penstock.flows import Flow
from penstock.flows.definition.triggers import HttpTrigger
from penstock.flows.listener.flow_listener import FlowListener
from penstock.flows.listener.listener_source import FlowListenerSource
from penstock.flows.spark.flow_pipeline import flow_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 20_000
CONNECTIONS = (8, 32)
# Clients that wait for results, and their requests; the first ones warm the engine up.
RESULTS = ((8, 80), (1, 100), (8, 400), (32, 800))
WANTED = 0.8
_numbers = count()


def run(connection: Connection, rows: int, rounds: int) -> list[Result]:
    """Measure durable requests on both sides, then how long results of a flow take."""
    rows = min(rows, MOST)
    found = [_durable(connection, rows, each, rounds) for each in CONNECTIONS]
    _results(connection)
    return found


def _durable(connection: Connection, rows: int, clients: int, rounds: int) -> Result:
    sides = {"ours": _ours, "by hand": _by_hand}

    def turn(listening: Callable[..., AbstractContextManager[int]]) -> Callable[[], float]:
        def work() -> float:
            topic = f"bench-{next(_numbers)}"
            with Admin(connection) as admin:
                admin.create_topic(topic, 1)
                with listening(connection, topic) as port:
                    seconds = _load(port, clients, rows)
                stored = sum(admin.latest(admin.partitions([topic])).values())
            if stored != rows:
                raise GaveUpError(f"{stored:,} records instead of {rows:,}")
            return seconds

        return work

    case = f"requests of 1 kB to Kafka, {clients} connections"
    best = race(case, [Side(name, rows, turn(make)) for name, make in sides.items()], rounds)
    return Result(case, rows, best["ours"], best["by hand"], WANTED)


def _load(port: int, clients: int, requests: int) -> float:
    """Send requests from another process; print the percentiles, return the seconds."""
    command = [sys.executable, "-m", "bench.http_load", str(port), "/in", str(clients)]
    done = subprocess.run([*command, str(requests)], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    if found["refused"]:
        raise GaveUpError(f"{found['refused']:,} of {requests:,} requests were refused")
    cuts = statistics.quantiles(found["took"], n=100)
    rate = requests / found["seconds"]
    print(
        f"    {clients} connections: {rate:,.0f} requests/s, p50 {cuts[49] * 1000:,.1f} ms, "
        f"p99 {cuts[98] * 1000:,.1f} ms",
        flush=True,
    )
    return float(found["seconds"])


@contextmanager
def _ours(connection: Connection, topic: str) -> Iterator[int]:
    trigger = HttpTrigger(path="/in", port=0)
    source = FlowListenerSource(flow=topic, trigger=trigger, topic=topic)
    listener = FlowListener(source, connection, lambda: False)
    listener.start()
    try:
        yield listener.port
    finally:
        listener.close()


@contextmanager
def _by_hand(connection: Connection, topic: str) -> Iterator[int]:
    import uvicorn
    from confluent_kafka import Producer
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    settings = {"bootstrap.servers": connection.brokers, "acks": "all", "linger.ms": 1}
    producer = Producer({**settings, "enable.idempotence": True})

    async def take(request: Any) -> JSONResponse:
        loop = asyncio.get_running_loop()
        stored = loop.create_future()

        def answered(error: Any, _message: Any) -> None:
            loop.call_soon_threadsafe(stored.set_result, error)

        producer.produce(topic, await request.body(), on_delivery=answered)
        error = await stored
        return JSONResponse({"id": str(next(_numbers))}, 503 if error else 202)

    app = Starlette(routes=[Route("/in", take, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", access_log=False))
    threads = [Thread(target=server.run, daemon=True)]
    threads.append(Thread(target=_polling, args=(producer, server), daemon=True))
    for thread in threads:
        thread.start()
    while not server.started:
        threads[0].join(0.05)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    for thread in threads:
        thread.join()


def _polling(producer: Any, server: Any) -> None:
    while not server.should_exit:
        producer.poll(0.1)
    producer.flush()


def _results(connection: Connection) -> None:
    """Print how long a result of a flow takes, with one client and with many."""
    name = f"bench-results-{next(_numbers)}"
    trigger = {"http": {"path": "/in", "port": 0, "format": "json", "reply": "result"}}
    flow = Flow(name=name, trigger=trigger).then(
        map={"id": "payload.id", "twice": "payload.id * 2"}
    )
    with tempfile.TemporaryDirectory(prefix="penstock-") as state:
        pipeline = flow_pipeline(flow, connection, state=state)
        with start(pipeline) as running:
            port = running._rounds._listener.port  # type: ignore[union-attr]
            print("  reply: result; the first line is the warm-up", flush=True)
            for clients, requests in RESULTS:
                _load(port, clients, requests)
