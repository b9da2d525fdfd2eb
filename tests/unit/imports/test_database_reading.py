"""What tasks read of a database, transaction by transaction: over SQLite, without Kafka."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock import Connection
from penstock.encode.format_options import JSON_FORMAT
from penstock.errors import ConfigError, TransientError
from penstock.imports import part_opening, part_task
from penstock.imports.database import database_system, sqlite_client
from penstock.imports.database.database_import import DatabaseImport
from penstock.imports.database.record_building import RecordBuilder
from penstock.imports.database.table_range import Rows, SourceColumn
from penstock.imports.part_task import Errand, run
from penstock.imports.positions import Known
from penstock.pipeline.importing import Part, Portion, Position, System, key_of
from penstock.testing import eventually

TIMESTAMP = {"mode": "timestamp", "timestamp_column": "at"}
INCREMENTING = {"mode": "incrementing", "incrementing_column": "n"}
BOTH = {"mode": "timestamp+incrementing", "timestamp_column": "at", "incrementing_column": "n"}


class Committed:
    """Stands for Kafka: each transaction is a list of rows, and gives the position to go on from."""

    largest = 1_000_000

    def __init__(self) -> None:
        self.known = Known({}, 1, 0)
        self.transactions: list[list[Any]] = []
        self.letters: list[dict[str, Any]] = []
        self.settings: list[dict[str, Any]] = []

    def __call__(self, *arguments: Any) -> Committed:
        self.settings += [each for each in arguments if isinstance(each, dict)]
        return self

    def __enter__(self) -> Committed:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self) -> None:
        self.transactions.append([])

    def send(self, records: Any, topic: str) -> None:
        if topic not in ("into", "dead"):
            return
        values = records.column("value").to_pylist() if records.num_rows else []
        found = [json.loads(value) for value in values]
        (self.transactions[-1] if topic == "into" else self.letters).extend(found)

    def commit(self) -> None:
        pass

    def read(self, *_: object, **_more: object) -> Known:
        return self.known

    @property
    def rows(self) -> list[Any]:
        return [row for rows in self.transactions for row in rows]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]

    def read_part(self, part: Part, most: int = 1000) -> Position | None:
        """Read a part to its end by tasks that end after each transaction; return its position."""
        place = key_of(part.place)
        connection = Connection(brokers="127.0.0.1:1")
        for _ in range(50):
            outcome = run(Errand("rows", 1, part, connection, "into", "dead", self.known, most), 0)
            assert outcome.error is None
            if not outcome.more:
                return outcome.position
            assert outcome.position is not None
            positions = self.known.positions | {place: json.loads(json.dumps(outcome.position))}
            self.known = Known(positions, 1, 0)
        raise AssertionError("it is read again and again")

    def read_all(self, system: System, most: int = 1000) -> None:
        """Read all that is pending."""
        for part in system.pending(self.known.positions):
            self.read_part(part, most)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Committed:
    noted = Committed()
    monkeypatch.setattr(part_opening, "Transaction", noted)
    monkeypatch.setattr(part_opening, "Positions", noted)
    return noted


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows at a time, and each look at the clock of a task is 40 s after the one before."""

    class Time:
        monotonic = itertools.count(1000, 40).__next__

    monkeypatch.setattr(part_task, "time", Time)
    monkeypatch.setattr(sqlite_client, "ROWS_AT_ONCE", 2)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    session = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    yield session
    session.close()


def system(tmp_path: Path, **options: Any) -> System:
    """Return the system of an import of the table `t`."""
    what = {} if "query" in options else {"tables": ["t"]}
    given = {"topic": "into", "url": f"sqlite:///{tmp_path}/shop.db"} | what | options
    return DatabaseImport.model_validate(given).system()


def insert(session: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Add rows to the table `t`."""
    session.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("chunk_rows", [0, 5])
def test_rows_of_one_time_are_in_one_transaction_however_long_that_takes(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, chunk_rows: int
) -> None:
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, at TEXT)")
    insert(database, [(n, f"2024-01-0{1 + n // 9} 00:00:00") for n in range(18)])
    with system(tmp_path, **TIMESTAMP, chunk_rows=chunk_rows) as found:
        for _ in range(3):
            kafka.read_all(found, 4)

    assert sorted(kafka.column("n")) == [*range(18)]
    assert {len(rows) for rows in kafka.transactions} <= {0, 9}


@pytest.mark.usefixtures("slow")
def test_rows_with_one_number_are_in_one_transaction(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed
) -> None:
    database.execute("CREATE TABLE t (n INTEGER, name INTEGER)")
    insert(database, [(n // 7, n) for n in range(21)])
    with system(tmp_path, **INCREMENTING) as found:
        kafka.read_all(found, 5)

    assert kafka.column("name") == [*range(21)]
    assert [len(rows) for rows in kafka.transactions] == [7, 7, 7]


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("options", [INCREMENTING, BOTH, {"mode": "bulk"}])
def test_rows_in_the_order_of_a_key_are_cut_when_a_transaction_is_old(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, options: dict[str, Any]
) -> None:
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, at TEXT)")
    insert(database, [(n, "2024-01-01 00:00:00") for n in range(16)])
    with system(tmp_path, **options) as found:
        kafka.read_all(found)

    assert kafka.column("n") == [*range(16)]
    assert [len(rows) for rows in kafka.transactions if rows] == [4, 4, 4, 4]


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("options", [{}, {"query": "SELECT * FROM t"}])
def test_a_slow_load_without_a_key_is_one_transaction_and_ends(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, options: dict[str, Any]
) -> None:
    database.execute("CREATE TABLE t (n INTEGER)")
    insert(database, [(n,) for n in range(9)])
    with system(tmp_path, mode="bulk", **options) as found:
        kafka.read_all(found)

    assert [sorted(row["n"] for row in rows) for rows in kafka.transactions] == [[*range(9)]]
    assert [each["finished"] for each in kafka.known.positions.values()] == [True]


def test_a_transaction_that_may_not_be_cut_has_the_longest_time_that_brokers_allow(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed
) -> None:
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    insert(database, [(1,)])
    with system(tmp_path, **INCREMENTING) as found:
        kafka.read_all(found)

    assert {each["transaction.timeout.ms"] for each in kafka.settings} == {900_000}


@pytest.mark.parametrize("declared", ["TEXT", ""])
def test_a_text_that_is_not_utf8_costs_its_row_only(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, declared: str
) -> None:
    database.execute(f"CREATE TABLE t (n INTEGER PRIMARY KEY, name {declared})")
    insert(database, [(n, f"caf\u00e9 {n}") for n in range(5)])
    database.execute("UPDATE t SET name = CAST(X'636166e9' AS TEXT) WHERE n = 2")
    with system(tmp_path, **INCREMENTING) as found:
        kafka.read_all(found)

    assert kafka.rows == [{"n": n, "name": f"caf\u00e9 {n}"} for n in (0, 1, 3, 4)]
    assert kafka.letters == [{"n": 2, "name": "636166e9"}]


def test_a_value_that_is_no_text_is_never_a_position(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed
) -> None:
    database.execute("CREATE TABLE t (n INTEGER, at TEXT)")
    insert(database, [(1, "2024-01-01 00:00:00")])
    database.execute("INSERT INTO t VALUES (2, CAST(X'ff' AS TEXT))")
    with (
        system(tmp_path, **TIMESTAMP) as found,
        pytest.raises(ConfigError, match=r"'at', which orders the rows, .* neither a number nor a"),
    ):
        found.pending({})


def test_a_bad_row_with_a_number_beyond_64_bits_is_shown_as_it_is() -> None:
    columns = [SourceColumn("n", pa.int64(), lambda values: pa.array(values, pa.int64()))]
    builder = RecordBuilder(columns, [], {"value": JSON_FORMAT}, "into")

    records, bad = builder.records(Rows([[1, 2**70, 3]], 3))

    assert records.column("value").to_pylist() == [b'{"n":1}', b'{"n":3}']
    assert [json.loads(each.value or b"") for each in bad] == [{"n": 2**70}]


@pytest.mark.parametrize("kind", ["sqlite", "sqlite+pysqlite"])
@pytest.mark.parametrize("most", [1, 2, 1000])
def test_rows_without_a_number_after_their_time_are_not_read_and_hold_nothing_up(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, kind: str, most: int
) -> None:
    database.execute("CREATE TABLE t (n INTEGER, at TIMESTAMP, name TEXT)")
    first, second = "2024-01-01 00:00:00.000000", "2024-01-02 00:00:00.000000"
    insert(database, [(None, first, "a"), (1, first, "b"), (None, first, "c"), (2, first, "d")])
    insert(database, [(3, None, "e"), (None, second, "f"), (4, second, "g"), (None, second, "h")])
    url = f"{kind}:///{tmp_path}/shop.db"
    with system(tmp_path, **BOTH, url=url, delay=0) as found:
        kafka.read_all(found, most)

        assert [row["name"] for row in kafka.rows] == ["b", "d", "g"]
        # There is nothing to read again and again.
        assert found.pending(kafka.known.positions) == []


@pytest.mark.parametrize("options", [TIMESTAMP, BOTH])
def test_a_time_in_the_future_does_not_pass_the_rows_before_it(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, options: dict[str, Any]
) -> None:
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, at TEXT)")
    insert(database, [(1, "2024-01-01 00:00:00"), (2, "9999-12-31 00:00:00")])
    with system(tmp_path, **options) as found:
        kafka.read_all(found)
        insert(database, [(3, "2024-01-02 00:00:00")])
        eventually(lambda: (kafka.read_all(found), kafka.column("n"))[1] == [1, 3])


@pytest.mark.parametrize("chunk_rows", [0, 5])
def test_a_position_of_another_column_is_refused(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, chunk_rows: int
) -> None:
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, version INTEGER)")
    insert(database, [(n, n % 3) for n in range(12)])
    with system(tmp_path, **INCREMENTING, chunk_rows=chunk_rows) as found:
        kafka.read_all(found)
    other = INCREMENTING | {"incrementing_column": "version"}
    with system(tmp_path, **other) as found:
        with pytest.raises(ConfigError, match=r"of the columns \['n'\].* names \['version'\]"):
            found.pending(kafka.known.positions)
        kafka.known = Known({'{"schema":"main","table":"t"}': {"incrementing": 1}}, 1, 0)
        assert len(found.pending(kafka.known.positions)) == 1


@pytest.mark.parametrize("chunk_rows", [0, 5])
def test_a_null_in_a_primary_key_of_sqlite_loses_no_row(
    tmp_path: Path, database: sqlite3.Connection, kafka: Committed, chunk_rows: int
) -> None:
    database.execute("CREATE TABLE t (a INTEGER, b TEXT, n INTEGER, PRIMARY KEY (a, b))")
    insert(database, [(n // 4 or None, None if n % 3 == 0 else str(n), n) for n in range(24)])
    with system(tmp_path, mode="bulk", chunk_rows=chunk_rows) as found:
        for _ in range(3):
            kafka.read_all(found, 5)

    assert sorted(kafka.column("n")) == [*range(24)]


def test_a_column_that_is_dropped_while_rows_are_read_is_not_its_name(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT)")
    insert(database, [(n, "x") for n in range(4)])
    with system(tmp_path, **INCREMENTING) as found:
        (part,) = found.pending({})
        with part.open(None) as reader:
            first = [json.loads(each) for each in _values(reader.take(2))]
            database.execute("ALTER TABLE t RENAME COLUMN name TO title")
            with pytest.raises(TransientError, match="the columns changed"):
                _values(reader.take(2))
    assert first == [{"n": 0, "name": "x"}, {"n": 1, "name": "x"}]


def _values(taken: Iterator[Portion]) -> list[bytes]:
    return [each for portion in taken for each in portion.records.column("value").to_pylist()]


def test_a_table_that_begins_again_is_reported(
    tmp_path: Path,
    database: sqlite3.Connection,
    kafka: Committed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[dict[str, Any]] = []
    log = SimpleNamespace(warning=lambda event, **more: reported.append({"event": event, **more}))
    monkeypatch.setattr(database_system, "log", log)
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    insert(database, [(n,) for n in range(1, 6)])
    with system(tmp_path, **INCREMENTING) as found:
        kafka.read_all(found)
        assert reported == []
        database.execute("DELETE FROM t WHERE n > 2")
        for _ in range(2):
            assert found.pending(kafka.known.positions) == []
    event = "import_position_after_newest_row"
    table = "the table 'main.t'"
    assert reported == [{"event": event, "relation": table, "position": 5, "newest": 2}]


def test_tables_whose_names_become_one_topic_are_refused(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    for name in ("order lines", "order-lines"):
        database.execute(f'CREATE TABLE "{name}" (n INTEGER PRIMARY KEY)')
        database.execute(f'INSERT INTO "{name}" VALUES (1)')
    options = {"tables": ["order*"], "topic": "shop.{table}", **INCREMENTING}
    with (
        system(tmp_path, **options) as found,
        pytest.raises(
            ConfigError, match=r"'shop.order lines' and 'shop.order-lines' would go into"
        ),
    ):
        found.pending({})


def test_a_position_without_a_value_is_refused(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    insert(database, [(1,)])
    with (
        system(tmp_path, **INCREMENTING) as found,
        pytest.raises(ConfigError, match="is not one: no row comes after a value that is no"),
    ):
        found.pending({'{"schema":"main","table":"t"}': {"incrementing": None}})
