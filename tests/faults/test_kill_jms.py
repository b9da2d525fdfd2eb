"""JMS under kill -9 of tasks at every moment: nothing is lost, what comes again is counted."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.services.artemis import Artemis
from tests.services.jms_client import receive, send, texts

import penstock
from penstock import Connection, Pipeline
from penstock.imports.jms.jms_import import JmsImport, JmsPart, JmsSystem
from penstock.imports.jms.jms_reader import JmsReader
from penstock.pipeline.importing import Part, Portion, Position, Reader, System
from penstock.sinks.jms.jms_outlet import JmsOutlet
from penstock.sinks.jms.jms_sink import JmsSink
from penstock.sinks.messages import Refusal
from penstock.testing import eventually, fill, read_all

KILLS = 24

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def die(folder: Path, moment: str) -> None:
    """Kill this process, a task's, where a file says so."""
    try:
        (folder / f"kill-{moment}").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class MortalImport(JmsImport):
    name = "mortal-jms"
    folder: Path

    def system(self) -> System:
        return MortalSystem(self)


class MortalSystem(JmsSystem):
    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        return [MortalPart(each.options, each.destination) for each in super().pending(positions)]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class MortalPart(JmsPart):
    @contextmanager
    def open(self, _position: Position | None) -> Iterator[Reader]:
        folder = self.options.folder  # type: ignore[attr-defined]
        die(folder, "opened")
        with self.options.broker().connect() as connection:
            yield MortalReader(connection, self, folder)


class MortalReader(JmsReader):
    def __init__(self, connection: Any, part: JmsPart, folder: Path) -> None:
        super().__init__(connection, part, None)
        self._folder = folder

    def take(self, most: int) -> Iterator[Portion]:
        for each in super().take(most):
            yield each
            die(self._folder, "sent")
        die(self._folder, "taken")

    def settle(self) -> None:
        die(self._folder, "committed")
        rest = self._taken[len(self._taken) // 2 :]
        self._taken = self._taken[: len(self._taken) // 2]
        super().settle()
        die(self._folder, "half")
        self._taken = rest
        super().settle()
        die(self._folder, "settled")


READING = ("opened", "sent", "taken", "committed", "half", "settled")


def test_no_message_is_lost_by_kills_of_reading_tasks(
    connection: Connection, artemis: Artemis, unique: str, tmp_path: Path
) -> None:
    dice = random.Random(unique)
    source = MortalImport(
        **artemis.options, queues=unique, folder=tmp_path, poll=0.1, max_records=200, prefetch=50
    )
    definition = Pipeline(
        name=unique, connection=connection, source=source, sink={"kafka": unique},
        restart={"wait": "100ms", "longest": "300ms"},
    )  # fmt: skip
    count = 0
    with penstock.start(definition) as running:
        for number in range(KILLS):
            token = tmp_path / f"kill-{READING[number % len(READING)]}"
            token.touch()
            more = dice.randrange(150, 400)
            send(artemis, unique, texts(more, count))
            count += more
            eventually(lambda token=token: not token.exists(), timeout=120)
        eventually(lambda: len(found(connection, unique)) == count, timeout=120, every=0.5)
        assert running.is_active
    assert receive(artemis, unique) == []
    times = found(connection, unique)
    again = sum(times.values()) - count
    # Only what was committed and not acknowledged comes again: a transaction at most for each kill
    # at one of the two moments between.
    assert again <= KILLS / len(READING) * 2 * 250
    keys = {record.key for record in read_all(connection, unique)}
    assert keys == {f"ID:{n}".encode() for n in range(count)}


def found(connection: Connection, topic: str) -> Counter[int]:
    return Counter(int(record.value) for record in read_all(connection, topic))


class MortalSink(JmsSink):
    name = "mortal-jms"
    folder: Path

    def outlet(self) -> JmsOutlet:
        die(self.folder, "opened")
        return MortalOutlet(self, self.folder)


class MortalOutlet(JmsOutlet):
    def __init__(self, sink: JmsSink, folder: Path) -> None:
        super().__init__(sink)
        self._folder = folder

    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:
        super().send(rows.slice(0, rows.num_rows // 2))
        die(self._folder, "half")
        refused = super().send(rows)
        die(self._folder, "sent")
        return refused

    def _wait_for_answers(self, most: int) -> None:
        die(self._folder, "unanswered")
        super()._wait_for_answers(most)


WRITING = ("half", "sent", "unanswered")


@pytest.mark.parametrize("detects", [True, False])
def test_no_row_is_lost_by_kills_of_sending_tasks_and_artemis_drops_the_repeated(
    connection: Connection, artemis: Artemis, unique: str, tmp_path: Path, detects: bool
) -> None:
    sink = MortalSink(
        **artemis.options, queue=unique, folder=tmp_path, value="value", duplicate_detection=detects
    )
    definition = Pipeline(
        name=unique, connection=connection, source={"kafka": unique}, sink=sink,
        state=str(tmp_path / "state"), restart={"wait": "100ms", "longest": "300ms", "limit": 100},
    )  # fmt: skip
    count, kills = 0, KILLS if detects else 3
    fill(connection, unique, [{"n": -1}])
    with penstock.start(definition) as running:
        for number in range(kills):
            token = tmp_path / f"kill-{WRITING[number % len(WRITING)]}"
            token.touch()
            fill(connection, unique, [{"n": n} for n in range(count, count + 200)])
            count += 200
            eventually(lambda token=token: not token.exists(), timeout=120)
        eventually(lambda: running.progress().lag == 0, timeout=120)
    times = Counter(each.body for each in receive(artemis, unique))
    assert len(times) == count + 1
    if detects:
        assert {*times.values()} == {1}
    else:
        assert sum(times.values()) > count + 1
