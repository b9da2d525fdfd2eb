"""Offsets of Connect's JDBC source as positions of tables."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.connect.connectors import CATALOG
from penstock.errors import ConfigError
from penstock.imports.database.row_readers import values_of
from penstock.imports.database.table_range import OrderColumn

POSTGRESQL, MARIADB = "jdbc:postgresql://db:5432/shop", "jdbc:mysql://db:3306/shop?x=y"
TIME = {"timestamp": 1_700_000_000_123, "timestamp_nanos": 123_456_000}


def taken(
    place: dict[str, Any], offset: dict[str, Any] | None, **config: str
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    given = {
        "name": "n",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": POSTGRESQL,
        "mode": "timestamp+incrementing",
        "topic.prefix": "shop-",
        **{key.replace("_", "."): value for key, value in config.items()},
    }
    kind = CATALOG.find(given["connector.class"])()
    ((made, position),) = kind.take_over(CATALOG.config(given), [(place, offset)])
    return made, position


@pytest.mark.parametrize(
    ("url", "table", "place"),
    [
        (POSTGRESQL, "orders", {"schema": "public", "table": "orders"}),
        (POSTGRESQL, "shop.sales.orders", {"schema": "sales", "table": "orders"}),
        (MARIADB, "shop.orders", {"schema": "shop", "table": "orders"}),
        (MARIADB, "orders", {"schema": "shop", "table": "orders"}),
        ("jdbc:sqlite:/data/shop.db", "orders", {"schema": "main", "table": "orders"}),
    ],
)
def test_tables_have_their_schema(url: str, table: str, place: dict[str, Any]) -> None:
    given = {"protocol": "1", "table": table}
    found = taken(given, {"incrementing": 5}, connection_url=url, mode="incrementing")
    assert found == (place, {"incrementing": 5})
    assert taken(given, None, connection_url=url) == (place, None)


def test_times_have_all_digits_and_are_read_by_the_import() -> None:
    _, position = taken({"table": "orders"}, {**TIME, "incrementing": 7})
    assert position == {"incrementing": 7, "timestamp": "2023-11-14 22:13:20.123456"}
    order = [OrderColumn("changed", "timestamp"), OrderColumn("id", "incrementing")]
    assert values_of(order, position) == ("2023-11-14 22:13:20.123456", 7)
    _, older = taken({"table": "orders"}, {"timestamp": 1_700_000_000_050}, mode="timestamp")
    assert older == {"timestamp": "2023-11-14 22:13:20.050000"}
    assert taken(
        {"query": "query"}, {"incrementing": 1}, mode="incrementing", query="SELECT 1"
    ) == (
        {"query": "query"},
        {"incrementing": 1},
    )


def test_positions_of_this_form_are_left_as_they_are() -> None:
    own = {"schema": "public", "table": "orders"}, {"incrementing": 1, "timestamp": "2026-01-01"}
    assert taken(*own) == own


@pytest.mark.parametrize(
    ("offset", "config", "message"),
    [
        ({"incrementing": 1}, {}, "has no timestamp for the mode 'timestamp.incrementing'"),
        (TIME, {"connection_url": "jdbc:sqlite:/a.db", "mode": "timestamp"}, "times of SQLite"),
        ({"incrementing": 1}, {"mode": "bulk"}, "has no place for the mode 'bulk'"),
    ],
)
def test_offsets_of_another_mode_are_refused(
    offset: dict[str, Any], config: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        taken({"table": "orders"}, offset, **config)


@pytest.mark.parametrize(
    ("place", "offset"),
    [
        ({"table": "orders"}, {"timestamp": 10**18}),
        ({"table": "orders"}, {"timestamp": 10**30}),
        ({"table": "orders"}, {"timestamp": -(10**17)}),
        ({"table": "orders"}, {"timestamp": True}),
        ({"table": "orders"}, {"timestamp": 1, "timestamp_nanos": "abc"}),
        ({"table": "orders"}, {"timestamp": 1, "timestamp_nanos": {}}),
        ({"table": "orders"}, {"timestamp": 1, "timestamp_nanos": 10**12}),
        ({"table": None}, {"timestamp": 1}),
        ({"table": {"a": 1}}, {"timestamp": 1}),
    ],
)
def test_what_is_not_an_offset_is_refused_with_advice(
    place: dict[str, Any], offset: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"allowed|give|leave"):
        taken(place, offset, mode="timestamp")


@pytest.mark.parametrize("newer_first", [True, False])
def test_of_two_offsets_of_a_table_that_of_the_newer_release_counts(newer_first: bool) -> None:
    newer = {"protocol": "1", "table": "shop.public.orders"}, {"incrementing": 900}
    older = {"table": "orders"}, {"incrementing": 5}
    config = {
        "name": "n",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": POSTGRESQL,
        "mode": "incrementing",
        "topic.prefix": "shop-",
    }
    kind = CATALOG.find(config["connector.class"])()
    given = [newer, older] if newer_first else [older, newer]
    positions = [(str(place), at) for place, at in kind.take_over(CATALOG.config(config), given)]
    assert dict(positions) == {str({"schema": "public", "table": "orders"}): {"incrementing": 900}}
