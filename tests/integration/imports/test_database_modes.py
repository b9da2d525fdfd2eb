"""The modes of the source database, on PostgreSQL, MariaDB, SQLite and through SQLAlchemy."""

from __future__ import annotations

import pytest
from tests.integration.imports.database_target import Target

from penstock.errors import ConfigError
from penstock.pipeline.importing import key_of
from penstock.testing import eventually


def test_incrementing_reads_each_new_row_once_in_order(place: Target) -> None:
    place.fill(1, 2501)
    with place.rounds(mode="incrementing", incrementing_column="id") as rounds:
        assert rounds.run() == 2500
        assert rounds.column("id") == list(range(1, 2501))
        assert rounds.transactions == 3
        assert rounds.run() == 0
        place.fill(2501, 2504)
        assert rounds.run() == 3
        rounds.restart()
        assert rounds.run() == 0
        assert next(iter(rounds.positions.values()))["incrementing"] == 2503
        topic, key, _ = rounds.records[0]
        assert (topic, key) == (place.table.replace(" ", "-").replace("%", "-"), b"1")


@pytest.mark.by_turns
def test_timestamp_reads_changed_rows_again_and_never_cuts_rows_of_one_time(place: Target) -> None:
    place.fill(1, 501)
    with place.rounds(mode="timestamp", timestamp_column="at", max_records=150) as rounds:
        assert rounds.run() == 500
        assert sorted(rounds.column("id")) == list(range(1, 501))
        place.run("UPDATE {t} SET at = '2024-02-01 00:00:00', name = 'new' WHERE id IN (7, 9)")
        place.run("INSERT INTO {t} (id, at, name) VALUES (999, NULL, 'no time')")
        eventually(lambda: rounds.run() == 2)
        assert sorted(row["id"] for row in rounds.rows[500:]) == [7, 9]
        assert {row["name"] for row in rounds.rows[500:]} == {"new"}
        assert rounds.run() == 0


def test_both_columns_cut_pages_anywhere(place: Target) -> None:
    place.run(*(f"INSERT INTO {{t}} VALUES ({n}, '2024-01-01 00:00:00', 'x')" for n in (3, 1, 2)))
    place.insert((4, "2023-01-01 00:00:00"), (5, "2024-01-02 00:00:00"))
    options = {"timestamp_column": "at", "incrementing_column": "id", "max_records": 2}
    with place.rounds(mode="timestamp+incrementing", **options) as rounds:
        assert rounds.run() == 5
        assert rounds.column("id") == [4, 1, 2, 3, 5]
        assert rounds.transactions == 3
        place.insert((6, "2024-01-02 00:00:00"), (7, "2024-01-01 00:00:00"))
        # Rows of the time that was read last are read if their number is greater.
        eventually(lambda: rounds.run() == 1)
        assert rounds.column("id")[5:] == [6]


def test_bulk_reads_everything_again_after_each_interval(place: Target) -> None:
    place.fill(1, 26)
    with place.rounds(mode="bulk", poll=0.2, max_records=10) as rounds:
        assert rounds.run() == 25
        assert rounds.column("id") == list(range(1, 26))
        place.run("DELETE FROM {t} WHERE id > 20")
        eventually(lambda: rounds.run() == 20)
        rounds.restart()
        assert rounds.run() == 20
        assert list(rounds.positions.values()) == [{"load": 3, "finished": True}]


def test_a_bulk_load_that_was_ended_goes_on_after_its_last_row(place: Target) -> None:
    place.fill(1, 26)
    with place.rounds(mode="bulk", max_records=10) as rounds:
        (part,) = rounds.system.pending({})
        with part.open(None) as reader:
            (taken,) = list(reader.take(10))
        rounds.positions[key_of(part.place)] = taken.position
        rounds.restart()
        assert rounds.run() == 15
        assert rounds.column("id") == list(range(11, 26))


def test_bulk_without_a_key_is_one_transaction_and_an_empty_table_is_a_load(place: Target) -> None:
    place.run("DROP TABLE {t}", "CREATE TABLE {t} (id BIGINT, at TIMESTAMP NULL, name VARCHAR(20))")
    with place.rounds(mode="bulk") as rounds:
        assert rounds.run() == 0
        place.fill(1, 26)
        rounds.restart()
        assert rounds.run() == 25
        assert rounds.transactions == 2
        assert rounds.records[0][1] is None


def test_a_query_is_read_by_its_columns(place: Target) -> None:
    place.fill(1, 11)
    query = f"SELECT id AS number, 'a%b' AS mark FROM {place.quoted} WHERE name LIKE '%n' ;"
    options = {"tables": [], "query": query, "topic": "numbers", "key": "number"}
    with place.rounds(mode="incrementing", incrementing_column="number", **options) as rounds:
        assert rounds.run() == 10
        assert rounds.rows[0] == {"number": 1, "mark": "a%b"}
        assert rounds.records[9][1] == b"10"
        assert rounds.positions['{"query":"query"}']["incrementing"] == 10


def test_a_new_column_is_in_the_next_records(place: Target) -> None:
    place.fill(1, 4)
    with place.rounds(mode="incrementing", incrementing_column="id") as rounds:
        assert rounds.run() == 3
        place.run("ALTER TABLE {t} ADD COLUMN extra VARCHAR(5) DEFAULT 'e'")
        place.fill(4, 6)
        assert rounds.run() == 2
        assert set(rounds.rows[0]) == {"id", "at", "name"}
        assert rounds.rows[-1]["extra"] == "e"


def test_a_changed_mode_does_not_take_the_position_for_its_own(place: Target) -> None:
    place.fill(1, 4)
    with place.rounds(mode="timestamp", timestamp_column="at") as rounds:
        rounds.positions = {
            f'{{"schema":"{_schema(place)}","table":"{place.table}"}}': {"incrementing": 2}
        }
        with pytest.raises(
            ConfigError, match="position has 'incrementing', and the mode needs 'time"
        ):
            rounds.run()


def _schema(place: Target) -> str:
    return {"postgresql": "public", "mariadb": "penstock"}.get(place.kind, "main")
