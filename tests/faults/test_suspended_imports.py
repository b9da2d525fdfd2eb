"""Two processes of one import, for every system: the older one was suspended, and imports nothing."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.import_process import FENCED, PATIENCE, printed, started, suspended, written
from tests.services import postgres as postgres_server
from tests.services.artemis import Artemis
from tests.services.jms_client import send, texts
from tests.services.json_api import JsonApi, Seen
from tests.services.object_store import S3Server
from tests.services.postgres import Postgres
from tests.services.rabbitmq import RabbitMq

import penstock
from penstock import Admin, Connection, Record
from penstock.testing import eventually, read_all

MORE = 500

pytestmark = [pytest.mark.slow, pytest.mark.by_turns, pytest.mark.timeout(1800)]


class Feed(ABC):
    """A system with numbers, 500 more each time."""

    kind: str
    options: dict[str, Any]
    # Whether a record may come again, because the system delivers what is not acknowledged again.
    repeats = False

    def __init__(self) -> None:
        self.count = 0

    def more(self) -> None:
        self.add(range(self.count, self.count + MORE))
        self.count += MORE

    @abstractmethod
    def add(self, numbers: range) -> None:
        """Let the system have these numbers, too."""

    def number(self, record: Record) -> int:
        return int(record.value or b"")


class Lines(Feed):
    kind = "files"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / "numbers.log"
        self.options = {"folder": str(folder), "pattern": "*.log", "max_records": 100}

    def add(self, numbers: range) -> None:
        with self._file.open("a") as out:
            out.writelines(f"{n}\n" for n in numbers)


class Objects(Feed):
    kind = "files"

    def __init__(self, server: S3Server, bucket: str) -> None:
        super().__init__()
        self._client, self._bucket = server.client(), bucket
        self._client.mkdir(bucket)
        self.options = {"folder": f"s3://{bucket}", "storage_options": server.options}

    def add(self, numbers: range) -> None:
        lines = b"".join(b"%d\n" % n for n in numbers)
        self._client.pipe_file(f"{self._bucket}/{numbers.start}.log", lines)


class Table(Feed):
    kind = "database"

    def __init__(self, server: Postgres, table: str) -> None:
        super().__init__()
        self._server, self._table = server, table
        password, table = postgres_server.PASSWORD, self._table
        self._run(f"CREATE TABLE {table} (id bigint PRIMARY KEY)")
        way = {"mode": "incrementing", "incrementing_column": "id"}
        self.options = {"url": server.url, "password": password, "tables": table, **way}

    def add(self, numbers: range) -> None:
        series = f"generate_series({numbers.start}, {numbers[-1]})"
        self._run(f"INSERT INTO {self._table} SELECT n FROM {series} n")

    def number(self, record: Record) -> int:
        return int(json.loads(record.value or b"")["id"])

    def _run(self, statement: str) -> None:
        with self._server.connect() as session:
            session.execute(statement)


class Pages(Feed):
    kind = "http"

    def __init__(self, api: JsonApi) -> None:
        super().__init__()
        self._end = 0
        api.respond = self._page
        paging = {"cursor": {"pointer": "/cursor", "parameter": "after"}}
        self.options = {"url": api.url, "records": "/numbers", "paging": paging, "max_records": 100}

    def add(self, numbers: range) -> None:
        self._end = numbers.stop

    def _page(self, seen: Seen) -> dict[str, Any]:
        start = seen.number("after")
        end = min(start + 40, self._end)
        return {"numbers": [*range(start, end)], "cursor": end}


class Queue(Feed):
    kind = "rabbitmq"
    repeats = True

    def __init__(self, server: RabbitMq, queue: str) -> None:
        super().__init__()
        self._server, self._queue = server, queue
        server.declare(queue)
        self.options = {**server.options, "queues": [queue], "max_records": 100}

    def add(self, numbers: range) -> None:
        self._server.publish(self._queue, [b"%d" % n for n in numbers])


class JmsQueue(Feed):
    kind = "jms"
    repeats = True

    def __init__(self, server: Artemis, queue: str) -> None:
        super().__init__()
        self._server, self._queue = server, queue
        self.options = {**server.options, "queues": [queue], "max_records": 100}

    def add(self, numbers: range) -> None:
        send(self._server, self._queue, texts(len(numbers), numbers.start))


@contextmanager
def lines(_: pytest.FixtureRequest, __: str, folder: Path) -> Iterator[Feed]:
    inside = folder / "in"
    inside.mkdir()
    yield Lines(inside)


@contextmanager
def objects(request: pytest.FixtureRequest, name: str, _: Path) -> Iterator[Feed]:
    yield Objects(request.getfixturevalue("s3"), name.lower().replace("_", "-"))


@contextmanager
def table(request: pytest.FixtureRequest, name: str, _: Path) -> Iterator[Feed]:
    yield Table(request.getfixturevalue("postgres"), name.replace("-", "_"))


@contextmanager
def pages(_: pytest.FixtureRequest, __: str, ___: Path) -> Iterator[Feed]:
    with JsonApi() as api:
        yield Pages(api)


@contextmanager
def queue(request: pytest.FixtureRequest, name: str, _: Path) -> Iterator[Feed]:
    yield Queue(request.getfixturevalue("rabbitmq"), name)


@contextmanager
def jms(request: pytest.FixtureRequest, name: str, _: Path) -> Iterator[Feed]:
    yield JmsQueue(request.getfixturevalue("artemis"), name)


FEEDS = (lines, objects, table, pages, queue, jms)


@pytest.mark.parametrize("feed_of", FEEDS, ids=lambda each: each.__name__)
def test_a_process_that_was_suspended_and_wakes_up_imports_nothing(
    connection: Connection,
    unique: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    feed_of: Callable[..., Any],
) -> None:
    with feed_of(request, unique, tmp_path) as feed:
        source = {feed.kind: {**feed.options, "poll": "200ms"}}
        definition = written(tmp_path / "import.yaml", connection, unique, source)

        def found() -> Counter[int]:
            return Counter(map(feed.number, read_all(connection, unique)))

        def all_there() -> None:
            eventually(lambda: found().keys() >= {*range(feed.count)}, timeout=PATIENCE, every=0.5)

        feed.more()
        first = started(definition)
        try:
            eventually(lambda: _exists(connection, unique), timeout=PATIENCE)
            all_there()
            feed.more()  # it is suspended in the midst of its work, or before it
            with (
                suspended(first) as wake,
                penstock.start(penstock.read_pipeline(definition)) as second,
            ):
                all_there()
                wake()
                assert first.wait(PATIENCE) == 1
                feed.more()
                all_there()
                assert second.is_active
        finally:
            first.kill()
    assert FENCED in printed(definition)
    times = found()
    assert times.keys() == {*range(feed.count)}
    twice = sum(times.values()) - feed.count
    assert feed.repeats or not twice
    print(f"{feed_of.__name__}: {feed.count} records, none lost, {twice} twice")


def test_a_machine_is_measured_by_the_process_that_was_started_last(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    source = {"host_metrics": {"interval": "200ms", "kinds": ["load"], "host": "web-1"}}
    definition = written(tmp_path / "import.yaml", connection, unique, source)

    def times() -> list[Any]:
        return [json.loads(each.value or b"")["time"] for each in read_all(connection, unique)]

    def more() -> None:
        before = len(times())
        eventually(lambda: len(times()) > before + 3, timeout=PATIENCE, every=0.2)

    first = started(definition)
    try:
        eventually(lambda: _exists(connection, unique), timeout=PATIENCE)
        more()
        with (
            suspended(first) as wake,
            penstock.start(penstock.read_pipeline(definition)) as second,
        ):
            more()
            wake()
            assert first.wait(PATIENCE) == 1
            more()
            assert second.is_active
    finally:
        first.kill()
    assert FENCED in printed(definition)
    found = times()
    assert sorted({*found}) == found


def _exists(connection: Connection, topic: str) -> bool:
    with Admin(connection) as admin:
        return topic in {each.name for each in admin.topics()}
