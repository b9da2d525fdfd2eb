"""What every exactly-once sink promises about epochs: the newest one writes, an older one is fenced.

Each target is a sink over a table of its own, and a way to read the ids that readers see. To add a sink,
add its name to TARGETS and a function that makes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.services.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.services.postgres import PASSWORD

from penstock import Connection
from penstock.errors import FencedError, TransientError
from penstock.pipeline import (
    CLAIMED,
    Batch,
    Delivery,
    LastWrite,
    Mark,
    Opening,
    Ranges,
    registry,
)
from penstock.sinks.delta import delta_transaction
from penstock.testing import eventually

SCHEMA = "id bigint"
FIRST: Ranges = {("t", 0): (0, 2), ("t", 1): (5, 5)}
SECOND: Ranges = {("t", 0): (2, 3), ("t", 1): (5, 9)}
UNREACHABLE = Connection(brokers="nowhere:1")
Make = Callable[[Any], tuple[str, dict[str, Any], Callable[[], list[int]]]]


@dataclass
class Target:
    """A sink, as one process has it; `again()` is the same pipeline in another process."""

    spark: Any
    kind: str
    options: dict[str, Any]
    read: Callable[[], list[int]]
    delivery: Delivery = Delivery.EXACTLY_ONCE

    @property
    def waits(self) -> bool:
        """Whether a claim waits for a write that has begun; elsewhere the write is refused."""
        return self.kind == "database"

    @property
    def sink(self) -> Any:
        return registry.component("sink", self.kind).model_validate(self.options)

    @property
    def writer(self) -> Any:
        """Open the sink again each time: marks must be in the target, not in the writer."""
        return self.sink.open(Opening(self.spark, "p", UNREACHABLE, self.delivery))

    def prepared(self) -> Target:
        self.writer.prepare(self.spark.createDataFrame([], SCHEMA).schema)
        return self

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        return self.writer.claim(epoch, continues)  # type: ignore[no-any-return]

    def last_write(self) -> LastWrite | None:
        return self.writer.last_write()  # type: ignore[no-any-return]

    def write(self, mark: tuple[int, int, int], *ids: int, ranges: Ranges | None = None) -> None:
        self.put(self.spark.createDataFrame([(n,) for n in ids], SCHEMA).coalesce(1), mark, ranges)

    def put(self, rows: Any, mark: tuple[int, int, int], ranges: Ranges | None = None) -> None:
        epoch, number, part = mark
        batch = Batch(rows, "p", epoch, number, UNREACHABLE, ranges or {}, part=part)
        self.writer.write(replace(batch, delivery=self.delivery))

    def ids(self) -> list[int]:
        return sorted(self.read())

    def again(self) -> Target:
        """Return the same target as another process sees it: a session state of its own."""
        return Target(self.spark.newSession(), self.kind, self.options, self.read, self.delivery)


def database(server: str) -> Make:
    def make(request: Any) -> Any:
        table = request.getfixturevalue("unique").replace("-", "_")
        if server == "sqlite":
            import sqlite3

            file = request.getfixturevalue("tmp_path") / "data.db"
            options = {"url": f"sqlite:///{file}?timeout=60", "table": table}
            connect: Callable[[], Any] = lambda: sqlite3.connect(file)  # noqa: E731
        else:
            running = request.getfixturevalue(server)
            secret = PASSWORD if server == "postgres" else MARIADB_PASSWORD
            options = {"url": running.url, "password": secret, "table": table}
            connect = running.connect

        def read() -> list[int]:
            session = connect()
            try:
                cursor = session.cursor()
                cursor.execute(f"SELECT id FROM {table}")
                return [row[0] for row in cursor.fetchall()]
            finally:
                session.close()

        return "database", options, read

    return make


def lake(kind: str, **more: Any) -> Make:
    def make(request: Any) -> Any:
        folder, spark = request.getfixturevalue("tmp_path"), request.getfixturevalue("spark")
        place = {
            "delta": {"path": f"{folder}/t"},
            "iceberg": {"warehouse": str(folder), "table": "db.t"},
        }[kind]
        path = f"{folder}/t" if kind == "delta" else f"{folder}/db/t"
        read = lambda: [row.id for row in spark.read.format(kind).load(path).collect()]  # noqa: E731
        return kind, place | more, read

    return make


def public_delta(request: Any) -> Any:
    """Delta of a version that was not tried: only its public writer is used."""
    request.getfixturevalue("monkeypatch").setattr(delta_transaction, "usable", lambda _: False)
    return lake("delta")(request)


def files(request: Any) -> Any:
    place = request.getfixturevalue("tmp_path") / "t"

    def read() -> list[int]:
        names = sorted(place.glob("*.parquet"))
        return [n for name in names for n in pq.read_table(name).column("id").to_pylist()]

    return "files", {"path": str(place)}, read


UPSERT = {"mode": "upsert", "key": "id"}
TARGETS: dict[str, Make] = {
    "files": files,
    "postgres": database("postgres"),
    "mariadb": database("mariadb"),
    "sqlite": database("sqlite"),
    "delta": lake("delta"),
    "iceberg": lake("iceberg"),
}
# Other ways to write the same tables: their marks are tried at once, for each write takes seconds.
OTHER_WAYS: dict[str, Make] = {
    "delta, upsert": lake("delta", **UPSERT),
    "delta, public": public_delta,
    "iceberg, upsert": lake("iceberg", **UPSERT),
}


@pytest.fixture(params=TARGETS)
def target(request: Any, spark: Any) -> Target:
    return Target(spark, *(TARGETS | OTHER_WAYS)[request.param](request))


@pytest.mark.by_turns
@pytest.mark.parametrize("target", OTHER_WAYS, indirect=True)
def test_other_ways_to_write_have_the_same_marks(target: Target) -> None:
    assert target.prepared().claim(7) is None
    for _ in range(2):
        target.write((7, 0, 0), 1, ranges=FIRST)
    target.write((7, 1, 1), 2, ranges=SECOND)
    target.write((7, 0, 0), 9, ranges=FIRST)
    assert target.again().claim(8) == LastWrite(Mark(7, 1, 1), SECOND)
    assert target.last_write() == LastWrite(Mark(8, CLAIMED, 0), SECOND)
    with pytest.raises(FencedError, match="another process runs the pipeline 'p'"):
        target.write((7, 2, 0), 3, ranges=SECOND)
    with pytest.raises(FencedError, match="another process runs the pipeline 'p'"):
        target.claim(8)
    target.write((8, 0, 0), 4)
    assert target.ids() == [1, 2, 4]


def test_a_target_that_does_not_exist_has_no_write(target: Target) -> None:
    assert target.last_write() is None
    assert target.prepared().last_write() is None


@pytest.mark.by_turns
def test_a_claim_returns_the_last_write_and_keeps_its_ranges(target: Target) -> None:
    assert target.prepared().claim(7) is None
    assert target.last_write() == LastWrite(Mark(7, CLAIMED, 0))
    target.write((7, 0, 0), 1, 2, ranges=FIRST)
    assert target.last_write() == LastWrite(Mark(7, 0, 0), FIRST)
    target.write((7, 1, 1), 3, ranges=SECOND)

    assert target.again().claim(9) == LastWrite(Mark(7, 1, 1), SECOND)
    assert target.last_write() == LastWrite(Mark(9, CLAIMED, 0), SECOND)
    assert target.last_write().mark_of(("t", 0)) == Mark(7, 1, 1)
    assert target.claim(10) == LastWrite(Mark(9, CLAIMED, 0), SECOND)
    assert target.ids() == [1, 2, 3]


def test_an_epoch_that_the_target_knows_cannot_be_claimed(target: Target) -> None:
    target.prepared().claim(7)
    target.write((8, 0, 0), 1, ranges=FIRST)
    for known in (7, 8):
        with pytest.raises(FencedError, match="another process runs the pipeline 'p'"):
            target.claim(known)
    assert target.last_write() == LastWrite(Mark(8, 0, 0), FIRST)


@pytest.mark.by_turns
def test_a_write_of_an_older_epoch_is_refused_and_writes_nothing(target: Target) -> None:
    target.prepared().claim(7)
    target.write((7, 0, 0), 1, ranges=FIRST)
    target.again().claim(8)
    for mark in ((7, 0, 0), (7, 1, 0), (7, 999, 0)):
        with pytest.raises(FencedError, match="another process runs the pipeline 'p'"):
            target.write(mark, 2, ranges=SECOND)
    target.write((8, 0, 0), 3)

    assert target.ids() == [1, 3]
    assert target.last_write() == LastWrite(Mark(8, 0, 0))


@pytest.mark.by_turns
def test_only_an_equal_epoch_is_a_repetition(target: Target) -> None:
    target.prepared().claim(7)
    for _ in range(2):
        target.write((7, 4, 0), 1, ranges=FIRST)
    target.write((7, 3, 0), 2)
    target.write((7, 4, 1), 3, ranges=SECOND)
    target.again().write((7, 4, 1), 3, ranges=SECOND)
    target.write((8, 0, 0), 4)

    assert target.ids() == [1, 3, 4]


def test_at_most_once_has_the_same_marks(target: Target) -> None:
    target.delivery = Delivery.AT_MOST_ONCE
    target.prepared().claim(7)
    for _ in range(2):
        target.write((7, 0, 0), 1, ranges=FIRST)
    assert target.claim(8) == LastWrite(Mark(7, 0, 0), FIRST)
    assert target.ids() == [1]


@pytest.mark.by_turns
@pytest.mark.parametrize("target", TARGETS | OTHER_WAYS, indirect=True)
def test_a_claim_that_continues_an_epoch_keeps_its_last_write(target: Target) -> None:
    target.prepared().claim(7)
    target.write((7, 0, 0), 1, ranges=FIRST)
    target.write((7, 1, 1), 2, ranges=SECOND)

    assert target.again().claim(9, {7}) == LastWrite(Mark(7, 1, 1), SECOND)
    assert target.last_write() == LastWrite(Mark(9, 1, 1), SECOND)
    target.write((9, 1, 1), 3, ranges=SECOND)  # the same batch, by the process that goes on
    with pytest.raises(FencedError, match="another process runs the pipeline 'p'"):
        target.write((7, 2, 0), 4, ranges=SECOND)
    # One that was taken over from before it wrote anything.
    target.again().claim(11, {7, 9})
    target.again().claim(12, {7, 9, 11})
    assert target.last_write() == LastWrite(Mark(12, 1, 1), SECOND)
    target.write((12, 1, 2), 5, ranges=SECOND)
    assert target.ids() == [1, 2, 5]
    # An epoch that continues none of them does not have their writes.
    target.claim(13, {3})
    assert target.last_write().mark == Mark(13, CLAIMED, 0)


@pytest.mark.by_turns
@pytest.mark.parametrize("target", TARGETS | OTHER_WAYS, indirect=True)
@pytest.mark.parametrize("zombie_is", ["claimed", "unclaimed"])
def test_a_write_that_began_before_a_claim_is_not_committed_after_it(
    zombie_is: str, target: Target, tmp_path: Path
) -> None:
    target.prepared()
    if zombie_is == "claimed":
        target.claim(7)
    zombie = target.again()
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    done: dict[str, Any] = {}

    def write_slowly() -> None:
        one = zombie.spark.createDataFrame([(1,)], SCHEMA).coalesce(1)
        zombie.put(one.mapInPandas(_when(begun, go_on), SCHEMA), (7, 0, 0), FIRST)

    writing = threading.Thread(target=_try, args=[done, "write", write_slowly])
    claiming = threading.Thread(target=_try, args=[done, "claim", target.claim, 8])
    writing.start()
    eventually(begun.exists, timeout=120)
    claiming.start()
    if not target.waits:
        claiming.join(120)
        assert done["claim"] in (None, LastWrite(Mark(7, CLAIMED, 0)))
    go_on.touch()
    writing.join(120)
    claiming.join(120)

    if target.waits:
        assert (done["write"], done["claim"]) == (None, LastWrite(Mark(7, 0, 0), FIRST))
        assert target.ids() == [1]
    else:
        assert isinstance(done["write"], (FencedError, TransientError))
        assert target.ids() == []
    with pytest.raises(FencedError):
        zombie.write((7, 0, 0), 1)
    ranges = FIRST if target.waits else {}
    assert target.last_write() == LastWrite(Mark(8, CLAIMED, 0), ranges)


def _try(done: dict[str, Any], name: str, call: Callable[..., Any], *given: Any) -> None:
    try:
        done[name] = call(*given)
    except (FencedError, TransientError) as error:
        done[name] = error


def _when(begun: Path, go_on: Path) -> Callable[[Any], Any]:
    """Rows that come only when they are let through."""

    def rows(frames: Any) -> Any:
        import time

        begun.touch()
        while not go_on.exists():
            time.sleep(0.02)
        yield from frames

    return rows
