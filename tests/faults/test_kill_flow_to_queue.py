"""A flow from Kafka to RabbitMQ under kill -9: nothing is lost, and what comes twice is counted.

The whole of it, with the figures: PENSTOCK_KILLS=20 PENSTOCK_FLOW_MESSAGES=100000, and `-s`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.faults.kills import kills
from tests.faults.suite.rounds import ROOT
from tests.services.rabbitmq import RabbitMq

from penstock import Connection
from penstock.testing import eventually, fill, read_all

KILLS = kills(2)
MESSAGES = int(os.environ.get("PENSTOCK_FLOW_MESSAGES", "4000"))
# Every 97th message is a dead letter.
BAD = 97
# A kill publishes at most the messages of one batch again.
BATCH = max(200, MESSAGES // 100)
FLOW = """\
name: {name}
connection: {{addresses: "{brokers}"}}
max_messages_per_batch: {batch}
trigger: {{kafka: {{topics: {name}.in, consumers: 2, advanced: {{initial_offset: oldest}}}}}}
steps:
  - id: check
    filter: "1 / (payload.n % {bad}) >= 0"
  - id: send
    publish:
      rabbitmq:
        {{url: "{url}", password: "{password}", routing_key: {name}, message_id: "${{payload.n}}"}}
"""

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(3000)]


def test_no_message_is_lost_by_kills_of_the_process_and_of_its_workers(
    connection: Connection,
    rabbitmq: RabbitMq,
    unique: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    dice = random.Random(unique)
    rabbitmq.declare(unique)
    file = tmp_path / "flow.yaml"
    given = {"name": unique, "brokers": connection.brokers, "bad": BAD, "batch": BATCH}
    given |= rabbitmq.options
    file.write_text(FLOW.format(**given))
    numbers = iter(range(MESSAGES))
    send(connection, f"{unique}.in", numbers, MESSAGES // 4)
    for number in range(0, KILLS, 2):
        with running(file, tmp_path) as process:
            half_of_a_batch(connection, rabbitmq, unique, numbers, dice)
            go_on_without_workers(process, connection, rabbitmq, unique, numbers)
            if number + 1 < KILLS:
                half_of_a_batch(connection, rabbitmq, unique, numbers, dice)
                process.kill()
    send(connection, f"{unique}.in", numbers, MESSAGES)
    wanted = {n for n in range(MESSAGES) if n % BAD}
    with running(file, tmp_path):
        eventually(lambda: rabbitmq.depth(unique) >= len(wanted), timeout=600, every=0.5)
        eventually(lambda: is_done(connection, unique), timeout=300, every=0.5)

    ids = [int(properties.message_id) for _, properties, _ in rabbitmq.drain(unique)]
    assert set(ids) == wanted, "nothing is lost, nothing is invented"
    twice = len(ids) - len(wanted)
    record_property("duplicates", f"{twice} of {len(wanted)} after {KILLS} kills")
    assert twice <= KILLS * BATCH, "a kill repeats one batch at most"
    print(f"{KILLS} kills, {len(wanted)} messages, 0 lost, {twice} copies, batches of {BATCH}")
    letters = {
        dict(record.headers)["penstock.offset"] + dict(record.headers)["penstock.partition"]
        for record in read_all(connection, f"{unique}.dead-letters")
        if ("penstock.stage", b"step") in record.headers
    }
    assert len(letters) == MESSAGES - len(wanted), "each bad message is a dead letter"


def half_of_a_batch(
    connection: Connection,
    rabbitmq: RabbitMq,
    name: str,
    numbers: Iterator[int],
    dice: random.Random,
) -> None:
    """Wait until some messages of a batch are published, and others are not."""
    low = rabbitmq.depth(name) + dice.randrange(1, max(2, MESSAGES // (3 * KILLS)))
    send(connection, f"{name}.in", numbers, MESSAGES // (2 * KILLS))
    eventually(lambda: rabbitmq.depth(name) >= low, timeout=240, every=0.01)


def go_on_without_workers(
    process: subprocess.Popen[bytes],
    connection: Connection,
    rabbitmq: RabbitMq,
    name: str,
    numbers: Iterator[int],
) -> None:
    """Kill the workers, and see that others take their place."""
    for worker in workers(process):
        worker.kill()
    depth = rabbitmq.depth(name)
    send(connection, f"{name}.in", numbers, 20)
    eventually(lambda: rabbitmq.depth(name) > depth, timeout=240, every=0.1)


def send(connection: Connection, topic: str, numbers: Iterator[int], count: int) -> None:
    values = [{"n": n} for _, n in zip(range(count), numbers, strict=False)]
    fill(connection, topic, values, partitions=2)


@contextmanager
def running(file: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the flow in a process, which is killed at the end, with all that it has started."""
    command = [sys.executable, "-m", "tests.faults.flow_runner", file, folder / "state"]
    with (folder / "runner.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        tree: list[psutil.Process] = []
        try:
            yield process
            tree = family(process)
        finally:
            for each in [*family(process), *tree]:
                if each.is_running():
                    each.kill()
            process.wait()


def family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the processes in which Spark runs the flow's steps."""
    return [
        each for each in psutil.Process(process.pid).children(recursive=True) if runs_steps(each)
    ]


def runs_steps(process: psutil.Process) -> bool:
    try:
        return any("pyspark" in part for part in process.cmdline())
    except psutil.NoSuchProcess:  # it has ended by now
        return False


def is_done(connection: Connection, group: str) -> bool:
    """Return whether the group is at the end of the topic."""
    from penstock import Admin

    with Admin(connection) as admin:
        ends = admin.latest(admin.partitions([f"{group}.in"]))
        return admin.committed(group) == ends
