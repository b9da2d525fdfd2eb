"""Host metrics under kill -9 of their task at every moment: no measurement is there twice or in part."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import pytest
from tests.faults.killed_tasks import started
from tests.faults.kills import kills

from penstock import Connection
from penstock.imports.host_metrics.host_metrics_import import Measurement, Metric
from penstock.imports.part_task import Errand, run
from penstock.imports.positions import Known, create_topic
from penstock.kafka import Admin
from penstock.pipeline.importing import Portion, Position, Reader
from penstock.testing import read_all

KILLS = kills(4)
TOP = 3
MOMENTS = ("opened", "sent", "taken", "settled")

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(600)]


class MortalMetric(Metric):
    """Measures, and ends its process at the moment that its topic names."""

    @contextmanager
    def open(self, _position: Position | None) -> Iterator[Reader]:
        self.die("opened")
        yield MortalMeasurement(self)

    def die(self, moment: str) -> None:
        if self.topic == moment:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalMeasurement(Measurement):
    _metric: MortalMetric

    def take(self, most: int) -> Iterator[Portion]:
        for portion in super().take(most):
            yield portion
            self._metric.die("sent")
        self._metric.die("taken")

    def settle(self) -> None:
        self._metric.die("settled")


def test_a_measurement_is_there_as_a_whole_or_not_at_all(
    connection: Connection, unique: str
) -> None:
    def errand(moment: str) -> Errand:
        part = MortalMetric("process", unique, TOP, topic=moment)
        return Errand(unique, 0, part, connection, unique, f"{unique}.letters", Known(), 1000)

    create_topic(connection)
    with Admin(connection) as admin:
        admin.create_topic(unique, 1)
    moments = [MOMENTS[number % len(MOMENTS)] for number in range(KILLS)]
    for moment in moments:
        process = started(errand(moment))
        process.join(120)
        assert process.exitcode == -signal.SIGKILL, moment
    outcome = run(errand(""), inf)
    assert (outcome.error, outcome.records) == (None, TOP)
    found = [json.loads(each.value) for each in read_all(connection, unique)]
    times = [each["time"] for each in found]
    assert times == sorted(times)
    assert len({*times}) == moments.count("settled") + 1
    assert len({(each["time"], each["pid"]) for each in found}) == len({*times}) * TOP == len(found)
    print(f"{KILLS} kills, {len({*times})} measurements committed, none twice or in part")
