"""The sink `files` with several writers on one table: replays, a second instance, zombies, joinings."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.sinks.file_table import Table

from penstock.errors import FencedError, TransientError
from penstock.pipeline import CLAIMED, LastWrite, Mark
from penstock.pipeline.storage import Folder
from penstock.sinks.files.file_writing import Files
from penstock.sinks.files.files_writer import FilesWriter

SCHEMA = "id int, half int"
RANGES = {("t", 0): (0, 9)}


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "table"


def after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, then: Callable[[], None]) -> None:
    """Let something happen once, at the moment at which a method of the sink has done its work."""
    original = getattr(owner, name)

    def changed(*given: Any) -> Any:
        result = original(*given)
        monkeypatch.setattr(owner, name, original)
        then()
        return result

    monkeypatch.setattr(owner, name, changed)


def others_write(spark: Any, place: Path) -> None:
    """What a replay, a drop and the dead letters do, each as a process of its own."""
    for number, pipeline in enumerate(["p~replay", "p.dead-letters", "p.dead-letters~notes"]):
        other = Table(spark, place, partition_by="half")
        other.start(SCHEMA)  # a replay prepares the sink under the name of the pipeline
        other.start(SCHEMA, pipeline)
        other.write(0, [(100 + number, 0)], SCHEMA, pipeline=pipeline)


def test_a_replay_a_drop_and_dead_letters_beside_a_running_batch_lose_and_double_nothing(
    spark: Any,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(spark, place, partition_by="half").start(SCHEMA)
    after(monkeypatch, Files, "write", lambda: others_write(spark, place))

    table.write(1, [(1, 0), (2, 1)], SCHEMA, epoch=5)

    assert table.column("id") == [1, 2, 100, 101, 102]


def test_files_that_another_process_removes_fail_the_batch_and_the_next_run_writes_them(
    spark: Any,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(spark, place).start(SCHEMA)
    rows = spark.range(10).selectExpr("cast(id as int) id", "0 half").repartition(3)

    def remove_one() -> None:
        next((place / "_penstock").glob("p~*/part-*")).unlink()

    with monkeypatch.context() as broken:
        after(broken, Files, "_save", remove_one)
        with pytest.raises(TransientError, match=r"Spark wrote 3 files to .* and 2 are listed"):
            table.write(0, rows)
    assert table.files() == []
    assert table.writer().last_write() is None

    table.write(0, rows)
    assert table.column("id") == list(range(10))
    assert table.hidden() == ["table-1.json"]


def test_a_write_is_known_to_a_process_that_has_nothing_but_the_table(
    spark: Any,
    place: Path,
) -> None:
    table = Table(spark, place)
    assert table.writer().last_write() is None
    table.start(SCHEMA)
    assert table.writer().claim(5) is None
    table.write(3, [(1, 0)], SCHEMA, epoch=5, ranges=RANGES)
    table.write(4, [], SCHEMA, epoch=5, ranges={("t", 0): (9, 12)})

    other = Table(spark, place)
    last = LastWrite(Mark(5, 4, 0), {("t", 0): (9, 12)})
    assert other.writer().last_write() == last
    assert other.start(SCHEMA).writer().claim(6) == last
    with pytest.raises(FencedError, match="has epoch 6, this process has 5"):
        table.write(5, [(2, 0)], SCHEMA, epoch=5)
    other.write(0, [(2, 0)], SCHEMA, epoch=6)
    assert table.column("id") == [1, 2]


@pytest.mark.parametrize("moment", ["written aside", "in the journal"])
def test_a_zombie_that_wakes_up_in_a_write_loses_and_doubles_nothing(
    spark: Any,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    zombie = Table(spark, place).start(SCHEMA)
    zombie.writer().claim(5)
    known: list[LastWrite | None] = []

    def take_over() -> None:
        other = Table(spark, place)
        other.start(SCHEMA)
        known.append(other.writer().claim(6))
        if known[0] and known[0].mark.batch == CLAIMED:  # it reads the same records again
            other.write(0, [(1, 0), (2, 0)], SCHEMA, epoch=6, ranges=RANGES)
        other.write(1, [(3, 0)], SCHEMA, epoch=6)

    suspended = (FilesWriter, "_written_aside") if moment == "written aside" else (Folder, "create")
    after(monkeypatch, *suspended, take_over)
    with pytest.raises(FencedError):
        zombie.write(0, [(1, 0), (2, 0)], SCHEMA, epoch=5, ranges=RANGES)

    nothing, written = LastWrite(Mark(5, CLAIMED, 0)), LastWrite(Mark(5, 0, 0), RANGES)
    assert known == [nothing if moment == "written aside" else written]
    assert zombie.column("id") == [1, 2, 3]
    assert zombie.hidden() == ["table-1.json"]


def small_files(table: Table, count: int = 4) -> Any:
    for number in range(count):
        batch = table.write(number, [(number, 0)], SCHEMA, epoch=5)
    return batch


def test_a_zombie_that_wakes_up_in_a_joining_doubles_nothing(
    spark: Any,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(spark, place, compact={"files": 2}).start(SCHEMA)
    batch = small_files(table)

    def take_over() -> None:
        other = Table(spark, place, compact={"files": 2}).start(SCHEMA)
        other.writer().claim(6)
        other.maintain(other.write(0, [(4, 0)], SCHEMA, epoch=6))

    after(monkeypatch, Files, "join", take_over)
    with pytest.raises(FencedError):
        table.maintain(batch)

    assert table.column("id") == [0, 1, 2, 3, 4]
    assert table.names() == ["p~6~0~0~", "p~joined~"]


def _empty_the_result(place: Path) -> None:
    for file in (place / "_penstock").glob("p~joined*/part-*"):
        file.unlink()


def _remove_a_source(place: Path) -> None:
    next(place.glob("p~5~1~*")).unlink()


@pytest.mark.by_turns
@pytest.mark.parametrize("format_", ["parquet", "json", "csv"])
@pytest.mark.parametrize("what", [_empty_the_result, _remove_a_source])
def test_a_joining_never_removes_files_without_a_replacement_that_was_read(
    spark: Any,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    format_: str,
    what: Callable[[Path], None],
) -> None:
    table = Table(spark, place, format=format_, compact={"files": 2, "every": 0}).start(SCHEMA)
    batch = small_files(table)
    with monkeypatch.context() as broken:
        name = "_save" if what is _empty_the_result else "join"
        after(broken, Files, name, lambda: what(place))
        table.maintain(batch)

    left = [0, 1, 2, 3] if what is _empty_the_result else [0, 2, 3]
    assert table.column("id") == left
    table.maintain(batch)
    assert table.column("id") == left
    assert "p~joined~" in table.names()


def test_two_instances_that_join_the_same_files_double_nothing(
    spark: Any,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table(spark, place, compact={"files": 2}).start(SCHEMA)
    batch = small_files(table)
    other = Table(spark, place, compact={"files": 2}).start(SCHEMA)
    after(monkeypatch, Files, "join", lambda: other.maintain(batch))
    table.maintain(batch)

    assert table.column("id") == [0, 1, 2, 3]
    assert table.names() == ["p~5~3~0~", "p~joined~"]


def test_a_table_of_an_older_version_goes_on_where_it_was_killed(
    spark: Any,
    place: Path,
) -> None:
    table = Table(spark, place, partition_by="half").start(SCHEMA)
    table.write(0, [(1, 0), (2, 1)], SCHEMA, epoch=5)
    table.write(1, [(3, 0), (4, 1)], SCHEMA, epoch=5)
    shutil.rmtree(place / "_penstock" / "log")
    next((place / "half=1").glob("p~5~1~*")).unlink()  # killed in the middle of its renaming
    left = place / "_penstock" / "p~5~1~0" / "half=1" / "part-0"
    left.parent.mkdir(parents=True)
    left.touch()

    again = Table(spark, place, partition_by="half").start(SCHEMA)
    assert again.writer().last_write() == LastWrite(Mark(5, CLAIMED, 0))
    with pytest.raises(FencedError):
        Table(spark, place, partition_by="half").writer().claim(5)
    again.write(1, [(3, 0), (4, 1)], SCHEMA, epoch=5)

    assert again.column("id") == [1, 2, 3, 4]
    assert again.hidden() == ["table-1.json"]
    assert again.writer().claim(6) == LastWrite(Mark(5, 1, 0))
