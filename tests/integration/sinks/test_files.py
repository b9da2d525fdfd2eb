"""The sink `files`: its formats, what its table may become, the sizes of files, joining them, crashes."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from tests.integration.sinks.file_table import Table

from penstock.errors import ConfigError, RefusedError, TerminalError, TransientError
from penstock.pipeline.storage import Folder

ODD = [
    None, "", " ", " a ", 'q"q', '""', "a,b", "x\ny", "x\r\ny", "\\", '\\"', "#c", "é漢", "\t", "null",
    ",", 'a"\nb",c',
]  # fmt: skip


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_json_has_every_column_in_every_line_and_times_to_the_microsecond(
    spark: Any, place: Path
) -> None:
    at = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    schema = "id bigint, at timestamp, tags array<string>, bytes binary, name string"
    table = Table(spark, place, format="json").start(schema)
    table.write(0, [(2**53 + 1, at, ["a", None], b"\x00\xff", None)], schema)

    (file,) = table.files()

    assert file.name.startswith("p~0~0~0~part-")
    assert file.suffix == ".json"
    assert [json.loads(line) for line in file.read_text().splitlines()] == [
        {
            "id": 2**53 + 1,
            "at": "2024-01-02T03:04:05.678901Z",
            "tags": ["a", None],
            "bytes": "AP8=",
            "name": None,
        }
    ]


def test_a_table_may_lie_behind_a_link(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "table").symlink_to(tmp_path / "disk")
    table = Table(spark, tmp_path / "table").start("n bigint")
    table.write(0, [(1,)], "n bigint")
    table.write(1, [(2,)], "n bigint")

    assert [row.n for row in table.sink.lookup(spark, None).sort("n").collect()] == [1, 2]


def test_csv_has_a_header_and_what_is_nested_as_json(spark: Any, place: Path) -> None:
    at = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    schema = "id bigint, at timestamp, tags array<string>, quote struct<bid:double>, bytes binary"
    table = Table(spark, place, format="csv").start(schema)
    table.write(0, [(1, at, ["a", None], (1.5,), b"\x00\xff")], schema)

    (file,) = table.files()

    with file.open(newline="") as lines:
        assert list(csv.reader(lines)) == [
            ["id", "at", "tags", "quote", "bytes"],
            ["1", "2024-01-02T03:04:05.678901Z", '["a",null]', '{"bid":1.5}', "AP8="],
        ]


@pytest.mark.parametrize("columns", [1, 2])
def test_csv_keeps_every_text_also_when_files_are_joined(
    spark: Any, place: Path, columns: int
) -> None:
    schema = ", ".join(f"c{number} string" for number in range(columns))
    table = Table(spark, place, format="csv", compact={"files": 2}).start(schema)
    table.write(0, [(text,) * columns for text in ODD], schema)
    table.write(1, [("one",) * columns], schema)
    table.maintain(table.write(2, [("two",) * columns], schema))

    assert table.names() == ["p~0~2~0~", "p~joined~"]
    with table.files()[1].open(newline="") as lines:
        _, *found = csv.reader(lines)
    # CSV itself cannot tell null from an empty text; this reader takes both for the latter.
    assert sorted(row[-1] for row in found) == sorted([*(text or "" for text in ODD), "one"])


@pytest.mark.parametrize(
    ("format_", "compression", "suffix"),
    [
        ("parquet", None, ".zstd.parquet"),
        ("parquet", "snappy", ".snappy.parquet"),
        ("json", "gzip", ".json.gz"),
        ("csv", "bzip2", ".csv.bz2"),
    ],
)
def test_compression_goes_with_the_format(
    spark: Any, place: Path, format_: str, compression: str | None, suffix: str
) -> None:
    table = Table(spark, place, format=format_, compression=compression, compact={"files": 2})
    table.start("id int")
    for number in range(3):
        batch = table.write(number, [(number,)], "id int")
    table.maintain(batch)

    assert table.names() == ["p~0~2~0~", "p~joined~"]
    assert all(file.name.endswith(suffix) for file in table.files())
    kind = spark.read.schema("id int").option("header", "true").format(format_)
    assert sorted(row.id for row in kind.load(str(place)).collect()) == [0, 1, 2]


@pytest.mark.parametrize("format_", ["parquet", "json", "csv"])
def test_a_table_takes_a_new_column_and_a_wider_type(spark: Any, place: Path, format_: str) -> None:
    options = {"format": format_, "compact": {"files": 2}}
    Table(spark, place, **options).start("id int, p decimal(5,2)").write(
        0, [(1, None)], "id int, p decimal(5,2)"
    )
    wide = "name string, id bigint, p decimal(12,4)"
    table = Table(spark, place, **options).start(wide)
    table.write(1, [("b", 2**40, None)], wide)
    table = Table(spark, place, **options).start("id int")
    table.write(2, [(3,)], "id int")
    table.maintain(table.write(3, [(4,)], "id int"))

    assert table.names() == ["p~0~3~0~", "p~joined~"]
    read = spark.read.schema("id bigint, p decimal(12,4), name string").option("header", "true")
    found = read.format(format_).load(str(place)).orderBy("id").collect()
    assert [(row.id, row.p, row.name) for row in found] == [
        (1, None, None), (3, None, None), (4, None, None), (2**40, None, "b"),
    ]  # fmt: skip


def test_all_files_written_after_a_change_have_the_table_s_columns(spark: Any, place: Path) -> None:
    Table(spark, place).start("id bigint, name string")
    table = Table(spark, place).start("name string, id int")
    table.write(0, [("a", 1)], "name string, id int")

    assert pq.read_schema(table.files()[0]).to_string(show_schema_metadata=False) == (
        "id: int64\nname: string"
    )


@pytest.mark.parametrize(
    ("options", "schema", "reported"),
    [
        ({}, "id string, day date", "has the column 'id' as int, and the rows bring string"),
        ({}, "id double, day date", "has the column 'id' as int, and the rows bring double"),
        ({"format": "json"}, "id int, day date", "has files of format 'parquet'"),
        ({"partition_by": []}, "id int, day date", "folders by day, and 'partition_by' asks for no f"),
        ({"partition_by": ["dya"]}, "id int, day date", "'dya'; did you mean 'day'?"),
        ({"partition_by": [".day"]}, "id int, `.day` date", "readers pass over folders"),
        ({"partition_by": ["tags"]}, "id int, tags array<int>", "which is array<int>"),
        ({"partition_by": ["id", "day"]}, "id int, day date", "names every column (id, day)"),
        ({}, "id int, day date, lasts interval", "the column 'lasts' is interval"),
    ],
)  # fmt: skip
def test_any_other_change_is_refused_and_leaves_the_table_as_it_was(
    spark: Any, place: Path, options: dict[str, Any], schema: str, reported: str
) -> None:
    partitioned = {"partition_by": "day"}
    Table(spark, place, **partitioned).start("id int, day date")

    with pytest.raises(ConfigError) as caught:
        Table(spark, place, **(partitioned | options)).start(schema)

    assert reported in str(caught.value)
    Table(spark, place, **partitioned).start("id int, day date")


@pytest.mark.parametrize("format_", ["parquet", "json", "csv"])
def test_a_table_whose_form_was_lost_is_known_from_its_files(
    spark: Any, place: Path, format_: str
) -> None:
    options = {"format": format_, "partition_by": "zone"}
    schema = "id int, at timestamp, zone string"
    moment = datetime(2024, 1, 2, tzinfo=timezone.utc)
    Table(spark, place, **options).start(schema).write(0, [(1, moment, "007")], schema)
    shutil.rmtree(place / "_penstock")

    table = Table(spark, place, **options).start(
        "id bigint, at timestamp, name string, zone string"
    )

    kept = json.loads((place / "_penstock" / "table-1.json").read_text())["columns"]
    # A column's place in a CSV file is its meaning: new ones come last. JSON has no such order.
    order = ["at", "id"] if format_ == "json" else ["id", "at"]
    kinds = {"id": "long", "at": "timestamp", "zone": "string", "name": "string"}
    assert [(each["name"], each["type"]) for each in kept["fields"]] == [
        (name, kinds[name]) for name in [*order, "zone", "name"]
    ]
    with pytest.raises(ConfigError, match="has folders by zone"):
        shutil.rmtree(place / "_penstock")
        Table(spark, place, format=format_).start(schema)
    assert len(table.files()) == 1


def test_the_form_is_there_whole_when_writing_a_new_one_is_cut_short(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Table(spark, place).start("id int")
    with monkeypatch.context() as broken, pytest.raises(CrashError):
        broken.setattr(Folder, "remove", _crashing)
        Table(spark, place).start("id int, name string")
    with pytest.raises(ConfigError, match="'id' as int"):
        Table(spark, place).start("id string")


@pytest.mark.by_turns
@pytest.mark.parametrize("format_", ["parquet", "json", "csv"])
def test_no_file_grows_far_beyond_the_size(spark: Any, place: Path, format_: str) -> None:
    table = Table(spark, place, format=format_, file_size="64KB", partition_by="half")
    table.start("id bigint, noise string, half int")

    def batch(rows: int, repeats: int) -> Any:
        noise = [f.sha2(f.concat("id", f.lit(number)), 256) for number in range(repeats)]
        half = (f.col("id") % 2).cast("int").alias("half")
        return spark.range(rows).coalesce(1).select("id", f.concat(*noise).alias("noise"), half)

    def sizes(number: int) -> list[int]:
        return [file.stat().st_size for file in table.files() if f"p~0~{number}~" in file.name]

    written = [(6000, 1), (1000, 6), (9000, 1), (9000, 1)]
    for number, (rows, repeats) in enumerate(written):
        table.write(number, batch(rows, repeats))

    for number in range(4):
        assert len(sizes(number)) >= 4
        assert max(sizes(number)) < 64 * 1024 * 1.25
    # The rows of the second batch were large: what was learned from them does not stay.
    assert len(sizes(3)) < len(sizes(2))
    assert table.column("id") == sorted(n for rows, _ in written for n in range(rows))


def test_a_single_row_may_be_larger_than_a_file(spark: Any, place: Path) -> None:
    table = Table(spark, place, format="json", file_size=1024).start("noise string")
    table.write(0, [("x" * 5000,), ("y" * 5000,)], "noise string")

    assert [len(file.read_text().splitlines()) for file in table.files()] == [1, 1]


def test_a_value_too_long_for_a_folder_is_refused_alone(spark: Any, place: Path) -> None:
    table = Table(spark, place, partition_by="name").start("id int, name string")

    with pytest.raises(RefusedError, match="too long to name a folder"):
        table.write(0, [(1, "short"), (2, "x" * 300)], "id int, name string")
    table.write(0, [(1, "short")], "id int, name string", part=1)

    assert table.column("id") == [1]


def test_a_batch_that_fails_leaves_nothing_in_the_table_and_the_next_start_clears_up(
    spark: Any, place: Path
) -> None:
    table = Table(spark, place, format="json").start("id bigint")
    failing = (
        spark.range(1000)
        .coalesce(1)
        .select(
            f.when(f.col("id") < 900, f.col("id"))
            .otherwise(f.raise_error(f.lit("boom")))
            .alias("id")
        )
    )
    with pytest.raises(PySparkException):
        table.write(0, failing)
    other = place / "_penstock" / "other~0~0~0"
    other.mkdir()

    assert table.files() == []
    assert [name.partition(".")[0] for name in table.hidden()] == [
        "other~0~0~0",
        "p~0~0~0",
        "table-1",
    ]
    table.start("id bigint").write(0, [(1,)], "id bigint")
    assert table.hidden() == ["other~0~0~0", "table-1.json"]
    assert table.column("id") == [1]


def test_a_full_disk_is_a_reason_to_wait_and_no_reason_to_stop_for_joining(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    table = Table(spark, place, compact={"files": 2}).start("id int")
    for number in range(3):
        batch = table.write(number, [(number,)], "id int")
    with monkeypatch.context() as broken:
        broken.setattr("penstock.sinks.files.file_writing.Files._save", full)
        table.maintain(batch)
        with pytest.raises(TransientError, match=f"no space left under {place}: free some"):
            table.write(3, [(3,)], "id int")

    assert table.column("id") == [0, 1, 2]


@pytest.mark.parametrize("name", ["_zone", "zone x"])
def test_odd_names_of_folders_and_columns_lose_no_row(
    spark: Any, tmp_path: Path, name: str
) -> None:
    schema = f"id int, `{name}` string, `a.b` int"
    table = Table(spark, tmp_path / "t[1] {x}*", partition_by=name, compact={"files": 2})
    table.start(schema)
    for number in range(3):
        rows = [(number, zone, 1) for zone in ("a:b/c", "%", "", None, "{x}[y]*")]
        table.write(number, rows, schema, may_repeat=True)
        batch = table.write(number, rows, schema, may_repeat=True)
    table.maintain(batch)

    assert table.names().count("p~joined~") == 4  # null and the empty text share a folder
    assert table.column("id") == [0] * 5 + [1] * 5 + [2] * 5


def test_a_place_may_be_a_uri(spark: Any, place: Path) -> None:
    table = Table(spark, place, path=f"file://{place}", compact={"files": 2}).start("id int")
    for number in range(3):
        batch = table.write(number, [(number,)], "id int")
    table.maintain(batch)

    assert table.column("id") == [0, 1, 2]
    assert table.names() == ["p~0~2~0~", "p~joined~"]


def test_only_this_pipeline_s_earlier_batches_are_joined(spark: Any, place: Path) -> None:
    table = Table(spark, place, compact={"files": 3}).start("id int")
    table.write(0, [(0,)], "id int")
    table.write(1, [(1,)], "id int", part=1)
    table.write(1, [(2,)], "id int", part=2)
    table.write(0, [(3,)], "id int", pipeline="p.dead-letters")
    table.write(12, [(4,)], "id int", part=1)
    table.maintain(table.write(12, [(5,)], "id int", part=2))

    assert table.names() == ["p.dead-letters~0~0~0~", "p~0~12~1~", "p~0~12~2~", "p~joined~"]
    # The last batch may be run again, in parts as before.
    Table(spark, place).start("id int").write(12, [(4,)], "id int", part=1)
    assert table.column("id") == [0, 1, 2, 3, 4, 5]


def test_few_small_files_stay_and_so_do_large_ones(spark: Any, place: Path) -> None:
    table = Table(spark, place, file_size=3000, compact={"files": 3, "every": 0}).start("id bigint")
    table.write(0, spark.range(2000).coalesce(1))
    large = [file.name for file in table.files() if file.stat().st_size >= 1500]
    small = len(table.files()) - len(large)
    for number in range(1, 4 - small):
        batch = table.write(number, spark.range(1).coalesce(1))
        table.maintain(batch)
    before = table.names()
    table.maintain(table.write(9, spark.range(1).coalesce(1)))

    assert large
    assert "p~joined~" not in before
    assert "p~joined~" in table.names()
    assert set(large) <= {file.name for file in table.files()}


def test_joining_waits_for_its_time(spark: Any, place: Path) -> None:
    table = Table(spark, place, compact={"files": 2, "every": "1h"}).start("id int")
    for number in range(6):
        table.maintain(table.write(number, [(number,)], "id int"))

    assert table.names() == [f"p~0~{number}~0~" for number in range(6)]
    table.start("id int").maintain(table.write(6, [(6,)], "id int"))
    assert table.names() == ["p~0~6~0~", "p~joined~"]


class CrashError(Exception):
    """As if the process had been killed here."""


def _crashing(*_: Any) -> None:
    raise CrashError


def _crash_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """Let the given one of all changes to the folder, counted from 0, not happen, nor any after it."""
    done = iter(range(moment))

    def until(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any) -> Any:
            if next(done, None) is None:
                raise CrashError
            return change(*given)

        return changed

    for name in ("move", "remove", "write", "create"):
        monkeypatch.setattr(Folder, name, until(getattr(Folder, name)))


def _moments(monkeypatch: pytest.MonkeyPatch, work: Callable[[int], None]) -> Iterator[int]:
    """Do the work again and again, each time with a later crash, until it comes through without one."""
    for moment in range(1000):
        with monkeypatch.context() as broken:
            _crash_at(broken, moment)
            try:
                work(moment)
                return
            except CrashError:
                pass
        yield moment


@pytest.mark.by_turns
@pytest.mark.parametrize("format_", ["parquet", "json"])
def test_a_crash_at_any_moment_of_joining_loses_and_doubles_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    options: dict[str, Any] = {"format": format_, "partition_by": "half", "compact": {"files": 2}}
    first = Table(spark, tmp_path / "table", **options).start("id int, half int")
    for number in range(3):
        batch = first.write(number, [(2 * number, 0), (2 * number + 1, 1)], "id int, half int")
    crashed: dict[int, Table] = {}

    def join(moment: int) -> None:
        copy = shutil.copytree(first.place, tmp_path / f"copy-{moment}")
        crashed[moment] = Table(spark, copy, **options)
        crashed[moment].writer()._table = first.writer()._table
        crashed[moment].maintain(batch)

    for moment in _moments(monkeypatch, join):
        table = crashed[moment]
        if moment % 2:  # the next start finishes it, with or without a crash of its own
            with monkeypatch.context() as broken, suppress(CrashError):
                _crash_at(broken, 2)
                table.start("id int, half int")
        table.start("id int, half int")
        assert table.column("id") == list(range(6)), moment
        # The last batch is run again, and small files are joined again.
        again = [(4, 0), (5, 1)]
        table.maintain(table.write(2, again, "id int, half int"))
        assert table.column("id") == list(range(6)), moment
        assert table.names().count("p~joined~") == 2
        assert table.hidden() == ["table-1.json"]
    assert max(crashed) > 10


def test_a_crash_at_any_moment_of_a_batch_loses_and_doubles_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, rows = "id int, half int", [(number, number % 3) for number in range(9)]
    tables: dict[int, Table] = {}

    def write(moment: int) -> None:
        tables[moment] = Table(spark, tmp_path / f"table-{moment}", partition_by="half")
        tables[moment].start(schema).write(0, rows, schema)

    for moment in _moments(monkeypatch, write):
        tables[moment].start(schema).write(0, rows, schema)
        assert tables[moment].column("id") == list(range(9)), moment
        assert tables[moment].hidden() == ["table-1.json"]
    assert max(tables) > 4


def test_a_journal_whose_file_is_gone_removes_nothing(spark: Any, place: Path) -> None:
    table = Table(spark, place).start("id int")
    table.write(0, [(1,)], "id int")
    (file,) = table.files()
    added = {"_penstock/p~joined~0~0~0/x": "p~joined~x"}
    act = {"mark": [0, 0, 0], "added": added, "removed": [file.name]}
    (place / "_penstock" / "log" / "p" / f"{9:020}.json").write_text(json.dumps(act))

    with pytest.raises(TerminalError, match="is not there: bring it back"):
        table.start("id int")

    assert table.column("id") == [1]
