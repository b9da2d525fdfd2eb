"""Wrong options of the source database: each message names what was given and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Pipeline
from penstock.errors import ConfigError, DefinitionError
from penstock.imports.database.database_import import DatabaseImport
from penstock.imports.database.database_system import chosen_tables
from penstock.pipeline.registry import component
from penstock.sinks.database.database_api import Table

GOOD: dict[str, Any] = {
    "url": "postgresql://app@db/shop",
    "tables": "orders",
    "mode": "incrementing",
    "incrementing_column": "id",
}
TIMES = {"mode": "timestamp", "incrementing_column": None, "timestamp_column": "at"}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "db/shop"}, "given 'db/shop'; allowed: postgresql://user@host:5432/database, mariadb://"),
    ({"url": "postgresql://app@db"}, "which names no database; allowed: postgresql://"),
    ({"url": "sqlite://file.db"}, "a file is sqlite:///folder/file.db"),
    ({"url": "mariadb://app@db/shop?ssl_cax=1"}, "'url' has the option 'ssl_cax'; allowed with mariadb"),
    ({"url": "mysql://a:hunter2hunter2@db/s", "password": "x"}, "the password is in 'url' and in 'passw"),
    ({"tables": []}, "given neither of 'tables' and 'query'; give one of them"),
    ({"query": "SELECT 1"}, "given both of 'tables' and 'query'; give one of them"),
    ({"tables": "a.b.c"}, "given 'a.b.c'; a table is 'name' or 'schema.name'"),
    ({"tables": ["orders", ""]}, "given ''; a table is 'name'"),
    ({"tables": [], "query": "DELETE FROM x"}, "given 'DELETE FROM x'; a query is one SELECT, or WITH"),
    ({"tables": [], "query": ";"}, "given ';'; a query is one SELECT"),
    ({"mode": None}, "Input should be 'bulk', 'incrementing', 'timestamp' or 'timestamp+incrementing'"),
    ({"mode": "increment"}, "given 'increment'; input should be 'bulk', 'incrementing', 'timestamp' or"),
    ({"incrementing_column": None}, "mode is 'incrementing', which needs 'incrementing_column'"),
    ({"mode": "timestamp", "timestamp_column": "at"},
     "'incrementing_column' is given, and mode is 'timestamp'; it is for mode 'incrementing' or 'times"),
    ({"timestamp_column": "at"},
     "'timestamp_column' is given, and mode is 'incrementing'; it is for mode 'timestamp' or"),
    ({"mode": "timestamp+incrementing"}, "which needs 'timestamp_column': name the column"),
    ({"mode": "timestamp+incrementing", "timestamp_column": "id"},
     "'id' cannot be 'timestamp_column' and 'incrementing_column'"),
    ({"mode": "bulk"}, "'incrementing_column' is given, and mode is 'bulk'"),
    ({"mode": "bulk", "incrementing_column": None, "delay": 1}, "'delay' is given, and mode 'bulk' re"),
    ({"delay": -1}, "greater than or equal to 0"),
    ({"delay": "soon"}, "given 'soon'; a duration is a number with ms, s, m, h or d"),
    ({"topic": "shop.{tabel}"}, "a topic cannot have {tabel} in its name here; allowed: {schema}"),
    ({"tables": [], "query": "SELECT 1", "topic": "shop.{table}"},
     "'topic' has {table} in its name, and a query has no table"),
    ({"tables": [], "query": "SELECT 1", "key_format": "int"}, "a query has no key of its own"),
    ({"value_format": "jsn"}, "unknown format 'jsn'; did you mean 'json'?"),
    ({"value_format": {"avro": {}}}, "value_format.avro.registry: is required"),
    ({"tasks_max": 0}, "greater than or equal to 1"),
    ({"tabels": "x"}, "tabels: is not an option here; did you mean 'tables'?"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(change) for change, _ in WRONG])
def test_wrong_options_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Pipeline(
            name="p",
            connection="localhost:9092",
            source={"database": GOOD | change},
            sink="console",
        )
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_good_options() -> None:
    source = DatabaseImport.model_validate(GOOD | {"url": "jdbc:mysql://a:secret@db/s"})
    assert (source.url, source.tables) == ("mariadb://a@db/s", ["orders"])
    assert source.password is not None
    assert "secret" not in repr(source)
    assert "secret" not in source.model_dump_json()
    assert DatabaseImport.model_validate(GOOD | TIMES).timestamp_column == "at"


def test_the_alias_jdbc() -> None:
    assert component("source", "jdbc") is DatabaseImport


def test_patterns_choose_tables_of_their_schema() -> None:
    tables = [Table("orders", "public"), Table("order_lines", "public"), Table("orders", "old")]
    assert chosen_tables(["order*"], tables, "public") == tables[:2]
    assert chosen_tables(["*.orders", "orders"], tables, "public") == [tables[0], tables[2]]
    assert chosen_tables(["new*"], tables, "public") == []
    assert chosen_tables(["[o]rders*"], tables, "public") == []
    with pytest.raises(
        ConfigError, match="no table 'ordrs' in the database; did you mean 'orders'"
    ):
        chosen_tables(["ordrs"], tables, "public")
    with pytest.raises(ConfigError, match="no tables that this user sees"):
        chosen_tables(["orders"], [], "public")
