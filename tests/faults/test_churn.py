"""Topics come, grow, go and come back, and the pipeline is stopped and killed, round after round."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow.dataset as ds
import pytest
from tests.faults.churn_driver import definition

from penstock import Admin, Connection, start
from penstock.testing import eventually, fill

ROUNDS = 30
KILLED_IN = (8, 20)
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@dataclass
class Topic:
    """One life of a topic, and every number that was sent to it."""

    name: str
    partitions: int
    sent: list[int] = field(default_factory=list)


class Churn:
    """The topics, and what a round may do to them."""

    def __init__(self, connection: Connection, name: str, seed: int) -> None:
        self.connection = connection
        self.name = name
        self.dice = random.Random(seed)
        self.living: list[Topic] = []
        self.dead: list[Topic] = []
        self._next = self._made = 0
        self._admin = Admin(connection)

    def round(self) -> None:
        """Do one thing to the topics, then send something to some of them."""
        acts = [self.grow, self.make, self.delete, self.make_again, lambda: None]
        self.dice.choices(acts, weights=[3, 3, 2, 3, 2])[0]()
        for topic in self.dice.sample(self.living, k=min(3, len(self.living))):
            self.send(topic, self.dice.randint(1, 40))

    def make(self, name: str | None = None) -> None:
        if name is None:
            self._made += 1
            name = f"{self.name}-t{self._made}"
        topic = Topic(name, self.dice.randint(1, 3))
        self._admin.create_topic(topic.name, topic.partitions)
        self.living.append(topic)
        self.send(topic, self.dice.randint(0, 30))

    def grow(self) -> None:
        topic = self.dice.choice(self.living)
        topic.partitions += self.dice.randint(1, 2)
        self._admin.add_partitions(topic.name, topic.partitions)

    def delete(self) -> None:
        if len(self.living) > 2:
            topic = self.living.pop(self.dice.randrange(len(self.living)))
            self._admin.delete_topic(topic.name)
            self.dead.append(topic)

    def make_again(self) -> None:
        topic = self.living.pop(self.dice.randrange(len(self.living)))
        self._admin.delete_topic(topic.name)
        self.dead.append(topic)
        self.make(topic.name)

    def send(self, topic: Topic, count: int) -> None:
        numbers = range(self._next, self._next + count)
        self._next += count
        fill(self.connection, topic.name, [{"n": n} for n in numbers], partitions=topic.partitions)
        topic.sent.extend(numbers)


@contextmanager
def killed(brokers: str, name: str, folder: Path) -> Iterator[None]:
    """Run the pipeline in a process of its own, past its first batch, and kill it with -9 at the end."""
    command = [sys.executable, "-m", "tests.faults.churn_driver", brokers, name, str(folder)]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with (folder / "driver.log").open("ab") as output:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
    try:
        assert process.stdout is not None
        assert any(int(line) > 0 for line in process.stdout), (folder / "driver.log").read_text()
        yield
    finally:
        for each in [*psutil.Process(process.pid).children(recursive=True), process]:
            each.kill()
        process.wait(30)


def rows(folder: Path) -> Counter[int]:
    table = ds.dataset(
        [str(file) for file in folder.glob("*.parquet")], format="parquet"
    ).to_table()
    return Counter(table.column("n").to_pylist())


def test_every_record_of_every_topic_that_is_left_is_in_the_table_once(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    seed = int(os.environ.get("CHURN_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    churn = Churn(connection, unique, seed)
    chosen = definition(connection.brokers, unique, tmp_path)
    churn.make()
    churn.make()
    done = 0
    while done < ROUNDS:
        lot = churn.dice.randint(3, 8)
        if any(done <= kill < done + lot for kill in KILLED_IN):
            churn.round()
            with killed(connection.brokers, unique, tmp_path):
                for _ in range(lot):
                    churn.round()
        else:
            with start(chosen) as running:
                for _ in range(lot):
                    churn.round()
                    before = running.progress().batches
                    if churn.dice.random() < 0.5:
                        eventually(lambda b=before: running.progress().batches > b, timeout=180)
                    running.wait(0)
        done += lot
    with start(chosen, once=True) as running:
        assert running.wait(280), running.progress()

    found = rows(tmp_path / "table")
    expected = {n for topic in churn.living for n in topic.sent}
    gone = {n for topic in churn.dead for n in topic.sent}
    hint = f"CHURN_SEED={seed} runs the same rounds again"
    assert sorted(expected - found.keys()) == [], hint
    assert {n: times for n, times in found.items() if times > 1} == {}, hint
    assert found.keys() <= expected | gone, hint
    with Admin(connection) as admin:
        ends = admin.latest(admin.partitions([topic.name for topic in churn.living]))
        assert admin.committed(unique, ends) == ends, hint
