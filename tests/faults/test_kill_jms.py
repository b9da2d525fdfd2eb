"""JMS under kill -9 of tasks at every moment: nothing is lost, what comes again is counted."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.faults.kills import kills
from tests.services.artemis import Artemis
from tests.services.jms_client import receive, send, texts

import penstock
from penstock import Connection, Pipeline
from penstock.imports.jms.jms_import import JmsImport, JmsPart
from penstock.imports.jms.jms_reader import JmsReader
from penstock.imports.part_task import Errand, run
from penstock.imports.positions import Known, create_topic
from penstock.kafka import Admin
from penstock.pipeline.importing import Portion, Position, Reader
from penstock.sinks.jms.jms_outlet import JmsOutlet
from penstock.sinks.jms.jms_sink import JmsSink
from penstock.sinks.messages import Refusal
from penstock.testing import eventually, fill, read_all

KILLS = kills(6)

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(900)]
# Processes that begin with everything imported: a kill costs a moment, not a start of Python.
_processes = get_context("forkserver")
_processes.set_forkserver_preload(["penstock.imports.part_task", "penstock.sinks.jms.jms_outlet"])


def die(folder: Path, moment: str) -> None:
    """Kill this process, a task's, where a file says so."""
    try:
        (folder / f"kill-{moment}").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(moment: str, folder: Path, target: Callable[..., Any], *arguments: Any) -> None:
    """Run something in a process, which is killed at this moment."""
    (folder / f"kill-{moment}").touch()
    process = _processes.Process(target=target, args=arguments)
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, (moment, process.exitcode)


@dataclass(frozen=True)
class MortalPart(JmsPart):
    folder: Path = Path()

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        with super().open(position) as reader:
            assert isinstance(reader, JmsReader)
            die(self.folder, "opened")
            yield MortalReader(reader, self.folder)


class MortalReader(Reader):
    def __init__(self, reader: JmsReader, folder: Path) -> None:
        self._reader = reader
        self._folder = folder

    def take(self, most: int) -> Iterator[Portion]:
        for each in self._reader.take(most):
            yield each
            die(self._folder, "sent")
        die(self._folder, "taken")

    def settle(self) -> None:
        die(self._folder, "committed")
        taken = self._reader._taken
        self._reader._taken = taken[: len(taken) // 2]
        self._reader.settle()
        die(self._folder, "half")
        self._reader._taken = taken[len(taken) // 2 :]
        self._reader.settle()
        die(self._folder, "settled")


READING = ("opened", "sent", "taken", "committed", "half", "settled")


def test_no_message_is_lost_by_kills_of_reading_tasks(
    connection: Connection, artemis: Artemis, unique: str, tmp_path: Path
) -> None:
    create_topic(connection)
    with Admin(connection) as admin:
        admin.create_topic(unique)
    options = JmsImport(**artemis.options, queues=unique, prefetch=50)
    part = MortalPart(options, unique, None, tmp_path)
    errand = Errand(unique, 0, part, connection, unique, f"{unique}.letters", Known(), 200)
    dice = random.Random(unique)
    count = 0
    for number in range(KILLS):
        more = dice.randrange(150, 400)
        send(artemis, unique, texts(more, count))
        count += more
        killed_at(READING[number % len(READING)], tmp_path, run, errand, inf)
    # What a killed task held comes back when the broker has seen that its connection is gone.
    eventually(
        lambda: run(errand, inf).error is None and _all(connection, unique, count), every=0.2
    )
    assert receive(artemis, unique) == []
    records = read_all(connection, unique)
    times = Counter(int(record.value) for record in records)
    assert {*times} == {*range(count)}
    # Only what was committed and not acknowledged comes again: at most a transaction for each kill at
    # the two moments between. The key tells that it is the same.
    assert sum(times.values()) - count <= KILLS / len(READING) * 2 * 200
    assert len({record.key for record in records}) == count
    print(f"{KILLS} kills, {count} messages, {sum(times.values()) - count} imported again")


def _all(connection: Connection, topic: str, count: int) -> bool:
    return len({record.value for record in read_all(connection, topic)}) == count


class MortalSink(JmsSink):
    name = "mortal-jms"
    folder: Path

    def outlet(self) -> JmsOutlet:
        return MortalOutlet(self, self.folder)


class MortalOutlet(JmsOutlet):
    def __init__(self, sink: JmsSink, folder: Path) -> None:
        super().__init__(sink)
        self._folder = folder

    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:
        die(self._folder, "opened")
        refused = super().send(rows)
        die(self._folder, "sent")
        return refused

    def _send(self, row: int, destination: str, message: bytes) -> None:
        super()._send(row, destination, message)
        if row == 900:  # the first ones were sent when the window was full, and are answered or not
            die(self._folder, "sending")

    def _wait_for_answers(self, most: int) -> None:
        self._connection.flush("sending")
        die(self._folder, "unanswered")
        super()._wait_for_answers(most)


WRITING = ("opened", "sending", "unanswered", "sent")


def deliver(sink: MortalSink, start: int, end: int) -> None:
    """Send the rows of a batch as its task does; a batch that is repeated has the same ones."""
    numbers = [*range(start, end)]
    rows = {
        "value": [b"%d" % n for n in numbers],
        "_penstock_topic": ["t"] * len(numbers),
        "_penstock_partition": [0] * len(numbers),
        "_penstock_offset": numbers,
    }
    with sink.outlet() as outlet:
        assert [*outlet.send(pa.RecordBatch.from_pydict(rows))] == []


@pytest.mark.by_turns
@pytest.mark.parametrize("detects", [True, False])
def test_no_row_is_lost_by_kills_of_sending_tasks_and_artemis_drops_the_repeated(
    artemis: Artemis, unique: str, tmp_path: Path, detects: bool
) -> None:
    sink = MortalSink(**artemis.options, queue=unique, folder=tmp_path, duplicate_detection=detects)
    kills = KILLS if detects else len(WRITING)
    batches = [(start, start + 1200) for start in range(0, kills // len(WRITING) * 1200, 1200)]
    for start, end in batches:
        for moment in WRITING:
            killed_at(moment, tmp_path, deliver, sink, start, end)
        deliver(sink, start, end)
    times = Counter(int(each.body) for each in receive(artemis, unique))
    assert {*times} == {*range(batches[-1][1])}
    again = sum(times.values()) - len(times)
    assert (again == 0) is detects
    print(f"{kills} kills, {len(times)} rows, {again} messages again")


def test_a_pipeline_whose_sending_tasks_are_killed(
    connection: Connection, artemis: Artemis, unique: str, tmp_path: Path
) -> None:
    sink = MortalSink(
        **artemis.options, queue=unique, folder=tmp_path, value="value", duplicate_detection=True
    )
    definition = Pipeline(
        name=unique, connection=connection, source={"kafka": unique}, sink=sink,
        state=str(tmp_path / "state"), restart={"wait": "100ms", "longest": "300ms", "limit": 100},
    )  # fmt: skip
    fill(connection, unique, [{"n": n} for n in range(3000)])
    moments = ("sending", "unanswered", "sent")
    for moment in moments:
        (tmp_path / f"kill-{moment}").touch()
    with penstock.start(definition) as running:
        eventually(
            lambda: not [*tmp_path.glob("kill-*")] and running.progress().rows >= 3000, timeout=240
        )
    times = Counter(each.body for each in receive(artemis, unique))
    assert len(times) == 3000
    assert {*times.values()} == {1}
