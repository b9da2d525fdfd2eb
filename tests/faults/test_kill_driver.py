"""A pipeline under load is killed with -9 and started again: each record is there exactly once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow.dataset as ds
import pytest

from penstock import Admin, Connection, Producer
from penstock.testing import eventually, fill

KILLS = 10
PARTITIONS = 3

DEFINITION = """\
name: {name}
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: {{topics: "{name}", max_records_per_batch: 5000}}}}
decode: {{json: {{schema: "n bigint not null", metadata: [partition, offset]}}}}
sink: {{files: "{folder}/table"}}
delivery: exactly-once
state: "{folder}/state"
"""


@contextmanager
def load(connection: Connection, topic: str) -> Iterator[list[int]]:
    """Records go into the topic, about a thousand a second, until the block ends."""
    stop, sent = Event(), [0]

    def send() -> None:
        with Producer(connection) as producer:
            while not stop.wait(0.05):
                for _ in range(50):
                    n = sent[0]
                    producer.produce(topic, None, b'{"n": %d}' % n, partition=n % PARTITIONS)
                    sent[0] += 1

    thread = Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join()


def files(folder: Path) -> list[str]:
    """The files of the table; those that are being written are not part of it yet."""
    return [str(file) for file in (folder / "table").glob("*.parquet")]


def in_table(folder: Path) -> dict[tuple[int, int], int]:
    """(partition, offset) -> n of every row."""
    rows = ds.dataset(files(folder), format="parquet").to_table()
    columns = (rows.column(name).to_pylist() for name in ("kafka_partition", "kafka_offset", "n"))
    found = {(partition, offset): n for partition, offset, n in zip(*columns, strict=True)}
    assert len(found) == rows.num_rows, "some records are in the table twice"
    return found


def assert_not_ahead(connection: Connection, name: str, folder: Path) -> None:
    with Admin(connection) as admin:
        committed = admin.committed(name)
    rows = in_table(folder)
    for (_, partition), offset in committed.items():
        missing = [at for at in range(offset) if (partition, at) not in rows]
        assert not missing, (
            f"partition {partition}: committed {offset}, not in the table: {missing[:5]}"
        )


def penstock(*arguments: str) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("penstock")), *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_kills_lose_and_double_nothing_and_the_group_is_never_ahead_of_the_table(
    connection: Connection, unique: str, tmp_path: Any
) -> None:
    dice = random.Random(unique)
    fill(connection, unique, [], partitions=PARTITIONS)
    definition = tmp_path / "pipeline.yaml"
    definition.write_text(
        DEFINITION.format(name=unique, brokers=connection.brokers, folder=tmp_path)
    )

    with load(connection, unique) as sent:
        for _ in range(KILLS):
            before = len(files(tmp_path))
            running = penstock("run", str(definition))
            eventually(lambda before=before: len(files(tmp_path)) > before, timeout=120)
            time.sleep(dice.uniform(0, 1.5))  # the moment of the kill is the point, not a wait
            running.send_signal(signal.SIGKILL)
            running.wait()
            assert_not_ahead(connection, unique, tmp_path)

    last = penstock("run", "--once", str(definition))
    assert last.wait(180) == 0, last.stderr and last.stderr.read().decode()
    assert_not_ahead(connection, unique, tmp_path)
    assert sorted(in_table(tmp_path).values()) == list(range(sent[0]))
    with Admin(connection) as admin:
        committed = admin.committed(unique)
        assert committed == admin.latest(committed)
