"""Sinks `opensearch` and `http` under kill -9: nothing is lost; documents are there once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.faults.kills import kills
from tests.faults.suite.rounds import ROOT
from tests.services.json_api import Answer, Seen
from tests.services.opensearch import OpenSearch
from tests.services.orders_api import OrdersApi

import penstock
from penstock import Connection, Pipeline
from penstock.pipeline import Opening, Writer
from penstock.sinks.http import HttpSink
from penstock.sinks.http.http_outlet import HttpOutlet, HttpTarget
from penstock.sinks.http.http_writer import HttpWriter
from penstock.sinks.messages import Refusal
from penstock.sinks.messages.outlet import Opener
from penstock.sinks.opensearch import OpensearchSink
from penstock.sinks.opensearch.bulk_outlet import BulkOptions, BulkOutlet
from penstock.sinks.opensearch.opensearch_writer import OpensearchWriter
from penstock.testing import eventually, fill, read_all

KILLS = kills(6)
MOMENTS = ("opened", "sent", "written")
BAD = 97
# For what takes seconds on a machine without other work.
PATIENCE = 400.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.by_turns("kills"),
    pytest.mark.timeout(1200 + 120 * KILLS),
]


def die(folder: Path, moment: str) -> None:
    """Kill the process of the task, and nothing else, where a file says so."""
    try:
        (folder / f"kill-{moment}").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class MortalBulkOutlet(BulkOutlet):
    def __init__(self, options: BulkOptions, folder: Path) -> None:
        super().__init__(options)
        self._folder = folder
        bulk = self._nodes.bulk

        def mortal(path: str, body: memoryview) -> Any:
            reply = bulk(path, body)
            die(folder, "sent")
            return reply

        self._nodes.bulk = mortal  # type: ignore[method-assign]
        die(folder, "opened")

    def send(self, rows: pa.RecordBatch) -> Iterator[Refusal]:
        yield from super().send(rows)
        die(self._folder, "written")


class MortalSearchSink(OpensearchSink):
    name = "mortal-search"
    folder: Path

    def open(self, opening: Opening) -> Writer:
        return MortalSearchWriter(self, opening)


class MortalSearchWriter(OpensearchWriter):
    def opener(self) -> Opener:
        options = super().opener().__self__  # type: ignore[attr-defined]
        return partial(MortalBulkOutlet, options, self.sink.folder)  # type: ignore[attr-defined]


class MortalHttpOutlet(HttpOutlet):
    def __init__(self, target: HttpTarget, folder: Path) -> None:
        super().__init__(target)
        self._folder = folder
        die(folder, "opened")

    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:  # type: ignore[override]
        yield from super().send(rows)
        die(self._folder, "written")

    def _replied(self, ask: Any) -> Any:
        reply = super()._replied(ask)
        die(self._folder, "sent")
        return reply


class MortalHttpSink(HttpSink):
    name = "mortal-http"
    folder: Path

    def open(self, opening: Opening) -> Writer:
        return MortalHttpWriter(self, opening)


class MortalHttpWriter(HttpWriter):
    def opener(self) -> Opener:
        target = super().opener().__self__  # type: ignore[attr-defined]
        return partial(MortalHttpOutlet, target, self.sink.folder)  # type: ignore[attr-defined]


def kill_tasks(connection: Connection, name: str, sink: Any, count: Callable[[], int]) -> int:
    """Kill tasks at every moment while records come; return how many records there were."""
    dice = random.Random(name)
    definition = Pipeline(
        name=name,
        connection=connection,
        source={"kafka": {"topics": name, "max_records_per_batch": 500}},
        decode={"json": {"schema": "n bigint"}},
        sink=sink,
        restart={"wait": "50ms", "longest": "200ms", "limit": 100},
    )
    records = 0

    def more(few: int) -> None:
        nonlocal records
        fill(connection, name, [{"n": n} for n in range(records, records + few)], partitions=2)
        records += few

    more(200)
    with penstock.start(definition) as running:
        for number in range(KILLS):
            token = sink.folder / f"kill-{MOMENTS[number % len(MOMENTS)]}"
            token.touch()
            more(dice.randrange(50, 400))
            eventually(lambda token=token: not token.exists(), timeout=PATIENCE)
        # One request for each record: how long all of them take is up to the machine, not to the sink.
        while (before := count()) < records:
            eventually(lambda before=before: count() > before, timeout=PATIENCE, every=0.5)
        eventually(lambda: running.progress().total_lag == 0, timeout=PATIENCE)
        assert running.is_active
    return records


def letters(connection: Connection, name: str) -> Counter[int]:
    return Counter(
        json.loads(each.value)["n"] for each in read_all(connection, f"{name}.dead-letters")
    )


def test_every_document_is_there_once_after_kills_of_tasks(
    connection: Connection, opensearch: OpenSearch, unique: str, tmp_path: Path
) -> None:
    sink = MortalSearchSink(url=(opensearch.url,), index=unique, folder=tmp_path, batch_bytes=5_000)
    records = kill_tasks(connection, unique, sink, lambda: opensearch.count(unique))
    found = opensearch.documents(unique).values()
    assert sorted(each["n"] for each in found) == [*range(records)]
    print(f"{records} records, {KILLS} kills of tasks, none lost, no document twice")


def test_every_row_is_sent_at_least_once_and_repeats_have_the_same_key(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    def respond(seen: Seen) -> Answer:
        return Answer(b"bad", 400) if json.loads(seen.body)["n"] % BAD == 0 else Answer(b"", 200)

    with OrdersApi(respond) as api:
        sink = MortalHttpSink(url=api.url, folder=tmp_path)
        count = lambda: len({seen.body for seen in [*api.requests]})  # noqa: E731
        records = kill_tasks(connection, unique, sink, count)
    sent = Counter(json.loads(seen.body)["n"] for seen in api.requests)
    keys: dict[bytes, set[str]] = {}
    for seen in api.requests:
        keys.setdefault(seen.body, set()).add(seen.headers["Idempotency-Key"])
    assert sent.keys() == {*range(records)}
    assert {len(each) for each in keys.values()} == {1}
    assert len({*map(tuple, keys.values())}) == records
    repeated = sum(sent.values()) - records
    print(f"{records} records, {KILLS} kills of tasks, {repeated} requests repeated")
    assert letters(connection, unique).keys() == {n for n in range(records) if n % BAD == 0}


# In a task: before a request and after it. In the driver: after all tasks, before the commit.
POINTS = (
    "penstock.sinks.opensearch.search_nodes:SearchNodes.bulk|before|2",
    "penstock.sinks.opensearch.search_nodes:SearchNodes.bulk|after|3",
    "penstock.sinks.messages.message_writer:MessageWriter.write|after|2",
)


def test_every_document_is_there_once_after_kills_of_the_whole_process(
    connection: Connection, opensearch: OpenSearch, unique: str, tmp_path: Path
) -> None:
    definition = tmp_path / "orders.yaml"
    definition.write_text(
        f"name: {unique}\n"
        f"connection: {{brokers: '{connection.brokers}'}}\n"
        f"source: {{kafka: {{topics: {unique}, max_records_per_batch: 300}}}}\n"
        "decode: {json: {schema: n bigint}}\n"
        f"state: '{tmp_path / 'state'}'\n"
        f"sink: {{opensearch: {{url: '{opensearch.url}', index: {unique}, operation: create}}}}\n"
    )
    for number, point in enumerate(POINTS):
        values = range(number * 1000, number * 1000 + 1000)
        fill(connection, unique, [{"n": n} for n in values], partitions=2)
        assert _run(definition, point) == -signal.SIGKILL, point
    with penstock.start(penstock.read_pipeline(definition), once=True) as last:
        assert last.wait(240), last.progress()
    found = opensearch.documents(unique).values()
    assert sorted(each["n"] for each in found) == [*range(3000)]


def _run(definition: Path, point: str) -> int:
    injected = str(ROOT / "tests/faults/suite/injection")
    paths = [injected, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(definition), "--once"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "FAULT_POINT": point},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(300)
    finally:
        process.kill()


_PROGRAM = """
import os, sys
os.environ["FAULT_DRIVER"] = str(os.getpid())
from penstock.cli.main import app
sys.exit(app(["run", *sys.argv[1:]], standalone_mode=False) or 0)
"""
