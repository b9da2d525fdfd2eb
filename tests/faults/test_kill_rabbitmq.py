"""RabbitMQ in and out under kill -9 of tasks at every moment, and away while it runs: nothing is lost.

Duplicates are allowed (at-least-once), counted, and explained: by message id each message is there once.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.faults.kills import kills
from tests.services.outage import stay_away
from tests.services.rabbitmq import RabbitMq

import penstock
from penstock import Connection, Pipeline, State
from penstock.imports.rabbitmq.queue_reader import QueueReader
from penstock.imports.rabbitmq.rabbitmq_import import QueuePart, RabbitMqImport, RabbitMqSystem
from penstock.pipeline import Opening, Writer
from penstock.pipeline.importing import Part, Portion, Position, Reader, System
from penstock.sinks.messages import Refusal
from penstock.sinks.messages.outlet import Opener
from penstock.sinks.rabbitmq.rabbitmq_outlet import Publishing, RabbitMqOutlet
from penstock.sinks.rabbitmq.rabbitmq_sink import RabbitMqSink
from penstock.sinks.rabbitmq.rabbitmq_writer import RabbitMqWriter
from penstock.testing import eventually, fill, read_all

KILLS = kills(6)
READING = ("opened", "sent", "taken", "committed", "settled")
WRITING = ("opened", "half", "sent")

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(900)]


def die(folder: Path, moment: str) -> None:
    """End this process where a file says so."""
    try:
        (folder / f"kill-{moment}").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


# -- out of RabbitMQ


class MortalImport(RabbitMqImport):
    """Reads queues, and is killed where a file says so: the process of the task, and nothing else."""

    name = "mortal_queues"
    folder: Path

    def system(self) -> System:
        return MortalSystem(self)


class MortalSystem(RabbitMqSystem):
    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        parts = cast("list[QueuePart]", super().pending(positions))
        return [MortalQueue(part.options, part.queue) for part in parts]


@dataclass(frozen=True)
class MortalQueue(QueuePart):
    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        folder = cast(MortalImport, self.options).folder
        with super().open(position) as reader:
            die(folder, "opened")
            yield MortalReader(cast(QueueReader, reader), folder)


class MortalReader(Reader):
    def __init__(self, reader: QueueReader, folder: Path) -> None:
        self._reader, self._folder = reader, folder

    def take(self, most: int) -> Iterator[Portion]:
        for portion in self._reader.take(most):
            yield portion
            die(self._folder, "sent")
        die(self._folder, "taken")

    def settle(self) -> None:
        die(self._folder, "committed")
        self._reader.settle()
        die(self._folder, "settled")


def test_no_message_is_lost_by_kills_of_tasks_at_every_moment(
    connection: Connection, rabbitmq: RabbitMq, unique: str, tmp_path: Path, record_property: Any
) -> None:
    dice = random.Random(unique)
    queues = {f"{unique}.a": {}, f"{unique}.b": {"x-queue-type": "quorum"}}
    for queue, arguments in queues.items():
        rabbitmq.declare(queue, **arguments)
    source = MortalImport(
        **rabbitmq.options, folder=tmp_path, queues=[*queues], poll=0.1, max_records=200
    )
    definition = Pipeline(
        name=unique,
        connection=connection,
        source=source,
        sink={"kafka": unique},
        restart={"limit": 100, "wait": "100ms", "longest": "500ms"},
    )
    sent = 0
    with penstock.start(definition) as running:
        for number in range(KILLS):
            token = tmp_path / f"kill-{READING[number % len(READING)]}"
            token.touch()
            more = dice.randrange(100, 600)
            for queue in queues:
                rabbitmq.publish(queue, _texts(queue, sent, more))
            sent += more
            eventually(lambda token=token: not token.exists(), timeout=120, every=0.05)
        wanted = {text for queue in queues for text in _texts(queue, 0, sent)}
        eventually(lambda: _values(connection, unique).keys() >= wanted, timeout=120, every=1)
        eventually(lambda: not any(map(rabbitmq.depth, queues)), timeout=60, every=0.5)
        assert running.is_active
    found = _values(connection, unique)
    assert found.keys() == wanted, "nothing is lost, nothing is invented"
    twice = sum(found.values()) - len(found)
    record_property("duplicates", f"{twice} of {len(found)} after {KILLS} kills")
    print(f"source: {KILLS} kills, {len(found)} messages, 0 lost, {twice} twice")
    # Only a kill between Kafka's commit and the acknowledgement repeats, and one transaction at most.
    between = -(-KILLS // len(READING)) + 1
    assert twice <= between * 200 * len(queues)


def _texts(queue: str, first: int, count: int) -> list[bytes]:
    return [f"{queue} {n}".encode() for n in range(first, first + count)]


def _values(connection: Connection, topic: str) -> Counter[bytes]:
    return Counter(record.value for record in read_all(connection, topic))


# -- into RabbitMQ


class MortalSink(RabbitMqSink):
    """Publishes, and is killed where a file says so."""

    name = "mortal_rabbitmq"
    folder: Path

    def open(self, opening: Opening) -> Writer:
        return MortalWriter(self, opening)


class MortalWriter(RabbitMqWriter):
    def opener(self) -> Opener:
        made = cast(Publishing, super().opener())
        return MortalPublishing(made, cast(MortalSink, self.sink).folder)


@dataclass(frozen=True)
class MortalPublishing:
    publishing: Publishing
    folder: Path

    def __call__(self) -> RabbitMqOutlet:
        return MortalOutlet(self.publishing, self.folder)


class MortalOutlet(RabbitMqOutlet):
    def __init__(self, publishing: Publishing, folder: Path) -> None:
        super().__init__(publishing)
        self._folder = folder

    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:
        die(self._folder, "opened")
        half = rows.num_rows // 2
        if (self._folder / "kill-half").exists() and half:
            [*super().send(rows.slice(0, half))]
            die(self._folder, "half")
        refused = [*super().send(rows)]
        die(self._folder, "sent")
        return refused


def test_no_row_is_lost_by_kills_of_tasks_at_every_moment(
    connection: Connection,
    rabbitmq: RabbitMq,
    topic: Callable[..., str],
    pipeline: Any,
    unique: str,
    tmp_path: Path,
) -> None:
    rabbitmq.declare(unique)
    fill(connection, topic(), [{"n": 0}], partitions=2)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink=MortalSink(**rabbitmq.options, folder=tmp_path, routing_key=unique),
        restart={"limit": 100, "wait": "100ms", "longest": "500ms"},
    )
    sent = 1
    with penstock.start(definition) as running:
        for number in range(KILLS):
            token = tmp_path / f"kill-{WRITING[number % len(WRITING)]}"
            token.touch()
            fill(connection, topic(), [{"n": n} for n in range(sent, sent + 200)])
            sent += 200
            eventually(lambda token=token: not token.exists(), timeout=120, every=0.05)
        eventually(lambda: running.progress().rows >= sent, timeout=120)
        assert running.is_active
    messages = rabbitmq.drain(unique)
    found = Counter(json.loads(body)["n"] for _, _, body in messages)
    assert found.keys() == {*range(sent)}
    twice = sum(found.values()) - len(found)
    print(f"sink: {KILLS} kills, {len(found)} rows, 0 lost, {twice} twice")
    # A repeated row has the id that it had before: consumers that know ids get each row once.
    assert len({properties.message_id for _, properties, _ in messages}) == sent


# -- away


def test_a_server_that_goes_away_and_comes_back_is_waited_for(
    connection: Connection, topic: Callable[..., str], pipeline: Any, unique: str
) -> None:
    with RabbitMq() as server:
        server.declare("in")
        server.declare("out")
        options = {**server.options, "timeout": "5s"}
        restart = {"wait": "100ms", "longest": "500ms"}
        fill(connection, topic(), [{"n": n} for n in range(100)])
        reading = Pipeline(
            name=unique,
            connection=connection,
            source={"rabbitmq": {**options, "queues": "in", "poll": 0.1}},
            sink={"kafka": unique},
            restart=restart,
        )
        writing = pipeline(
            name=f"{unique}-out",
            source={"kafka": topic()},
            decode={"json": {"schema": "n int"}},
            sink={"rabbitmq": {**options, "routing_key": "out"}},
            restart=restart,
        )
        server.publish("in", [b"%d" % n for n in range(500)])
        with penstock.start(reading) as source, penstock.start(writing) as sink:
            eventually(lambda: source.progress().rows == 500, timeout=120)
            eventually(lambda: sink.progress().rows == 100, timeout=120)
            server.publish("in", [b"%d" % n for n in range(500, 1000)])
            server.kill()
            fill(connection, topic(), [{"n": n} for n in range(100, 200)])
            for running in (source, sink):
                eventually(lambda r=running: r.progress().state is State.RETRYING, timeout=120)
                assert "RabbitMQ at" in str(running.progress().last_error)
            stay_away()
            server.start()
            eventually(lambda: len(_values(connection, unique)) == 1000, timeout=120, every=0.5)
            eventually(lambda: server.depth("out") >= 200, timeout=120, every=0.2)
            eventually(lambda: source.progress().state is State.RUNNING, timeout=60)
        assert _values(connection, unique).keys() == {b"%d" % n for n in range(1000)}
        found = {json.loads(body)["n"] for _, _, body in server.drain("out")}
        assert found == {*range(200)}
